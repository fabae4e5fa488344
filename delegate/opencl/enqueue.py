"""Queueing kernels, with or without Python's global interpreter lock (GIL).

PoCL's single-threaded device runs a kernel within the call that queues it, and pyopencl holds the GIL during that call,
so no other thread could run. Therefore the function is called through ctypes, which releases the GIL, unless trials
show that the kernel is too short for that to pay.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import pyopencl as cl

from litecl.delegate.backend.trials import Trials
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.opencl.unlocked import native

_NAME, _FINISH = "clEnqueueNDRangeKernel", "clFinish"
_SHORT_S = 14e-6  # above this, four threads that release the GIL get more done than one

_enqueue = native(ctypes.CDLL, _NAME)
_enqueue_locked = native(ctypes.PyDLL, _NAME)  # holds the GIL
_finish_locked = native(ctypes.PyDLL, _FINISH)


def _pointer(address: int) -> Any:
    """Convert a pointer argument to ctypes once instead of at every call."""
    return ctypes.c_void_p.from_param(address)


def finisher(queue: Any, under_way: list[Any], landed: Callable[[], None], *, short: bool) -> Callable[[], None]:
    """Return a function that waits for a queue, then calls ``landed`` if copies are pending. It raises DelegateError.

    short: whether queueing a kernel runs it, so that there is nothing to wait for.
    """
    handle = _pointer(queue.int_ptr)

    def finish() -> None:
        try:
            if not short or _finish_locked is None:
                queue.finish()
            elif status := _finish_locked(handle):
                raise status_error(status, _FINISH)
        except FAULTS as error:
            raise typed(error, RUNNING) from error
        if under_way:
            landed()

    return finish


class BoundKernel:
    """A kernel with arguments and sizes, to be queued any number of times.

    A kernel object keeps no reference to its arguments, so this does. local_size: missing dimensions are 1.
    may_be_short: whether to measure if it is too short to release the GIL. Raises what pyopencl raises.
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
        self._trials = Trials(_SHORT_S)
        self._short = None if may_be_short else False
        count = len(global_size)
        self._held = queue, kernel, arguments
        self._sizes = tuple(global_size), (*local_size, *(1,) * (count - len(local_size)))
        items, group = ((ctypes.c_size_t * count)(*sizes) for sizes in self._sizes)
        self._arrays = items, group  # the call points to these
        no_events, dimensions = (ctypes.c_uint32.from_param(n) for n in (0, count))
        objects = _pointer(queue.int_ptr), _pointer(kernel.int_ptr)
        addresses = _pointer(ctypes.addressof(items)), _pointer(ctypes.addressof(group))
        self._call = *objects, dimensions, None, *addresses, no_events, None, None

    def set_argument(self, position: int, value: Any) -> None:
        """Replace an argument from the next launch on."""
        queue, kernel, arguments = self._held
        kernel.set_arg(position, value)
        self._held = queue, kernel, [*arguments[:position], value, *arguments[position + 1 :]]

    def enqueue(self) -> None:
        """Queue the kernel. Unless it is short, this releases the GIL, as queueing it may run it."""
        if _enqueue is None:
            queue, kernel, _ = self._held
            cl.enqueue_nd_range_kernel(queue, kernel, *self._sizes)
        elif status := self._queued():
            raise status_error(status)

    def run_at_once(self) -> None:
        """Run the kernel on a device where queueing runs it. Most invokes are this call alone. Raises DelegateError."""
        if self._short is None or _enqueue is None:
            try:
                self.enqueue()
            except FAULTS as error:
                raise typed(error, RUNNING) from error
        elif status := (_enqueue_locked if self._short else _enqueue)(*self._call):
            raise typed(status_error(status), RUNNING)

    def _queued(self) -> int:
        """Queue the kernel; return the OpenCL status."""
        if self._short is not None:
            return int((_enqueue_locked if self._short else _enqueue)(*self._call))
        status = self._trials.call(_enqueue, _enqueue_locked, *self._call)
        self._short = self._trials.short
        return int(status)

    def enqueue_with_event(self) -> Any:
        """Queue the kernel; return its event."""
        if _enqueue is None:
            queue, kernel, _ = self._held
            return cl.enqueue_nd_range_kernel(queue, kernel, *self._sizes)
        event = ctypes.c_void_p()
        if status := _enqueue(*self._call[:-1], ctypes.byref(event)):
            raise status_error(status)
        return cl.Event.from_int_ptr(event.value, retain=False)


def status_error(status: int, name: str = _NAME) -> Any:
    """Return pyopencl's error for the status of an OpenCL function."""
    return cl.LogicError(cl._cl._ErrorRecord(name, status, ""))
