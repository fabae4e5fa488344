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

from litecl.delegate.backend.protocols import Faster
from litecl.delegate.backend.trials import Trials
from litecl.delegate.opencl.device import Device
from litecl.delegate.plan.region_tables import Again

_SHORT_S = 2e-6  # from here on threads that release the lock get more done than one
_FREE, _LOCKED = ctypes.CFUNCTYPE(None), ctypes.PYFUNCTYPE(None)  # a function that releases the lock, or holds it
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

    def function(self, *, may_be_short: bool) -> Faster | None:
        """Return what does what the last launch did; None if there was none, or its code may be unloaded.
        It must not outlive the kernel and its arguments. may_be_short: whether to measure how long it takes.
        """
        address = int(self._seen[Again.FUNCTION])
        if not address or not _is_kept(address):
            return None
        argument = ctypes.c_void_p.from_param(self._seen.ctypes.data)
        free, locked = (partial(kind(address), argument) for kind in (_FREE, _LOCKED))
        trials = Trials(_SHORT_S)

        def tried() -> Faster | None:
            trials.call(free, locked)
            return None if trials.short is None else Faster(locked, alone=True) if trials.short else self._freely(free)

        return Faster(tried) if may_be_short and _HAS_LOCK else self._freely(free)

    def _freely(self, run: Callable[[], None]) -> Faster:
        """Let runs without Python's lock wait at the gate before they take it again."""
        if _HAS_LOCK:
            self._seen[Again.GATE] = ctypes.addressof(_GATE)
        return Faster(run, alone=_HAS_LOCK)


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
