"""Running a region again without OpenCL: the host calls its function at the address that a launch has left.

A launch costs PoCL more than many small models compute. So the first launch leaves the address of the function that
runs the region, and the arguments that it was given (kernels_cl/region_call.h), and later runs are a call of ctypes'.
That is for devices that run kernels in the calling thread, in memory that they share with the host, and whose compiler
is known to keep such functions (``Capabilities.addresses``).
"""

import ctypes
import math
import os
import sys
import time
from collections.abc import Callable
from functools import cache, partial

from litecl.delegate.backend.protocols import Faster
from litecl.delegate.opencl.device import Device
from litecl.delegate.plan.region_tables import Again

Run = Callable[[], None]

_TRIALS = 8
_TRIED_S = 1e-3  # what a run must have taken before it is tried with Python's lock held
_SHORT_S = 2e-6  # from here on threads that release the lock get more done than one
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
        free, locked = (partial(kind(None)(address), argument) for kind in (ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE))
        if may_be_short and _HAS_LOCK:
            return Faster(_Trials(free, locked, self._set_gate))
        self._set_gate()
        return Faster(free, alone=_HAS_LOCK)

    def _set_gate(self) -> None:
        """Let runs wait at the gate before they take Python's lock again, which they then must not have."""
        if _HAS_LOCK:
            self._seen[Again.GATE] = ctypes.addressof(_GATE)


class _Trials:
    """Two ways to call a function, without Python's lock or with it. The first calls find out which is better; they
    keep the lock, unless that would take long. set_gate: is called before the function is used without the lock.
    """

    def __init__(self, free: Run, locked: Run, set_gate: Run) -> None:
        self._free, self._locked, self._set_gate = free, locked, set_gate
        self._left, self._last_s, self._shortest_s = _TRIALS, math.inf, math.inf

    def __call__(self) -> Faster | None:
        keeps = self._last_s < _TRIED_S
        start_s = time.perf_counter()
        (self._locked if keeps else self._free)()
        self._last_s = time.perf_counter() - start_s
        if keeps:
            self._shortest_s = min(self._shortest_s, self._last_s)
        self._left -= 1
        if self._left:
            return None
        if self._shortest_s < _SHORT_S:
            return Faster(self._locked, alone=True)
        self._set_gate()
        return Faster(self._free, alone=True)


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
