"""A plan as one kernel whose workers walk through its launches (kernels_cl/region.cl)."""

from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.errors import too_many_iterations
from litecl.delegate.opencl.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel, is_short
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.opencl.memory import Memory
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_program import region_program
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import Counters
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.graph import Array

# Work-groups offered for every thread: PoCL hands them out in runs, and every thread must get one.
_GROUPS_PER_UNIT = 4
_LINE_BYTES = 64  # of a counter that one worker writes, so that it does not disturb another
_LAUNCH_LINES = 5  # of what a launch within a loop looks like to those that help


class RegionKernel:
    """All launches in one kernel, whose workers walk through them (region.cl)."""

    def __init__(self, plan: Plan, device: Device, memory: Memory, most_iterations: int | None) -> None:
        program = region_program(plan.steps, memory.region_address, most_iterations)
        if program is None:
            raise KernelBuildError("a launch has arguments that region.cl cannot pass")
        self._plan, self._device, self._most = plan, device, most_iterations
        units = device.target.compute_units
        kernel = device.programs.region_kernel(program, solo=units == 1)
        self._groups = 1 if units == 1 else units * _GROUPS_PER_UNIT
        self._progress_bytes = _LINE_BYTES * (_LAUNCH_LINES + (self._groups + 1) * program.places)
        self._progress = device.buffer(self._progress_bytes)
        self._counts = np.zeros(1 + len(plan.loops), np.int32)
        tables = [self._upload(table) for table in (program.works, program.args, _shifts(plan), self._counts)]
        self._counts_buffer = tables[-1]
        arguments = [memory.arena, memory.constants, *tables, self._progress, np.int32(len(program.works))]
        short = not plan.loops and is_short(plan.flops)
        self._kernel = BoundKernel(device.queue, kernel, arguments, (self._groups,), (1,), short=short)

    def run(self, counters: Counters) -> None:
        """One kernel, after its counters are cleared."""
        try:
            if self._groups > 1:
                cl.enqueue_fill_buffer(self._device.queue, self._progress, np.int32(0), 0, self._progress_bytes)
            self._kernel.enqueue()
            counters.kernel_launches += 1
            if self._most is not None and self._plan.loops:
                self._check(self._most, counters)
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    def loop(self, loop: Loop) -> str:
        """Say how a loop runs."""
        return "in the region's kernel"

    def times(self) -> list[tuple[Work, float]]:
        """Return nothing: a region in one kernel has no times of its parts."""
        return []

    def _check(self, most: int, counters: Counters) -> None:
        """Reads whether a loop ran too often."""
        queue = self._device.queue
        cl.enqueue_copy(queue, self._counts, self._counts_buffer, is_blocking=True)
        counters.host_syncs += 1
        if self._counts[0]:
            loop = self._plan.loops[self._counts[0] - 1]
            cl.enqueue_fill_buffer(queue, self._counts_buffer, np.int32(0), 0, self._counts.nbytes)
            raise too_many_iterations(loop, most)

    def _upload(self, table: Array) -> Any:
        buffer = self._device.buffer(max(8, table.nbytes))
        if table.size:
            cl.enqueue_copy(self._device.queue, buffer, table)
        return buffer


def _shifts(plan: Plan) -> Array:
    """region.cl's shifts at the beginning: every loop reads its first set."""
    shifts = np.zeros(2 + 2 * len(plan.loops), np.uint64)
    for slot in plan.slots.values():
        shifts[3 + 2 * slot.loop] = slot.set_bytes
    return shifts
