"""Queueing kernels, with or without holding Python's global interpreter lock.

PoCL's single-threaded device runs a kernel within the call that queues it, and pyopencl holds the lock during that
call: no other thread would run. So the function is called by way of ctypes, which lets the lock go. To hand it over
takes longer than a short kernel, though: threads that do so for each one get less done than one thread alone.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import pyopencl as cl

from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed

_NAME, _FINISH = "clEnqueueNDRangeKernel", "clFinish"
_SHORT_FLOPS = 1e7  # what a core does in about the time that it takes to hand over the lock


def _native(library: type[ctypes.CDLL], name: str) -> Any:
    """The function in the library that pyopencl itself calls; None where it is not to be found by way of pyopencl."""
    try:
        function = library(cl._cl.__file__)[name]
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_int32
    return function


_enqueue = _native(ctypes.CDLL, _NAME)
_enqueue_locked = _native(ctypes.PyDLL, _NAME)  # holds Python's lock
_finish_locked = _native(ctypes.PyDLL, _FINISH)


def is_short(flops: float) -> bool:
    """Return whether so much arithmetic is done before another thread could have taken over."""
    return flops < _SHORT_FLOPS


def finisher(queue: Any, under_way: list[Any], *, short: bool) -> Callable[[], None]:
    """Return what waits for a queue, and then drops the events of copies that were under way.

    short: whether all that it waits for has ended, or is about to. What it returns raises DelegateError.
    """
    handle = ctypes.c_void_p(queue.int_ptr)

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
    short: whether it ends so soon that other threads wait for it. Raises what pyopencl raises.
    """

    def __init__(
        self,
        queue: Any,
        kernel: Any,
        arguments: Sequence[Any],
        global_size: Sequence[int],
        local_size: Sequence[int],
        *,
        short: bool = False,
    ) -> None:
        kernel.set_args(*arguments)
        self._short = short
        count = len(global_size)
        self._held = queue, kernel, arguments
        self._sizes = tuple(global_size), (*local_size, *(1,) * (count - len(local_size)))
        items, group = ((ctypes.c_size_t * count)(*sizes) for sizes in self._sizes)
        objects = ctypes.c_void_p(queue.int_ptr), ctypes.c_void_p(kernel.int_ptr)
        self._call = *objects, ctypes.c_uint32(count), None, items, group, ctypes.c_uint32(0), None, None

    def enqueue(self) -> None:
        """Queues the kernel. Unless it is short, other threads run meanwhile, also where queueing it runs it."""
        if _enqueue is None:
            queue, kernel, _ = self._held
            cl.enqueue_nd_range_kernel(queue, kernel, *self._sizes)
        elif status := (_enqueue_locked if self._short else _enqueue)(*self._call):
            raise _error(status)

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
