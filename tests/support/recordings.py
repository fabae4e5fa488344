"""Qualcomm's ``cl_qcom_recordable_queues`` where a driver has none: its functions, which queue what was recorded."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from unittest import mock

import pyopencl as cl

from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.runs.recordings import command_buffer, qualcomm, recorder
from litecl.delegate.opencl.runs.recordings.qualcomm import FUNCTIONS, LAUNCH
from support.command_buffers import Command, drop, record, run

_SUCCESS, _REFUSED = 0, cl.status_code.INVALID_OPERATION


@dataclass
class _Recording:
    queue: int
    commands: list[Command] = field(default_factory=list)
    ended: bool = False


@dataclass
class Recordings:
    """The functions. order: in which recorded kernels are queued; refused: the name of the one that always fails. most:
    kernels in a recording.

    live: recordings that were begun and not released. queued: how often one was queued.
    """

    order: Callable[[Sequence[Command]], Sequence[Command]] = lambda commands: commands
    refused: str = ""
    most: int = 100
    live: dict[int, _Recording] = field(default_factory=dict, repr=False)
    queued: int = 0
    _recordable: dict[int, Any] = field(default_factory=dict, repr=False)  # kept, so that no other gets the address
    _numbers: Iterator[int] = field(default_factory=lambda: count(0x1000))

    def functions(self) -> dict[str, Any]:
        """Return the functions as a driver's, by name."""
        types = {**FUNCTIONS, LAUNCH: qualcomm._LAUNCH_TYPES}
        own = {
            "clNewRecordingQCOM": self._begin,
            "clEndRecordingQCOM": self._end,
            "clEnqueueRecordingQCOM": self._run,
            "clReleaseRecordingQCOM": self._drop,
            LAUNCH: self._record,
        }
        return {name: ctypes.CFUNCTYPE(*types[name])(function) for name, function in own.items()}

    def recordable_queue(self, device: Device) -> Any:
        """Return a queue to which nothing is ever queued."""
        queue = cl.CommandQueue(device.context, device.device)
        self._recordable[queue.int_ptr] = queue
        return queue

    def _begin(self, queue: int, status: int) -> int | None:
        refused = self.refused == "clNewRecordingQCOM" or queue not in self._recordable or self._open(queue)
        ctypes.cast(status, ctypes.POINTER(ctypes.c_int32))[0] = _REFUSED if refused else _SUCCESS
        if refused:
            return None
        handle = next(self._numbers)
        self.live[handle] = _Recording(queue)
        return handle

    def _open(self, queue: int) -> _Recording | None:
        return next((made for made in self.live.values() if made.queue == queue and not made.ended), None)

    def _record(self, queue: int, kernel: int, dimensions: int, *rest: Any) -> int:
        made, (offsets, sizes, local, events, wait, event) = self._open(queue), rest
        if self.refused == LAUNCH or made is None or len(made.commands) == self.most:
            return _REFUSED
        if any(given is not None for given in (offsets, wait, event)) or events:
            return cl.status_code.INVALID_VALUE
        return record(made.commands, kernel, dimensions, sizes, local)

    def _end(self, handle: int) -> int:
        made = self.live.get(handle)
        if self.refused == "clEndRecordingQCOM" or made is None or made.ended:
            return _REFUSED
        made.ended = True
        return _SUCCESS

    def _run(self, queue: int, handle: int, *rest: Any) -> int:
        made = self.live.get(handle)
        if self.refused == "clEnqueueRecordingQCOM" or made is None or not made.ended or queue in self._recordable:
            return _REFUSED
        if any(rest):
            return cl.status_code.INVALID_VALUE
        self.queued += 1
        return run(queue, self.order(made.commands))

    def _drop(self, handle: int) -> int:
        made = self.live.pop(handle, None)
        drop(made.commands if made is not None else ())
        return _REFUSED if made is None else _SUCCESS


@contextmanager
def recordable(*, least: int = 1, **how: Any) -> Iterator[Recordings]:
    """Give every device the extension; see ``Recordings``. least: launches that are worth a recording."""
    made = Recordings(**how)
    functions = made.functions()
    with (
        mock.patch.object(command_buffer, "is_listed", lambda device: False),  # which would come first
        mock.patch.object(qualcomm, "is_listed", lambda device: True),
        mock.patch.object(qualcomm, "functions_of", lambda device: functions),
        mock.patch.object(qualcomm, "most_launches", lambda device: made.most),
        mock.patch.object(qualcomm, "recordable_queue", made.recordable_queue),
        mock.patch.object(qualcomm.QualcommRecorder, "least", least),
        mock.patch.dict(recorder._probed, clear=True),
    ):
        yield made
