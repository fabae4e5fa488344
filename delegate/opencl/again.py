"""Running a region again without OpenCL: the host calls its function at the address that a launch has left.

A launch costs PoCL more than many small models compute. So the first launch leaves the address of the function that
runs the region, and the arguments that it was given (kernels_cl/region_call.h), and later runs are a call of ctypes'.
That is for devices that run kernels in the calling thread, in memory that they share with the host, and whose compiler
is known to keep such functions (``Capabilities.addresses``).
"""

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache, partial

from litecl.delegate.opencl.device import Device
from litecl.delegate.plan.region_tables import Again

_SHORT_S = 3e-6  # of a launch; from here on threads that release Python's lock get more done than one
_HAS_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()
_GATE = (ctypes.c_int32 * 32)()  # before Python's lock (kernels_cl/gate.h); nothing else is in its cache line


class _Place(ctypes.Structure):
    """Where an address lies: ``Dl_info`` of dlfcn.h."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class AgainRecord:
    """What a region's launches leave to run it again. buffer: its memory, an argument of the kernel."""

    def __init__(self, device: Device) -> None:
        self.buffer, seen = device.shared_buffer(Again.SIZE * ctypes.sizeof(ctypes.c_uint64))
        assert seen is not None  # devices that can call addresses share their memory
        seen.fill(0)
        self._seen = seen.view("u8")

    def function(self, launch_s: float) -> Callable[[], None] | None:
        """Return a function that does what the last launch did; None if there was none, or its code may be unloaded.
        It keeps Python's lock if a launch took very little time. It must not outlive the kernel and its arguments.
        """
        address = int(self._seen[Again.FUNCTION])
        if not address or not _is_kept(address):
            return None
        locked = launch_s < _SHORT_S
        kind = ctypes.PYFUNCTYPE if locked else ctypes.CFUNCTYPE
        self._seen[Again.GATE] = 0 if locked or not _HAS_LOCK else ctypes.addressof(_GATE)
        return partial(kind(None)(address), ctypes.c_void_p.from_param(self._seen.ctypes.data))


@cache
def _is_kept(address: int) -> bool:
    """Keep the library loaded that holds a function; return whether that is possible. PoCL unloads the libraries of
    kernels that it has not launched for long. Programs are kept as long as the process lives, so libraries may be too.
    """
    process, place = ctypes.CDLL(None), _Place()
    try:
        if not process.dladdr(ctypes.c_void_p(address), ctypes.byref(place)) or not place.file:
            return False
        ctypes.CDLL(os.fsdecode(place.file), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except (AttributeError, OSError):
        return False
    return True
