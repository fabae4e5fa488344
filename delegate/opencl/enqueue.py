"""Queueing kernels without holding Python's global interpreter lock.

PoCL's single-threaded device runs a kernel within the call that queues it, and pyopencl holds the lock during that
call: no other thread would run. So the function is called by way of ctypes, which lets the lock go.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import pyopencl as cl

_NAME = "clEnqueueNDRangeKernel"


def _native() -> Any:
    """The function in the library that pyopencl itself calls; None where it is not to be found by way of pyopencl."""
    try:
        function = ctypes.CDLL(cl._cl.__file__)[_NAME]
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_int32
    return function


_enqueue = _native()


class BoundKernel:
    """A kernel with arguments and sizes, to be queued any number of times.

    A kernel object keeps no reference to its arguments, so they are held here. local_size: 1 where it says nothing.
    Raises what pyopencl raises.
    """

    def __init__(
        self, queue: Any, kernel: Any, arguments: Sequence[Any], global_size: Sequence[int], local_size: Sequence[int]
    ) -> None:
        kernel.set_args(*arguments)
        count = len(global_size)
        self._held = queue, kernel, arguments
        self._sizes = tuple(global_size), (*local_size, *(1,) * (count - len(local_size)))
        items, group = ((ctypes.c_size_t * count)(*sizes) for sizes in self._sizes)
        objects = ctypes.c_void_p(queue.int_ptr), ctypes.c_void_p(kernel.int_ptr)
        self._call = *objects, ctypes.c_uint32(count), None, items, group, ctypes.c_uint32(0), None, None

    def enqueue(self) -> None:
        """Queues the kernel. Other threads run meanwhile, and until it is done where queueing it runs it."""
        if _enqueue is None:
            queue, kernel, _ = self._held
            cl.enqueue_nd_range_kernel(queue, kernel, *self._sizes)
        elif status := _enqueue(*self._call):
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


def _error(status: int) -> Any:
    return cl.LogicError(cl._cl._ErrorRecord(_NAME, status, ""))
