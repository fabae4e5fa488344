"""The memory layout of a plan: constants one after another, everything else in the arena."""

import ctypes
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from litecl.delegate.cl_op import Arg, Const, Operand
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_tables import RegionSize, Shift
from litecl.interpreter.graph import Array

_WORTH_RETURNING = 4 << 20  # bytes


class Layout:
    """The memory layout of one plan. alignment: of every constant, in bytes.

    constants: the offset and size of each, in bytes. constant_bytes: of all constants.
    """

    def __init__(self, plan: Plan, alignment: int) -> None:
        self._plan = plan
        self.constants: dict[Const | Operand, tuple[int, int]] = {}
        self.constant_bytes = 0
        self._arrays: dict[int, tuple[Array, int]] = {}
        named: list[Any] = [arg for work in plan.works for arg in work.launch.args]
        for arg in (*named, *plan.predicates, *plan.outputs):
            root, _ = self.root(arg)
            data = root.data if isinstance(root, Const | Operand) else None
            if data is None:
                continue
            if id(data) not in self._arrays:
                self._arrays[id(data)] = data, self.constant_bytes
                self.constant_bytes = align(self.constant_bytes + max(1, data.nbytes), alignment)
            self.constants[root] = self._arrays[id(data)][1], data.nbytes

    def root(self, arg: Any) -> tuple[Any, int]:
        """Return the owner of an argument's memory, and the argument's offset in it, in bytes."""
        return self._plan.place(arg) if isinstance(arg, Operand) else (arg, 0)

    def released(self) -> Iterator[tuple[Array, int]]:
        """Yield every constant and its offset, once, and release each ``Const`` as the caller copies it."""
        for constant in self.constants:
            if isinstance(constant, Const):
                constant.data = None
        let_go = 0
        while self._arrays:
            _, (data, offset) = self._arrays.popitem()
            let_go += data.nbytes
            yield data, offset
            del data
            if let_go >= _WORTH_RETURNING or not self._arrays:
                _return_memory()
                let_go = 0

    def start(self, root: Any, swapped: Collection[int] = ()) -> int:
        """Return the arena offset of a root operand or scratch. swapped: the loops whose sets are swapped."""
        plan = self._plan
        if root not in plan.slots:
            return plan.arena.offsets[root]
        slot = plan.slots[root]
        second = slot.written != (slot.loop in swapped)
        return plan.arena.offsets[slot.sets] + slot.offset + second * slot.set_bytes

    def address(self, arg: Arg) -> int:
        """Return an argument's address as region.cl encodes it: an offset, and in the upper bits the index of the shift
        to add (region.h). A loop variable's offset is that in its loop's first set.
        """
        plan, (root, start) = self._plan, self.root(arg)
        if root in self.constants:
            return self.constants[root][0] | Shift.CONSTANTS << RegionSize.OFFSET_BITS
        if root in plan.slots:
            slot = plan.slots[root]
            offset = plan.arena.offsets[slot.sets] + slot.offset + start
            return offset | (Shift.SETS + 2 * slot.loop + slot.written) << RegionSize.OFFSET_BITS
        return plan.arena.offsets[root] + start


def _return_memory() -> None:
    """Make glibc return freed memory to the system."""
    with suppress(OSError):  # best effort
        if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
            trim(0)


def part_of(memory: Array, start: int, operand: Operand) -> Array:
    """Return an operand's view of host-visible memory. start: in bytes."""
    return memory[start : start + operand.size_bytes].view(operand.spec.dtype).reshape(operand.shape)
