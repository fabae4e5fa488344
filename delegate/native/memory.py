"""The memory of a plan on the processor itself: numpy's, which kernels and host use in place."""

import numpy as np

from litecl.delegate.backend.places import Places, part_of
from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.plan import Plan
from litecl.interpreter.graph import Array

ALIGNMENT = 64  # bytes


def aligned(size_bytes: int) -> Array:
    """Return bytes of zeros, at least one, that begin at a multiple of ``ALIGNMENT``."""
    memory = np.zeros(max(1, size_bytes) + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + max(1, size_bytes)]


class NativeMemory:
    """An arena for what changes, and one array for all constants. See ``Memory`` in delegate/backend/protocols.py."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.arena = aligned(plan.arena.size_bytes)
        self._places = Places(plan, ALIGNMENT)
        self.address, self.constant_bytes = self._places.address, self._places.constant_bytes
        self.constants = aligned(self.constant_bytes)
        for data, offset in self._places.released():
            self.constants[offset : offset + data.nbytes] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        """Return an operand's memory as an array; None for a constant."""
        root, start = self._places.root(operand)
        if root not in self._plan.arena.offsets and root not in self._plan.slots:
            return None
        return part_of(self.arena, self._places.start(root, {self._plan.turns} if turned else ()) + start, operand)

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        """Copy a host array to an operand."""
        view = self.view(operand, turned)
        assert view is not None
        view[...] = value

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        """Copy an operand, which may be a constant."""
        view, (root, start) = self.view(operand, turned), self._places.root(operand)
        into[...] = part_of(self.constants, self._places.constants[root][0] + start, operand) if view is None else view

    def copy(self, state: Operand, turned: bool) -> None:
        """Copy a state from the other set."""
        before, after = self.view(state, not turned), self.view(state, turned)
        assert before is not None and after is not None
        after[...] = before
