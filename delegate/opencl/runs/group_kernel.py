"""Steps that one work-group of a GPU runs in one launch (kernels_cl/region.cl)."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.errors import too_many_iterations
from litecl.delegate.kit.shared import packed
from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.memory.memory import Memory
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_program import region_program
from litecl.delegate.plan.region_tables import Count, Entry, Shift
from litecl.delegate.plan.steps import Loop, OneGroup, control_of, works_of
from litecl.delegate.report import Counters
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.graph import Array


class LoopCounts:
    """The iteration counts of a plan's loops, written by its groups. most: the limit per loop, or None."""

    def __init__(self, plan: Plan, device: Device, most: int | None) -> None:
        self._plan, self._device, self.most = plan, device, most
        self._zeros = np.zeros(Count.LOOPS + len(plan.loops), np.int32)
        self.buffer = device.buffer(self._zeros.nbytes)
        cl.enqueue_copy(device.queue, self.buffer, self._zeros)

    def check(self, counters: Counters) -> None:
        """If iterations are limited, wait for the counts; raise ModelError if a loop ran too often."""
        if self.most is None:
            return
        counts = np.empty_like(self._zeros)
        cl.enqueue_copy(self._device.queue, counts, self.buffer, is_blocking=True)
        counters.host_syncs += 1
        if number := counts[Count.ENDLESS]:
            cl.enqueue_copy(self._device.queue, self.buffer, self._zeros)
            raise too_many_iterations(self._plan.loops[number - 1], self.most)


class GroupKernel:
    """The kernel of one part of a plan. Raises KernelBuildError if the runtime can't link it.

    around: the enclosing loops, or the region itself, whose sets it uses.
    """

    def __init__(self, part: OneGroup, plan: Plan, device: Device, memory: Memory, counts: LoopCounts) -> None:
        program = region_program(part.steps, memory.region_address, counts.most)
        if program is None:
            raise KernelBuildError("a launch has arguments that region.cl cannot pass")
        own = {inner.number for inner in control_of(part.steps) if isinstance(inner, Loop)}
        args = [arg for work in works_of(part.steps) for arg in work.launch.args]
        self.around = {loop for arg in args for loop in memory.loops_of(arg)} - own
        self._plan, self._device, self._memory = plan, device, memory
        self._program = replace(program, own=tuple(memory.own_shifts))
        tables = [_uploaded(device, table) for table in (packed(Entry, program.works), program.args)]
        self._before = [memory.arena, memory.constants, *tables]
        self._after = [counts.buffer, np.int32(len(program.works))]

    def bound(self, swapped: Collection[int], flags: Any, guard: int | None) -> BoundKernel:
        """Return the kernel for these swapped sets. guard: the position of the flag that it depends on, or None."""
        device = self._device
        kernel = device.programs.region_kernel(self._program, group=True)
        shifts = _uploaded(device, self._shifts(swapped))
        size = (_group_size(kernel, device),)
        arguments = [*self._before, shifts, *self._after, flags, np.int32(-1 if guard is None else guard)]
        arguments += [own.buffer for own in self._memory.own.values()]
        return BoundKernel(device.queue, kernel, arguments, size, size)

    def _shifts(self, swapped: Collection[int]) -> Array:
        """Return region.cl's initial shifts. The kernel keeps those of its own loops from run to run."""
        shifts = np.zeros(Shift.SETS + 2 * self._plan.turns + 2 + len(self._memory.own), np.uint64)
        for slot in self._plan.slots.values():
            shifts[Shift.SETS + 2 * slot.loop + (slot.loop not in swapped)] = slot.set_bytes
        return shifts


def _group_size(kernel: Any, device: Device) -> int:
    """Return the group's size: the schedule's, or less if the kernel needs many registers; a power of 2."""
    most: int = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device.device)
    return 1 << (min(most, device.target.group_size("region")).bit_length() - 1)


def _uploaded(device: Device, table: Array) -> Any:
    buffer = device.buffer(max(8, table.nbytes))
    if table.size:
        cl.enqueue_copy(device.queue, buffer, table)
    return buffer
