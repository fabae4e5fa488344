"""A plan as a function in a shared library. The host calls it once for all launches, or once per launch."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from litecl.delegate.backend.errors import host_memory, too_many_iterations
from litecl.delegate.backend.protocols import AtOnce, Faster
from litecl.delegate.backend.trials import Trials, may_be_short, may_not_pay
from litecl.delegate.cl_op import Operand
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.kit.shared import packed
from litecl.delegate.native.library import Libraries
from litecl.delegate.native.memory import ConstantPool, NativeMemory
from litecl.delegate.native.methods import address, method
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_program import RegionProgram, region_program
from litecl.delegate.plan.region_tables import Count, Entry, LaunchLine, NativeCall, RegionSize, Shift
from litecl.delegate.plan.steps import Loop, Work, may_be_long
from litecl.delegate.report import Counters, LaunchTime, Manner
from litecl.interpreter import limits
from litecl.interpreter.buffers import Buffer, HostBuffer, aligned
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.graph import Array

if TYPE_CHECKING:
    from litecl.delegate.backend.step_times import StepTimes
    from litecl.delegate.native.stepped import Stepped

_SHORT_S = 2e-6  # above this, threads that release the GIL get more done than one
_HAS_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()
_GATE = aligned(RegionSize.LINE_BYTES)  # where threads wait before taking the GIL; in its own cache line


class NativeExecution:
    """See ``Execution`` in delegate/backend/protocols.py. pool: of the constants. workers: the number of threads."""

    def __init__(self, plan: Plan, libraries: Libraries, pool: ConstantPool, workers: int, options: CLOptions) -> None:
        reason = _why_stepped(plan, options)
        with host_memory("preparing a region"):
            self.memory = NativeMemory(plan, pool)
            self.manner = Manner("queued", reason) if reason else Manner("one kernel", libraries.origin)
            self._plan, self._most = plan, options.max_loop_iterations
            program = program_of(plan, self.memory, options)
            self._limited_loops = bool(plan.loops) and self._most is not None
            self._step_times = _step_times(program, workers) if options.profile and not reason else None
            self._stepped: Stepped | None = None
            self._libraries, self._launches = libraries, min(1, len(program.works))
            self._shifts = self._first_shifts()
            self._buffers: Mapping[Operand, Buffer] = {}
            self._asked: Mapping[Operand, Buffer] | None = None
            self._moved = self._outside[0].copy()  # shifts for the buffers last passed to use()
            self._call: AtOnce = _nothing  # the function expects at least one entry
            if program.works:
                self._record = self._prepare(program, libraries, workers)
                self._trials = Trials(_SHORT_S)
                if reason:
                    self._stepped, self._call = self._by_launch(program, timed=options.profile), self._step
                else:
                    self._call = self._tried if may_be_short(plan) and _HAS_LOCK else self._freely()

    def _prepare(self, program: RegionProgram, libraries: Libraries, workers: int) -> Array:
        """Build the function's tables and bind it to its argument; return the argument (``NativeCall``)."""
        library = libraries.region(program, workers, timed=self._step_times is not None)
        works, args = packed(Entry, program.works), program.args
        progress_bytes = RegionSize.LINE_BYTES * (len(LaunchLine) + (workers + 1) * program.places)
        progress = aligned(progress_bytes + (0 if self._step_times is None else self._step_times.size_bytes))
        if self._step_times is not None:
            self._step_times.seen = progress[progress_bytes:].view(np.int64)
        self._counts = aligned(4 * (Count.LOOPS + len(self._plan.loops))).view(np.int32)
        call = aligned(8 * len(NativeCall)).view(np.uint64)
        tables = {
            NativeCall.ARENA: self.memory.arena,
            NativeCall.WORKS: works,
            NativeCall.ARGS: args,
            NativeCall.SHIFTS: self._shifts,
            NativeCall.COUNTS: self._counts,
            NativeCall.PROGRESS: progress,
            NativeCall.FUNCTIONS: np.array([address(library, f.name) for f in program.functions], np.uint64),
        }
        for position, table in tables.items():
            call[position] = table.ctypes.data
        call[NativeCall.COUNT] = len(program.works)
        call[NativeCall.WORKERS] = workers
        call[NativeCall.TIMES] = progress_bytes // 8
        call[NativeCall.MEASURED] = self.manner.runs == "one kernel" and may_not_pay(self._plan)
        if workers > 1:
            from litecl.delegate.native.workers import crew

            helpers = crew(libraries)
            helpers.hire(workers - 1)
            call[NativeCall.DOOR], call[NativeCall.TAKE], call[NativeCall.LEAD], call[NativeCall.ALONG] = (
                helpers.door,
                helpers.take,
                helpers.lead,
                address(library, "work_along"),
            )
        call[NativeCall.REGION] = address(library, "run_region")
        self._library, self._held = library, [call, *tables.values()]  # they hold only addresses of each other
        self._free, self._locked = (self._method(call, locked=locked) for locked in (False, True))
        return call

    def _method(self, call: Array, *, locked: bool) -> AtOnce:
        """Return the function that runs the region with an argument."""
        return method(self._library, call, (self._held, self.memory), locked=locked)

    def _by_launch(self, program: RegionProgram, *, timed: bool) -> "Stepped":
        """Return what runs the region launch by launch."""
        from litecl.delegate.native.stepped import Stepped

        return Stepped(self._plan, program, self._record, self._shifts, self._free, timed=timed)

    def _freely(self) -> AtOnce:
        """Return the function that releases the GIL, and waits at the gate before it takes it again."""
        if _HAS_LOCK:
            self._record[NativeCall.GATE] = _GATE.ctypes.data
        return self._free

    def _first_shifts(self) -> Array:
        """Return region.cl's initial shifts: every loop, and the region itself, reads its first set."""
        turns = slice(Shift.SETS + 2 * self._plan.turns, Shift.SETS + 2 * self._plan.turns + 2)
        shifts = aligned(8 * (turns.stop + len(self.memory.shifts))).view(np.uint64)
        shifts[Shift.CONSTANTS] = (self.memory.base - self.memory.arena.ctypes.data) % (1 << 64)
        for slot in self._plan.slots.values():
            shifts[Shift.SETS + 2 * slot.loop + 1] = slot.set_bytes
        self._turns = shifts[turns].copy(), shifts[turns][::-1].copy()
        self._sets, self._outside = shifts[turns], [shifts[turns.stop :]]
        return shifts

    def _each_turn(self, *, locked: bool) -> tuple[AtOnce, AtOnce] | None:
        """Return the function for each order of the states' two sets, each with its own tables; None without states."""
        if not self._plan.states:
            return None
        return self._with_sets(self._turns[False], locked), self._with_sets(self._turns[True], locked)

    def _with_sets(self, sets: Array, locked: bool) -> AtOnce:
        shifts, call = self._shifts.copy(), self._record.copy()
        first = Shift.SETS + 2 * self._plan.turns
        shifts[first : first + 2] = sets
        self._outside.append(shifts[first + 2 :])
        call[NativeCall.SHIFTS] = shifts.ctypes.data
        self._held += [shifts, call]
        return self._method(call, locked=locked)

    at_once_on_buffers = True

    def use(self, buffers: Mapping[Operand, Buffer]) -> None:
        """See ``TakesBuffers``."""
        if buffers and buffers is not self._asked:
            self._asked, self._moved = buffers, np.zeros_like(self._moved)
            for root, buffer in buffers.items():
                number, shift = self.memory.shift(root, cast(HostBuffer, buffer))
                self._moved[number] = shift
        for outside in self._outside:
            outside[...] = self._moved if buffers else 0
        self._buffers = buffers

    def fill(self, operand: Operand, buffer: Buffer) -> None:
        """See ``TakesBuffers``."""
        into = self._buffers[operand]
        assert into.host is not None
        into.host[: operand.size_bytes] = np.asarray(buffer.host)[: operand.size_bytes]

    def turn(self, turned: bool) -> None:
        """See ``Execution.turn``."""
        self._sets[...] = self._turns[turned]

    def run(self, counters: Counters) -> None:
        """Run the region and count its launches."""
        if self._stepped is not None:
            counters.kernel_launches += self._stepped.run()
            return
        if (faster := self._run_plan()) is not None:
            self._call = faster.run
        counters.kernel_launches += self._launches

    @property
    def at_once(self) -> AtOnce | None:
        """Return a function that runs the region; None if it runs launch by launch and has control flow."""
        if self._stepped is not None and self._plan.control:
            return None
        return self._run_plan if self._limited_loops else self._call

    def _step(self) -> None:
        assert self._stepped is not None
        self._stepped.run()

    def _run_plan(self) -> Faster | None:
        faster = self._call()
        if self._limited_loops:
            self._check()
            return None
        return faster

    def _tried(self) -> Faster | None:
        """Run with the GIL held or released, as trials decide; return the better function once they are over."""
        self._trials.call(self._free, self._locked)
        if self._trials.short is None:
            return None
        run = self._locked if self._trials.short else self._freely()
        return Faster(run, alone=True, turns=self._each_turn(locked=self._trials.short))

    def _check(self) -> None:
        """Raise ModelError if a loop ran too often."""
        if number := self._counts[Count.ENDLESS]:
            self._counts[...] = 0
            assert self._most is not None
            raise too_many_iterations(self._plan.loops[number - 1], self._most)

    def finish(self) -> None:
        """Do nothing: runs are synchronous."""

    def loop(self, loop: Loop) -> str:
        """Describe how a loop runs."""
        return self._stepped.loop(loop) if self._stepped is not None else "in the region's kernel"

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        """Return the step times of the last run; none unless the plan is profiled."""
        if self._stepped is not None:
            return self._stepped.times()
        if self._step_times is None:
            return []
        from litecl.delegate.native.clock import cycle_s

        return self._step_times.of_launches(cycle_s(self._libraries.crew()))


def _step_times(program: RegionProgram, workers: int) -> "StepTimes":
    from litecl.delegate.backend.step_times import StepTimes

    return StepTimes(program, workers)


def _nothing() -> Faster | None:
    """Run a region without launches."""
    return None


def program_of(plan: Plan, memory: NativeMemory, options: CLOptions) -> RegionProgram:
    """Return a plan's program. Raises KernelBuildError if one function can't run it."""
    program = region_program(plan.steps, memory.address, options.max_loop_iterations, has_local=True)
    if program is None:
        raise KernelBuildError("a launch has groups of several work-items, or arguments that cannot be passed")
    return program


def _why_stepped(plan: Plan, options: CLOptions) -> str:
    """Return why the host runs launches one by one; empty if one call runs them all."""
    if options.queue_loops:
        return "queue_loops=True"
    if limits.timed() and may_be_long(plan.steps):
        return "time_limit does not interrupt a running kernel"
    return ""
