"""The memory of a plan on the processor itself: numpy's, which kernels and host use in place."""

from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Const, Operand
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_tables import RegionSize, Shift
from litecl.interpreter.graph import Array

ALIGNMENT = 64  # bytes


def aligned(size_bytes: int) -> Array:
    """Return so many bytes of zeros, at least one, that begin at a multiple of ``ALIGNMENT``."""
    memory = np.zeros(max(1, size_bytes) + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + max(1, size_bytes)]


class NativeMemory:
    """An arena for what changes, and one array for all constants. See ``Memory`` in delegate/backend/protocols.py."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.arena = aligned(plan.arena.size_bytes)
        self._constants: dict[Any, int] = {}  # offsets
        arrays, self.constant_bytes = self._place_constants()
        self.constants = aligned(self.constant_bytes)
        for data, offset in arrays:
            self.constants[offset : offset + data.nbytes] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        for constant in self._constants:
            if isinstance(constant, Const):
                constant.data = None

    def address(self, arg: Arg) -> int:
        """Return where region.cl finds something: an offset, and above its bits the shift that is added to it
        (region.h). For a loop variable that is the offset of its loop's first set.
        """
        root, start = self._place(arg)
        if root in self._constants:
            return self._constants[root] | Shift.CONSTANTS << RegionSize.OFFSET_BITS
        if root in self._plan.slots:
            slot = self._plan.slots[root]
            offset = self._plan.arena.offsets[slot.sets] + slot.offset + start
            return offset | (Shift.SETS + 2 * slot.loop + slot.written) << RegionSize.OFFSET_BITS
        return self._plan.arena.offsets[root] + start

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        """Return an operand's memory as an array; None for a constant."""
        root, start = self._place(operand)
        if root in self._plan.slots:
            slot = self._plan.slots[root]
            second = slot.written != (turned and slot.loop == self._plan.turns)
            start += self._plan.arena.offsets[slot.sets] + slot.offset + second * slot.set_bytes
        elif root in self._plan.arena.offsets:
            start += self._plan.arena.offsets[root]
        else:
            return None
        return self._part(self.arena, start, operand)

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        """Copy an array of the host's to an operand."""
        view = self.view(operand, turned)
        assert view is not None
        view[...] = value

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        """Copy an operand, which may be a constant."""
        view, (root, start) = self.view(operand, turned), self._place(operand)
        into[...] = self._part(self.constants, self._constants[root] + start, operand) if view is None else view

    def copy(self, state: Operand, turned: bool) -> None:
        """Copy a state from the other set."""
        before, after = self.view(state, not turned), self.view(state, turned)
        assert before is not None and after is not None
        after[...] = before

    @staticmethod
    def _part(memory: Array, start: int, operand: Operand) -> Array:
        return memory[start : start + operand.size_bytes].view(operand.spec.dtype).reshape(operand.shape)

    def _place(self, arg: Any) -> tuple[Any, int]:
        return self._plan.place(arg) if isinstance(arg, Operand) else (arg, 0)

    def _place_constants(self) -> tuple[list[tuple[Array, int]], int]:
        """Return every constant that a launch, a predicate or an output names, its offset, and their total size."""
        named: list[Any] = [arg for work in self._plan.works for arg in work.launch.args]
        placed: dict[int, tuple[Array, int]] = {}
        end = 0
        for arg in (*named, *self._plan.predicates, *self._plan.outputs):
            root, _ = self._place(arg)
            data = root.data if isinstance(root, Const | Operand) else None
            if data is None:
                continue
            if id(data) not in placed:
                placed[id(data)] = data, end
                end = align(end + max(1, data.nbytes), ALIGNMENT)
            self._constants[root] = placed[id(data)][1]
        return list(placed.values()), end
