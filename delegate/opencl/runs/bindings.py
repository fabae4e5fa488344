"""Kernels with arguments for queued launches, made when first needed."""

from collections.abc import Collection

import numpy as np

from litecl.delegate.backend.trials import may_be_short
from litecl.delegate.cl_op import Operand
from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.errors import typed_errors
from litecl.delegate.opencl.memory.memory import Memory
from litecl.delegate.opencl.runs.group_kernel import GroupKernel, LoopCounts
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Loop, OneGroup, Part, Work, control_of, groups_of


class Bindings:
    """The kernels of a plan. In all methods, guard: the position of the flag that a kernel depends on, or None.
    swapped: the loops whose two sets are swapped.

    flags: of branches and loops, on the device. in_groups: the loops that one group runs. counts: their iterations.
    """

    def __init__(self, plan: Plan, device: Device, memory: Memory, counts: LoopCounts, *, one_by_one: bool) -> None:
        self._plan, self._device, self._memory = plan, device, memory
        self.flags = device.buffer(max(8, 8 * len(plan.control)))
        self._may_be_short = may_be_short(plan)
        parts = [] if one_by_one else [*groups_of(plan.steps)]
        self._groups = {id(part): GroupKernel(part, plan, device, memory, counts) for part in parts}
        inner = [control for part in parts for control in control_of(part.steps)]
        self.in_groups = {control.number for control in inner if isinstance(control, Loop)}
        self._bound: dict[tuple[int, int | None, frozenset[int]], BoundKernel] = {}
        self._controls: dict[tuple[str, tuple[int, ...], int, frozenset[int]], BoundKernel] = {}

    @property
    def has_groups(self) -> bool:
        """Return whether one group runs some part of the plan."""
        return bool(self._groups)

    def is_group(self, part: Part) -> bool:
        """Return whether one group runs this part, in one launch."""
        return id(part) in self._groups

    def of(self, part: Work | OneGroup, guard: int | None, swapped: Collection[int]) -> BoundKernel:
        """Return the kernel of a launch, bound to its arguments."""
        sets = frozenset(self._sets_of(part).intersection(swapped)) if swapped else frozenset[int]()
        key = id(part), guard, sets
        if key not in self._bound:
            if isinstance(part, Work):
                self._bound[key] = self._bind(part, guard, sets)
            else:
                self._bound[key] = self._groups[id(part)].bound(sets, self.flags, guard)
        return self._bound[key]

    def control(
        self, entry: str, places: tuple[int, ...], predicate: Operand | None, swapped: Collection[int]
    ) -> BoundKernel:
        """Return one of control.cl's kernels. places: the positions of flags."""
        sets = frozenset[int]() if predicate is None else frozenset(self._memory.loops_of(predicate) & {*swapped})
        key = entry, places, id(predicate), sets
        if key not in self._controls:
            kernel = self._device.programs.kernel("control", entry, {})
            arguments = [self.flags, *map(np.int32, places)]
            arguments += [] if predicate is None else [self._memory.argument(predicate, sets)]
            self._controls[key] = BoundKernel(self._device.queue, kernel, arguments, (1,), (1,))
        return self._controls[key]

    def renew(self) -> None:
        """Rebind arguments after the memory's buffers have changed."""
        works = {id(work): work for work in self._plan.works}
        self._bound = {key: bound for key, bound in self._bound.items() if key[0] in works}  # groups are bound anew
        self._controls.clear()
        for (number, guard, sets), bound in self._bound.items():
            for position, arg in enumerate(works[number].launch.args, 0 if guard is None else 2):
                if self._memory.is_own(arg):
                    bound.set_argument(position, self._memory.argument(arg, sets))

    def _bind(self, work: Work, guard: int | None, swapped: frozenset[int]) -> BoundKernel:
        launch = work.launch
        arguments = [self._memory.argument(arg, swapped) for arg in launch.args]
        if guard is None:
            kernel = self._device.programs.kernel(launch.kernel, launch.entry, launch.defines)
        else:
            kernel = self._device.programs.guarded_kernel(launch)
            arguments = [self.flags, np.int32(guard), *arguments]
        with typed_errors(f"setting the arguments of {launch.entry}"):
            queue = self._device.queue
            sizes = launch.global_size, launch.local_size
            return BoundKernel(queue, kernel, arguments, *sizes, may_be_short=self._may_be_short)

    def _sets_of(self, part: Work | OneGroup) -> set[int]:
        """Return the loops whose sets a launch reads or writes but does not swap itself."""
        if isinstance(part, OneGroup):
            return self._groups[id(part)].around
        return {loop for arg in part.launch.args for loop in self._memory.loops_of(arg)}
