"""Drivers' ways to record launches once and to queue them by one call ever after, and a trial of each."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.errors import typed_errors
from litecl.delegate.opencl.runs.recordings import command_buffer, qualcomm
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array


class Recording(Protocol):
    """Launches of one in-order queue, which run in order, with the arguments that they had when they were recorded."""

    def __len__(self) -> int: ...

    def enqueue(self) -> None:
        """Queue all launches. Raises DelegateError."""


class Recorder(Protocol):
    """Records launches."""

    @property
    def overlaps(self) -> bool:
        """Return whether a recording may be queued again before it has ended."""

    @property
    def name(self) -> str:
        """Return what a recording is called, with its article."""

    @property
    def least(self) -> int:
        """Return how many launches take longer to queue than a recording."""

    def record(self, device: Device, launches: Sequence[BoundKernel], *, overlapping: bool = False) -> Recording:
        """Record launches. overlapping: whether it is queued again before it has ended. Raises DelegateError."""


class NotRightError(DelegateError):
    """A driver that is not to be relied on."""


_probed: dict[int, Recorder | None] = {}  # by device; None if it is not right


def recorder_of(device: Device) -> Recorder | None:
    """Return what records launches of a device; None where its driver does not say that it can. Raises
    NotRightError where it computes something else then, and DelegateError.
    """
    tried: Recorder | None = command_buffer.recorder(device.device) or qualcomm.recorder(device.device)
    if tried is None:
        return None
    key = device.device.int_ptr
    if key not in _probed:
        with typed_errors(f"trying {tried.name}"):
            _probed[key] = tried if _is_right(device, tried) else None
    if _probed[key] is None:
        raise NotRightError(f"{device.name} does not run {tried.name} as it was recorded")
    return _probed[key]


_EXPECTED: Array = np.array([0, 2, 2, 0], np.int32)


def _is_right(device: Device, recorder: Recorder) -> bool:
    """Return whether what is recorded runs in order, with the arguments of then, and as often as it is queued."""
    flags, one, zero = device.buffer(_EXPECTED.nbytes), device.buffer(1), device.buffer(1)
    for buffer, value in ((one, 1), (zero, 0)):
        cl.enqueue_copy(device.queue, buffer, np.array([value], np.uint8), is_blocking=True)

    def bound(entry: str, *arguments: Any) -> BoundKernel:
        kernel = device.programs.kernel("control", entry, {})
        return BoundKernel(device.queue, kernel, [flags, *arguments], (1,), (1,))

    first, second = np.int32(0), np.int32(2)
    launches = [bound("enter_loop", np.int32(-1), first)]
    launches += [bound("decide_loop", first, predicate) for predicate in (one, one, zero, one)]
    launches.append(bound("enter_loop", np.int32(1), second))
    whole, got = recorder.record(device, launches), np.empty_like(_EXPECTED)
    parts = [whole]
    if recorder.overlaps:  # an iteration of the loop, twice
        enter, twice, once = (launches[i:j] for i, j in ((0, 1), (1, 2), (3, 6)))
        again = recorder.record(device, twice, overlapping=True)
        parts = [whole, recorder.record(device, enter), again, again, recorder.record(device, once)]
    for garbage, run in ((7, [whole]), (-7, parts)):
        cl.enqueue_copy(device.queue, flags, np.full_like(got, garbage), is_blocking=True)
        for recorded in run:
            recorded.enqueue()
        cl.enqueue_copy(device.queue, got, flags, is_blocking=True)
        if not np.array_equal(got, _EXPECTED):
            return False
    return True
