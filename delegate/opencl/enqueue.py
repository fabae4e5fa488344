"""Queueing kernels, with or without holding Python's global interpreter lock.

PoCL's single-threaded device runs a kernel within the call that queues it, and pyopencl holds the lock during that
call: no other thread would run. So the function is called by way of ctypes, which lets the lock go. To hand it over
takes longer than a very short kernel, though: threads that do so for each one get less done than one thread alone. So
how long a kernel takes is measured, and those that are over at once keep the lock.
"""

import ctypes
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyopencl as cl

from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.plan.plan import Plan

_NAME, _FINISH = "clEnqueueNDRangeKernel", "clFinish"
_SHORT_FLOPS = 1e7  # more arithmetic than this takes a core longer, whatever it is
_SHORT_S = 14e-6  # from here on four threads that let the lock go get more done than one
_TRIALS = 8
_TRIED_S = 1e-3  # what a kernel took before that is tried with the lock held


def _native(library: type[ctypes.CDLL], name: str) -> Any:
    """Return the function in the library that pyopencl itself calls; None where it is not to be found by way of
    pyopencl.
    """
    try:
        function = library(cl._cl.__file__)[name]
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_int32
    return function


_enqueue = _native(ctypes.CDLL, _NAME)
_enqueue_locked = _native(ctypes.PyDLL, _NAME)  # holds Python's lock
_finish_locked = _native(ctypes.PyDLL, _FINISH)


def may_be_short(plan: Plan) -> bool:
    """Return whether a plan's kernels may end before another thread could have taken over, whatever their inputs.

    Of loops and of a user's own kernels that is never known.
    """
    own = all(not Path(work.launch.kernel).is_absolute() for work in plan.works)
    return own and not plan.loops and plan.flops < _SHORT_FLOPS


def _pointer(address: int) -> Any:
    """Return an argument as ctypes passes it, which it need not convert at every call."""
    return ctypes.c_void_p.from_param(address)


def finisher(queue: Any, under_way: list[Any], *, short: bool) -> Callable[[], None]:
    """Return what waits for a queue, and then drops the events of copies that were under way.

    short: whether all has ended by then, as where queueing a kernel runs it. What it returns raises DelegateError.
    """
    handle = _pointer(queue.int_ptr)

    def finish() -> None:
        try:
            if not short or _finish_locked is None:
                queue.finish()
            elif status := _finish_locked(handle):
                raise _error(status, _FINISH)
        except FAULTS as error:
            raise typed(error, RUNNING) from error
        if under_way:
            under_way.clear()

    return finish


class BoundKernel:
    """A kernel with arguments and sizes, to be queued any number of times.

    A kernel object keeps no reference to its arguments, so they are held here. local_size: 1 where it says nothing.
    may_be_short: whether to find out if it ends so soon that other threads had better wait for it. Raises what pyopencl
    raises.
    """

    def __init__(
        self,
        queue: Any,
        kernel: Any,
        arguments: Sequence[Any],
        global_size: Sequence[int],
        local_size: Sequence[int],
        *,
        may_be_short: bool = False,
    ) -> None:
        kernel.set_args(*arguments)
        self._short, self._last_s, self._best_s = False, math.inf, math.inf
        self._trials = _TRIALS if may_be_short else 0
        count = len(global_size)
        self._held = queue, kernel, arguments
        self._sizes = tuple(global_size), (*local_size, *(1,) * (count - len(local_size)))
        items, group = ((ctypes.c_size_t * count)(*sizes) for sizes in self._sizes)
        self._arrays = items, group
        no_events, dimensions = (ctypes.c_uint32.from_param(n) for n in (0, count))
        objects = _pointer(queue.int_ptr), _pointer(kernel.int_ptr)
        addresses = _pointer(ctypes.addressof(items)), _pointer(ctypes.addressof(group))
        self._call = *objects, dimensions, None, *addresses, no_events, None, None

    def enqueue(self) -> None:
        """Queue the kernel. Unless it is short, other threads run meanwhile, also where queueing it runs it."""
        if _enqueue is None:
            queue, kernel, _ = self._held
            cl.enqueue_nd_range_kernel(queue, kernel, *self._sizes)
        elif self._trials:
            self._try()
        elif status := (_enqueue_locked if self._short else _enqueue)(*self._call):
            raise _error(status)

    def run_at_once(self) -> None:
        """The same where queueing it runs it, but raises DelegateError: all that most invokes consist of."""
        if self._trials or _enqueue is None:
            try:
                self.enqueue()
            except FAULTS as error:
                raise typed(error, RUNNING) from error
        elif status := (_enqueue_locked if self._short else _enqueue)(*self._call):
            raise typed(_error(status), RUNNING)

    def _try(self) -> None:
        """Queue the kernel and take its time: with the lock held, unless it is long, or PoCL compiles it first."""
        locked = self._last_s < _TRIED_S
        start_s = time.perf_counter()
        status = (_enqueue_locked if locked else _enqueue)(*self._call)
        self._last_s = time.perf_counter() - start_s
        if status:
            raise _error(status)
        if locked:
            self._best_s = min(self._best_s, self._last_s)
        self._trials -= 1
        self._short = not self._trials and self._best_s < _SHORT_S

    def enqueue_with_event(self) -> Any:
        """The same; the event."""
        if _enqueue is None:
            queue, kernel, _ = self._held
            return cl.enqueue_nd_range_kernel(queue, kernel, *self._sizes)
        event = ctypes.c_void_p()
        if status := _enqueue(*self._call[:-1], ctypes.byref(event)):
            raise _error(status)
        return cl.Event.from_int_ptr(event.value, retain=False)


def _error(status: int, name: str = _NAME) -> Any:
    return cl.LogicError(cl._cl._ErrorRecord(name, status, ""))
