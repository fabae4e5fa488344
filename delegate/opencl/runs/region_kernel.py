"""A plan for a CPU as one kernel, whose groups run the launches in turn (kernels_cl/region.cl)."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.errors import too_many_iterations
from litecl.delegate.backend.protocols import AtOnce
from litecl.delegate.backend.stack import ample, elsewhere, stack
from litecl.delegate.backend.trials import may_be_short
from litecl.delegate.kit.shared import packed
from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.opencl.memory.memory import Memory
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_program import region_program
from litecl.delegate.plan.region_tables import Count, Entry, LaunchLine, RegionSize, Shift
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import Counters, LaunchTime
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.graph import Array

# Groups per thread, as a runtime may assign them in batches, and every thread must get one.
_GROUPS_PER_UNIT = 4


class RegionKernel:
    """All launches in one kernel. Its groups are the workers that share each launch."""

    def __init__(self, plan: Plan, device: Device, memory: Memory, most_iterations: int | None) -> None:
        program = region_program(plan.steps, memory.region_address, most_iterations)
        if program is None:
            raise KernelBuildError("a launch has arguments that region.cl cannot pass")
        self._plan, self._device, self._most, self._memory = plan, device, most_iterations, memory
        self._limited_loops = bool(plan.loops) and most_iterations is not None
        units = device.target.compute_units
        self._groups = 1 if units == 1 else units * _GROUPS_PER_UNIT
        self._runs_at_once = self._groups == 1 and not device.needs_threads
        tables = [self._upload(table) for table in (packed(Entry, program.works), program.args)]
        tables.append(self._prepare_shifts())
        self._prepare_counts()
        self._progress_bytes = RegionSize.LINE_BYTES * (len(LaunchLine) + (self._groups + 1) * program.places)
        self._progress, _ = self._shared(self._progress_bytes)
        arguments = [memory.arena, memory.constants, *tables, self._counts_buffer, self._progress]
        arguments.append(np.int32(len(program.works)))
        self._first_own = len(arguments)
        arguments += [own.buffer for own in memory.own.values()]
        kernel = device.programs.region_kernel(replace(program, own=tuple(memory.own_shifts)), solo=units == 1)
        self._kernel = BoundKernel(
            device.queue, kernel, arguments, (self._groups,), (1,), may_be_short=may_be_short(plan)
        )

    def _shared(self, size_bytes: int) -> tuple[Any, Array | None]:
        """Allocate zeroed device memory; return it and the host's view, None if memory isn't shared."""
        buffer, seen = self._device.shared_buffer(size_bytes)
        if seen is not None:
            seen.fill(0)
        else:
            cl.enqueue_fill_buffer(self._device.queue, buffer, np.uint8(0), 0, size_bytes)
        return buffer, seen

    def renew(self) -> None:
        """Rebind arguments after the memory's buffers have changed."""
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
        """Clear the progress counters and queue the kernel."""
        try:
            if self._groups > 1:
                cl.enqueue_fill_buffer(self._device.queue, self._progress, np.int32(0), 0, self._progress_bytes)
            self._kernel.enqueue()
            counters.kernel_launches += 1
            if self._limited_loops:
                self._read_counts(counters)
                self._check()
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    @property
    def at_once(self) -> AtOnce | None:
        """Return a function that runs the region, if queueing a kernel runs it and the host can read the loop counters
        in place.
        """
        return self._launch if self._runs_at_once and self._shares_counts else None

    def _launch(self) -> None:
        if not (stack.ample or ample()):
            elsewhere(self._launch)
            return
        self._kernel.run_at_once()
        if self._limited_loops:
            self._check()

    def loop(self, loop: Loop) -> str:
        """Describe how a loop runs."""
        return "in the region's kernel"

    def times(self) -> list[tuple[Work, LaunchTime]]:
        """Return nothing: the kernel's launches aren't timed."""
        return []

    def _prepare_shifts(self) -> Any:
        """Return region.cl's initial shifts: every loop, and the region itself, reads its first set."""
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
        """Allocate the loop counters, which the host reads in place or copies."""
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
