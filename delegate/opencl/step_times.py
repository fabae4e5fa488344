"""Times of steps in device memory, and the processor's counter of cycles as kernels read it."""

import time
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.step_times import StepTimes
from litecl.delegate.opencl.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.plan.region_program import RegionProgram
from litecl.delegate.plan.steps import Work
from litecl.delegate.report import LaunchTime
from litecl.interpreter.graph import Array

_APART_S = 0.03  # between two readings of the counter: a microsecond of doubt is then a part in ten thousand
_READINGS = 7


class CLStepTimes(StepTimes):
    """The times of one region's steps in device memory, from byte ``start`` on behind its progress."""

    def __init__(self, program: RegionProgram, device: Device, workers: int, start: int) -> None:
        super().__init__(program, workers)
        self._device, self._start = device, start

    def begin(self, buffer: Any, shared: Array | None) -> list[Any]:
        """Take a buffer, and its bytes as the host sees them; return the kernel's argument: where the times begin."""
        self._buffer = buffer
        self._shared = None if shared is None else shared[self._start :][: self.times_bytes]
        cl.enqueue_copy(self._device.queue, buffer, self.seen, dst_offset=self._start)
        return [np.int32(self._start // self.seen.itemsize)]

    def clear(self) -> None:
        """Set times that the kernel would add to to zero, while nothing is under way."""
        if not self.inner:
            return
        if self._shared is not None:
            self._shared.fill(0)
        else:
            cl.enqueue_fill_buffer(self._device.queue, self._buffer, np.int32(0), self._start, self.times_bytes)

    def read(self, event: Any = None) -> list[tuple[Work, LaunchTime]]:
        """Return the times of launches in the last run, in the order of the table. event: of the kernel, if queued."""
        cl.enqueue_copy(self._device.queue, self.seen, self._buffer, src_offset=self._start, is_blocking=True)
        queued_ms = 0.0 if event is None else (event.profile.start - event.profile.queued) * 1e-6
        return self.found(cycle_s(self._device), queued_ms) if self.seen.any() else []


_cycles: dict[tuple[str, ...], float] = {}  # by the identities of devices


def cycle_s(device: Device) -> float:
    """Return how long a cycle of the processor's counter takes, in seconds; it is measured once for an identity."""
    if device.identity not in _cycles:
        _cycles[device.identity] = _measured_cycle_s(device)
    return _cycles[device.identity]


def _measured_cycle_s(device: Device) -> float:
    _clock(device)  # the first one compiles
    before_s, before = _clock(device)
    time.sleep(_APART_S)
    after_s, after = _clock(device)
    return (after_s - before_s) / (after - before)


def _clock(device: Device) -> tuple[float, int]:
    """Return a time of the host's and what the counter said then, of the readings the one that took least."""
    value: Array = np.zeros(1, np.int64)
    buffer = device.buffer(value.nbytes)
    kernel = device.programs.kernel("clock", "read_clock", {})
    bound = BoundKernel(device.queue, kernel, [buffer], (1,), (1,))
    best = (float("inf"), 0.0, 0)
    for _ in range(_READINGS):
        start_s = time.perf_counter()
        bound.enqueue()
        device.queue.finish()
        end_s = time.perf_counter()
        cl.enqueue_copy(device.queue, value, buffer, is_blocking=True)
        best = min(best, (end_s - start_s, (start_s + end_s) / 2, int(value[0])))
    return best[1:]
