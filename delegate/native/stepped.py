"""A region launch by launch: the host walks its table, as region.cl does, and can stop between launches."""

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from litecl.delegate.backend.errors import too_many_iterations
from litecl.delegate.kit.shared import dtype_of, packed
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_program import RegionProgram
from litecl.delegate.plan.region_tables import Control, Entry, NativeCall, RegionSize, Shift
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import LaunchTime
from litecl.interpreter import limits
from litecl.interpreter.graph import Array

_ENTRY_BYTES = dtype_of(Entry).itemsize
_OFFSET = (1 << RegionSize.OFFSET_BITS) - 1


class Stepped:
    """The launches of a region; the region's function runs each as a table of one entry.

    call: the function's argument (``NativeCall``). shifts: region.cl's. function: calls it. timed: whether to time
    launches.
    """

    def __init__(
        self,
        plan: Plan,
        program: RegionProgram,
        call: Array,
        shifts: Array,
        function: Callable[[], object],
        *,
        timed: bool,
    ) -> None:
        self._plan, self._program, self._call, self._shifts = plan, program, call, shifts
        self._function, self._timed = function, timed
        self._table: Array = packed(Entry, [replace(entry, place=0) for entry in program.works])
        self._counts: dict[int, int] = {}  # iterations, by loop number
        self._times: dict[int, tuple[float, float, int]] = {}  # of launches: first start, total duration, runs
        call[NativeCall.COUNT] = 1

    def run(self) -> int:
        """Run all launches; return their number. Raises ModelError if a loop runs too often, and LimitError."""
        works, at, launches = self._program.works, 0, 0
        self._times.clear()
        while at < len(works):
            entry, here = works[at], at
            at += 1
            if entry.code >= 0:
                self._launch(here)
                launches += 1
            elif entry.code == Control.JUMP:
                at = entry.to
            elif entry.code == Control.SWAP:
                first = Shift.SETS + 2 * entry.loop
                self._shifts[first : first + 2] = self._shifts[first : first + 2][::-1].copy()
            elif entry.code == Control.START:
                self._counts[entry.loop] = 0
            elif entry.code == Control.COUNT:
                self._count(entry)
            elif entry.code != Control.BLOCK and self._jumps(entry):
                at = entry.to
        return launches

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        """Return the launch times of the last run, by the host's clock, in table order; none unless timed."""
        if not self._timed:
            return []
        begin_s = min((first_s for first_s, _, _ in self._times.values()), default=0.0)
        zero = (begin_s, 0.0, 0)
        return [
            (work, LaunchTime(took_s * 1e3, 0.0, (first_s - begin_s) * 1e3, runs))
            for position, work in self._program.launches.items()
            for first_s, took_s, runs in (self._times.get(position, zero),)
        ]

    @staticmethod
    def loop(loop: Loop) -> str:
        """Describe how a loop runs."""
        return "queued, one by one" if loop.trips is None else f"queued, exactly {loop.trips} iterations"

    def _launch(self, position: int) -> None:
        self._call[NativeCall.WORKS] = self._table.ctypes.data + position * _ENTRY_BYTES
        if not self._timed:
            self._function()
            return
        start_s = time.perf_counter()
        self._function()
        took_s = time.perf_counter() - start_s
        first_s, before_s, runs = self._times.get(position, (start_s, 0.0, 0))
        self._times[position] = first_s, before_s + took_s, runs + 1

    def _count(self, entry: Entry) -> None:
        if self._counts[entry.loop] == entry.times:
            raise too_many_iterations(self._plan.loops[entry.loop], entry.times)
        self._counts[entry.loop] += 1

    def _jumps(self, entry: Entry) -> bool:
        """Return whether an entry of a branch or loop jumps. Raises LimitError if the invoke is out of time."""
        if entry.code == Control.UNLESS:
            return not self._holds(entry)
        limits.tick()
        return self._counts[entry.loop] < entry.times if entry.code == Control.REPEAT else self._holds(entry)

    def _holds(self, entry: Entry) -> bool:
        arg = int(self._program.args[entry.first_arg])
        shift = int(self._shifts[arg >> RegionSize.OFFSET_BITS])
        address = (int(self._call[NativeCall.ARENA]) + (arg & _OFFSET) + shift) % (1 << 64)
        return bool(ctypes.c_uint8.from_address(address).value)
