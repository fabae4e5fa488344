"""Times of a region's steps, which its function measures with the processor's cycle counter (region.cl)."""

import numpy as np

from litecl.delegate.plan.region_program import RegionProgram
from litecl.delegate.plan.region_tables import StepTime
from litecl.delegate.plan.steps import Work
from litecl.delegate.report import LaunchTime
from litecl.interpreter.graph import Array


class StepTimes:
    """The times of one region's steps, as its function lays them out after its progress.

    workers: how many write stamps; a single one writes none. seen: the times and stamps, 8 bytes each.
    """

    def __init__(self, program: RegionProgram, workers: int) -> None:
        self._program = program
        self._rows, self._workers = len(program.works), workers
        self._solo = workers == 1
        self.seen = np.zeros(self.size_bytes // 8, np.int64)

    @property
    def times_bytes(self) -> int:
        """The size of the times, which precede the stamps."""
        return 8 * self._rows * len(StepTime)

    @property
    def size_bytes(self) -> int:
        """The size of times and stamps."""
        return self.times_bytes + 8 * self._workers * (self._program.places + 1)

    def of_launches(self, cycle_s: float) -> list[tuple[Work, LaunchTime]]:
        """Return the times of the last run's launches, in table order; none without a run.

        cycle_s: the duration of a counter cycle.
        """
        stamps = self.seen[self.times_bytes // 8 :].reshape(self._workers, self._program.places + 1)
        times = self.seen[: self.times_bytes // 8].reshape(self._rows, len(StepTime))
        runs = times[:, StepTime.RUNS]
        if not runs.any() and not stamps.any():
            return []
        ms, ends = cycle_s * 1e3, _ends(stamps)
        begin = times[runs > 0, StepTime.FIRST].min(initial=ends[0] or np.iinfo(np.int64).max)
        launches = []
        for position, work in self._program.launches.items():
            first, cycles, count = self._step(position, times, ends)
            start_ms = max(0, first - int(begin)) * ms if count else 0.0
            launches.append((work, LaunchTime(max(0, cycles) * ms, 0.0, start_ms, count)))
        return launches

    def _step(self, position: int, times: Array, ends: list[int]) -> tuple[int, int, int]:
        """Return an entry's first start, its cycles, and its number of runs."""
        place = self._program.works[position].place
        if self._solo or not self._is_outermost(position):
            first, cycles, runs, measured = times[position].tolist()
            return first, cycles * runs // max(1, measured), runs
        return ends[place], ends[place + 1] - ends[place], 1

    def _is_outermost(self, position: int) -> bool:
        """Return whether all workers reach an entry: no other entry then has its place."""
        works = self._program.works
        beside = (works[i].place for i in (position - 1, position + 1) if 0 <= i < len(works))
        return all(place != works[position].place for place in beside)


def _ends(stamps: Array) -> list[int]:
    """Return when the first worker began, and when one first saw each place done; zeros for a single worker. Helpers
    that come late or leave early miss some.
    """
    seen = np.where(stamps == 0, np.iinfo(np.int64).max, stamps).min(axis=0)
    return [int(t) for t in np.maximum.accumulate(seen % np.iinfo(np.int64).max)]
