"""A plan as one kernel whose workers run its launches in turn (kernels_cl/region.cl)."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.errors import too_many_iterations
from litecl.delegate.backend.protocols import AtOnce, Faster
from litecl.delegate.backend.trials import may_be_short
from litecl.delegate.kit.shared import packed
from litecl.delegate.opencl.again import AgainRecord
from litecl.delegate.opencl.crew import DOOR_BYTES, Crew, Helpers
from litecl.delegate.opencl.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.opencl.memory import Memory
from litecl.delegate.opencl.step_times import CLStepTimes
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_program import RegionProgram, region_program
from litecl.delegate.plan.region_tables import Count, Entry, LaunchLine, RegionSize, Shift
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import Counters, LaunchTime
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.graph import Array

# Work-groups per thread: PoCL hands them out in batches, and every thread must get one.
_GROUPS_PER_UNIT = 4


class RegionKernel:
    """All launches in one kernel, whose workers run them in turn (region.cl)."""

    def __init__(self, plan: Plan, device: Device, memory: Memory, most_iterations: int | None) -> None:
        program = region_program(plan.steps, memory.region_address, most_iterations)
        if program is None:
            raise KernelBuildError("a launch has arguments that region.cl cannot pass")
        self._plan, self._device, self._most, self._memory = plan, device, most_iterations, memory
        program = replace(program, own=tuple(memory.own_shifts))
        self._limited_loops = bool(plan.loops) and most_iterations is not None
        units, crew = device.target.compute_units, device.crew
        self._workers = 1 if units == 1 else units if crew is not None else units * _GROUPS_PER_UNIT
        self._groups = self._workers if crew is None else 1
        self._runs_at_once = self._groups == 1 and not device.needs_threads
        self._event: Any = None
        if device.profile and self._runs_at_once:
            device.forget_times()
        self._helpers: Helpers | None = None
        self._progress_bytes = RegionSize.LINE_BYTES * (len(LaunchLine) + (self._workers + 1) * program.places)
        self._step_times = CLStepTimes(program, device, self._workers, self._progress_bytes) if device.profile else None
        entries = packed(Entry, program.works)
        tables = [self._upload(table) for table in (entries, program.args)]
        tables.append(self._prepare_shifts())
        self._prepare_counts()
        tables.append(self._counts_buffer)
        times_bytes = 0 if self._step_times is None else self._step_times.size_bytes
        self._progress, seen = self._shared(self._progress_bytes + times_bytes)
        arguments = [memory.arena, memory.constants, *tables, self._progress, np.int32(len(program.works))]
        arguments += [] if self._step_times is None else self._step_times.begin(self._progress, seen)
        self._again = AgainRecord(device) if self._may_run_again() else None
        made = partial(device.programs.region_kernel, program, timed=device.profile, again=self._again is not None)
        if crew is None:
            kernel = made("run", solo=units == 1)
        else:
            kernel = made("lead")
            arguments += self._prepare_helpers(crew, program)
        if self._again is not None:
            arguments.append(self._again.buffer)
        self._run_plan: AtOnce = self._launch if self._again is None else self._launch_once
        self._first_own = len(arguments)
        arguments += [own.buffer for own in memory.own.values()]
        self._kernel = BoundKernel(
            device.queue, kernel, arguments, (self._groups,), (1,), may_be_short=may_be_short(plan)
        )

    def _prepare_helpers(self, crew: Crew, program: RegionProgram) -> list[Any]:
        """Prepare the kernel ``assist``; return the last arguments of ``lead``."""
        device = self._device
        door, seen = self._shared(DOOR_BYTES)
        assert seen is not None  # a crew's device shares its memory
        if crew.device.calls_addresses and device.calls_addresses:
            kernel = crew.device.programs.helper_kernel()
        else:
            kernel = crew.device.programs.region_kernel(replace(program, own=()), "assist", timed=device.profile)
        self._helpers = Helpers(crew, kernel, seen, door)
        return [door, np.int32(self._workers)]

    def _shared(self, size_bytes: int) -> tuple[Any, Array | None]:
        """Allocate device memory of zeros; return it, and as the host sees it."""
        buffer, seen = self._device.shared_buffer(size_bytes)
        if seen is not None:
            seen.fill(0)
        else:
            cl.enqueue_fill_buffer(self._device.queue, buffer, np.uint8(0), 0, size_bytes)
        return buffer, seen

    def renew(self) -> None:
        """Pass the memory's own buffers, which are others than before."""
        for i, own in enumerate(self._memory.own.values()):
            self._kernel.set_argument(self._first_own + i, own.buffer)

    def turn(self, turned: bool) -> None:
        """See ``Execution.turn``."""
        if self._sets is not None:
            self._sets[...] = self._turns[turned]
            return
        start = np.uint64().nbytes * (Shift.SETS + 2 * self._plan.turns)
        try:
            cl.enqueue_copy(self._device.queue, self._shifts, self._turns[turned], dst_offset=start)
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    def run(self, counters: Counters) -> None:
        """Run the region again, or clear the counters and queue the one kernel."""
        if self._again is not None and self._shares_counts and not self._memory.under_way:
            if (faster := self._run_plan()) is not None:
                self._run_plan = faster.run
            counters.kernel_launches += 1
            return
        try:
            if self._helpers is not None:
                self._helpers.call()
            if self._groups > 1:
                cl.enqueue_fill_buffer(self._device.queue, self._progress, np.int32(0), 0, self._progress_bytes)
            if self._step_times is None or self._runs_at_once:
                self._kernel.enqueue()
            else:
                self._step_times.clear()
                self._event = self._kernel.enqueue_with_event()
            counters.kernel_launches += 1
            if self._limited_loops:
                self._read_counts(counters)
                self._check()
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    @property
    def at_once(self) -> AtOnce | None:
        """Return a function that runs the region, if queueing a kernel runs it and the host can read the loops'
        counters.
        """
        if not self._runs_at_once or not self._shares_counts:
            return None
        return self._run_plan

    def _may_run_again(self) -> bool:
        """Return whether later runs may be no launches: not with a user's memory, which may change, or kernels, which
        may use what only a launch provides.
        """
        able = self._device.runs_again and self._runs_at_once
        return able and not self._memory.own and not self._plan.has_kernels_of_users

    def _launch(self) -> Faster | None:
        return self._complete(self._kernel.run_at_once)

    def _launch_once(self) -> Faster:
        """Launch the region; return how all later runs are run."""
        assert self._again is not None
        self._launch()
        again = self._again.function(may_be_short=may_be_short(self._plan))
        return Faster(self._launch) if again is None else self._completed(again)

    def _completed(self, again: Faster) -> Faster:
        alone = not self._limited_loops and self._helpers is None
        return again if alone else Faster(partial(self._complete, again.run))

    def _complete(self, run: AtOnce) -> Faster | None:
        """Run the region with its helpers, and see that its loops have ended."""
        if self._helpers is not None:
            self._helpers.call()
        faster = run()
        if self._limited_loops:
            self._check()
        return None if faster is None else self._completed(faster)

    def loop(self, loop: Loop) -> str:
        """Describe how a loop runs."""
        return "in the region's kernel"

    def times(self) -> list[tuple[Work, LaunchTime]]:
        """Return the times of steps that the kernel has measured; none unless it was asked to."""
        if self._step_times is None:
            return []
        return self._step_times.read(self._event)

    def _prepare_shifts(self) -> Any:
        """Return region.cl's shifts at the beginning: every loop, and the region itself, reads its first set."""
        turns = slice(Shift.SETS + 2 * self._plan.turns, Shift.SETS + 2 * self._plan.turns + 2)
        shifts = np.zeros(turns.stop + len(self._memory.own), np.uint64)
        for slot in self._plan.slots.values():
            shifts[Shift.SETS + 2 * slot.loop + 1] = slot.set_bytes
        self._shifts, shared = self._shared(shifts.nbytes)
        cl.enqueue_copy(self._device.queue, self._shifts, shifts)
        self._turns = shifts[turns].copy(), shifts[turns][::-1].copy()
        self._sets = None if shared is None else shared.view(np.uint64)[turns]
        return self._shifts

    def _prepare_counts(self) -> None:
        """Allocate the counters of loops, which the host reads in place or by a copy."""
        zeros = np.zeros(Count.LOOPS + len(self._plan.loops), np.int32)
        self._counts_buffer, shared = self._shared(zeros.nbytes)
        self._counts = zeros if shared is None else shared.view(np.int32)
        self._shares_counts = shared is not None

    def _read_counts(self, counters: Counters) -> None:
        if self._shares_counts:
            self._device.queue.finish()
        else:
            cl.enqueue_copy(self._device.queue, self._counts, self._counts_buffer, is_blocking=True)
            counters.host_syncs += 1

    def _check(self) -> None:
        """Raise ModelError if a loop ran too often."""
        if number := self._counts[Count.ENDLESS]:
            loop, zero = self._plan.loops[number - 1], np.int32(0)
            cl.enqueue_fill_buffer(self._device.queue, self._counts_buffer, zero, 0, self._counts.nbytes)
            assert self._most is not None
            raise too_many_iterations(loop, self._most)

    def _upload(self, table: Array) -> Any:
        buffer, _ = self._shared(max(8, table.nbytes))
        if table.size:
            cl.enqueue_copy(self._device.queue, buffer, table)
        return buffer
