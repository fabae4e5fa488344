"""The times that the kernel of a region takes of its own steps, by the processor's counter of cycles (region.cl)."""

import time
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.plan.region_program import RegionProgram
from litecl.delegate.plan.region_tables import StepTime
from litecl.delegate.plan.steps import Work
from litecl.delegate.report import LaunchTime
from litecl.interpreter.graph import Array

_APART_S = 0.03  # between two readings of the counter: a microsecond of doubt is then a part in ten thousand
_READINGS = 7


class StepTimes:
    """The times of one region's steps, in device memory behind its progress, from byte ``start`` on.

    workers: how many work-items write stamps; 1 writes none.
    A kernel that the calling thread runs forgets the times of its last run itself, and stamps are written in every run;
    so only those of steps within loops and branches that one of several workers runs are cleared.
    """

    def __init__(self, program: RegionProgram, device: Device, workers: int, start: int) -> None:
        self._program, self._device, self._start = program, device, start
        rows, stamps = len(program.works), workers * (program.places + 1)
        self._seen = np.zeros(rows * len(StepTime) + stamps, np.int64)
        self._times = self._seen[:-stamps].reshape(rows, len(StepTime))
        self._stamps = self._seen[-stamps:].reshape(workers, program.places + 1)
        self._solo = workers == 1
        self._inner = not all(map(self._is_outermost, program.launches)) and not self._solo
        self.size_bytes = self._seen.nbytes

    def begin(self, buffer: Any, shared: Array | None) -> list[Any]:
        """Take a buffer, and its bytes as the host sees them; return the kernel's argument: where the times begin."""
        self._buffer = buffer
        self._shared = None if shared is None else shared[self._start :][: self._times.nbytes]
        cl.enqueue_copy(self._device.queue, buffer, self._seen, dst_offset=self._start)
        return [np.int32(self._start // self._seen.itemsize)]

    def clear(self) -> None:
        """Set times that the kernel would add to to zero, while nothing is under way."""
        if not self._inner:
            return
        if self._shared is not None:
            self._shared.fill(0)
        else:
            cl.enqueue_fill_buffer(self._device.queue, self._buffer, np.int32(0), self._start, self._times.nbytes)

    def read(self, event: Any = None) -> list[tuple[Work, LaunchTime]]:
        """Return the times of launches in the last run, in the order of the table. event: of the kernel, if queued."""
        cl.enqueue_copy(self._device.queue, self._seen, self._buffer, src_offset=self._start, is_blocking=True)
        runs = self._times[:, StepTime.RUNS]
        if not runs.any() and not self._stamps.any():
            return []
        ms = cycle_s(self._device) * 1e3
        queued_ms = 0.0 if event is None else (event.profile.start - event.profile.queued) * 1e-6
        ends = self._ends()
        begin = self._times[runs > 0, StepTime.FIRST].min(initial=ends[0] or np.iinfo(np.int64).max)
        found = []
        for position, work in self._program.launches.items():
            first, cycles, times = self._step(position, ends)
            start_ms = queued_ms + max(0, first - int(begin)) * ms if times else 0.0
            found.append((work, LaunchTime(max(0, cycles) * ms, 0.0, start_ms, times)))
        return found

    def _ends(self) -> list[int]:
        """Return when the first worker began, and when each place was first found to be done; zeros of one worker. A
        helper that came late or left early has not seen all.
        """
        seen = np.where(self._stamps == 0, np.iinfo(np.int64).max, self._stamps).min(axis=0)
        return [int(t) for t in np.maximum.accumulate(seen % np.iinfo(np.int64).max)]

    def _step(self, position: int, ends: list[int]) -> tuple[int, int, int]:
        """Return when an entry first began, how many cycles it took, and how often it ran."""
        place = self._program.works[position].place
        if self._solo or not self._is_outermost(position):
            first, cycles, runs, measured = self._times[position].tolist()
            return first, cycles * runs // max(1, measured), runs
        return ends[place], ends[place + 1] - ends[place], 1

    def _is_outermost(self, position: int) -> bool:
        """Return whether all workers come to an entry: then it is alone at its place."""
        works = self._program.works
        beside = (works[i].place for i in (position - 1, position + 1) if 0 <= i < len(works))
        return all(place != works[position].place for place in beside)


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
