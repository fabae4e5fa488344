"""The memory layout of a plan: constants one after another, and everything else in the arena."""

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


class Places:
    """The places of one plan. alignment: of every constant, in bytes.

    constants: offset and size, in bytes, of everything that is constant. constant_bytes: of all constants.
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
        """Return what has memory of its own and contains an argument, and the offset in bytes."""
        return self._plan.place(arg) if isinstance(arg, Operand) else (arg, 0)

    def released(self) -> Iterator[tuple[Array, int]]:
        """Yield every constant and its offset, once, to be copied: what only the device needs is let go of."""
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
        """Return where something that has a place of its own begins in the arena. swapped: loops whose sets have
        changed places.
        """
        plan = self._plan
        if root not in plan.slots:
            return plan.arena.offsets[root]
        slot = plan.slots[root]
        second = slot.written != (slot.loop in swapped)
        return plan.arena.offsets[slot.sets] + slot.offset + second * slot.set_bytes

    def address(self, arg: Arg) -> int:
        """Return where region.cl finds something: an offset, and above its bits the shift that is added to it
        (region.h). For a loop variable that is the offset of its loop's first set.
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
    """Return to the system the memory that glibc has been given back and would keep for reuse."""
    with suppress(OSError):  # what cannot be asked for it keeps it
        if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
            trim(0)


def part_of(memory: Array, start: int, operand: Operand) -> Array:
    """Return an operand in memory that the host sees. start: in bytes."""
    return memory[start : start + operand.size_bytes].view(operand.spec.dtype).reshape(operand.shape)
