"""The extension ``cl_khr_command_buffer`` where a driver has none: its functions, which queue what was recorded."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from unittest import mock

import pyopencl as cl

from litecl.delegate.opencl.runs.recordings import command_buffer, recorder
from litecl.delegate.opencl.runs.recordings.command_buffer import FUNCTIONS
from litecl.delegate.opencl.unlocked import native

_SUCCESS, _REFUSED, _INVALID = 0, cl.status_code.INVALID_OPERATION, -1138  # CL_INVALID_COMMAND_BUFFER_KHR
_enqueue, _release = native(ctypes.CDLL, "clEnqueueNDRangeKernel"), native(ctypes.CDLL, "clReleaseKernel")
_clone = native(ctypes.CDLL, "clCloneKernel")
_clone.restype = ctypes.c_void_p

Command = tuple[Any, int, Any, Any, Any]
"""A kernel with arguments of its own, dimensions, offsets, sizes and local sizes."""


def record(commands: list[Command], kernel: int, dimensions: int, sizes: int, local: int) -> int:
    """Append a kernel as it is now; return OpenCL's status."""
    status = ctypes.c_int32()
    own = _clone(ctypes.c_void_p(kernel), ctypes.byref(status))  # what is set later is of no concern
    if status.value:
        return status.value
    array = ctypes.c_size_t * dimensions
    commands.append((own, dimensions, None, *(array(*array.from_address(at)) for at in (sizes, local))))
    return _SUCCESS


def run(queue: int, commands: Sequence[Command]) -> int:
    """Queue what was recorded; return OpenCL's status."""
    for kernel, dimensions, offsets, sizes, local in commands:
        own = ctypes.c_void_p(queue), ctypes.c_void_p(kernel)
        if status := _enqueue(*own, ctypes.c_uint32(dimensions), offsets, sizes, local, 0, None, None):
            return int(status)
    return _SUCCESS


def drop(commands: Sequence[Command]) -> None:
    """Release what was recorded."""
    for kernel, *_ in commands:
        _release(ctypes.c_void_p(kernel))


@dataclass
class _Buffer:
    queue: int
    overlapping: bool
    commands: list[Command] = field(default_factory=list)
    finalized: bool = False


@dataclass
class Emulated:
    """The functions. order: in which recorded commands are queued; refused: the name of the one that always fails.

    live: buffers that were created and not released. queued: how often one was queued.
    """

    order: Callable[[Sequence[Command]], Sequence[Command]] = lambda commands: commands
    refused: str = ""
    live: dict[int, _Buffer] = field(default_factory=dict, repr=False)
    queued: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: count(0x1000))

    def functions(self) -> dict[str, Any]:
        """Return the functions as a driver's, by name."""
        own = {
            "clCreateCommandBufferKHR": self._create,
            "clCommandNDRangeKernelKHR": self._record,
            "clFinalizeCommandBufferKHR": self._finalize,
            "clEnqueueCommandBufferKHR": self._run,
            "clReleaseCommandBufferKHR": self._drop,
        }
        return {name: ctypes.CFUNCTYPE(*types)(own[name]) for name, types in FUNCTIONS.items()}

    def _create(self, queues: int, queue: int, properties: int | None, status: int) -> int | None:
        refused = self.refused == "clCreateCommandBufferKHR"
        ctypes.cast(status, ctypes.POINTER(ctypes.c_int32))[0] = _REFUSED if refused else _SUCCESS
        given = [] if properties is None else [*(ctypes.c_uint64 * 3).from_address(properties)]
        if refused or queues != 1 or given not in ([], [0x1293, 1, 0]):  # flags: simultaneous use
            return None
        handle = next(self._numbers)
        self.live[handle] = _Buffer(ctypes.cast(queue, ctypes.POINTER(ctypes.c_void_p))[0] or 0, bool(given))
        return handle

    def _record(self, handle: int, queue: Any, properties: Any, kernel: int, dimensions: int, *rest: Any) -> int:
        buffer, (offsets, sizes, local, points, wait, point, mutable) = self.live.get(handle), rest
        if self.refused == "clCommandNDRangeKernelKHR" or buffer is None or buffer.finalized:
            return _REFUSED
        if any(given is not None for given in (queue, properties, offsets, wait, point, mutable)) or points:
            return cl.status_code.INVALID_VALUE
        return record(buffer.commands, kernel, dimensions, sizes, local)

    def _finalize(self, handle: int) -> int:
        buffer = self.live.get(handle)
        if self.refused == "clFinalizeCommandBufferKHR" or buffer is None or buffer.finalized:
            return _REFUSED
        buffer.finalized = True
        return _SUCCESS

    def _run(self, queues: int, given: Any, handle: int, events: int, wait: Any, event: Any) -> int:
        buffer = self.live.get(handle)
        if buffer is None or queues or events:
            return _INVALID
        if self.refused == "clEnqueueCommandBufferKHR" or not buffer.finalized:
            return _REFUSED
        self.queued += 1
        return run(buffer.queue, self.order(buffer.commands))

    def _drop(self, handle: int) -> int:
        buffer = self.live.pop(handle, None)
        drop(buffer.commands if buffer is not None else ())
        return _INVALID if buffer is None else _SUCCESS


@contextmanager
def emulated(*, overlaps: bool = True, **how: Any) -> Iterator[Emulated]:
    """Give every device the extension; see ``Emulated``. overlaps: whether recordings may be queued again before they
    have ended.
    """
    made = Emulated(**how)
    functions = made.functions()
    with (
        mock.patch.object(command_buffer, "is_listed", lambda device: True),
        mock.patch.object(command_buffer, "functions_of", lambda device: functions),
        mock.patch.object(command_buffer, "can_overlap", lambda device: overlaps),
        mock.patch.dict(recorder._probed, clear=True),
    ):
        yield made
