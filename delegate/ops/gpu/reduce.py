"""Reductions on a GPU: a group for each row, or for some columns side by side; long lines in several pieces."""

from collections.abc import Mapping

import numpy as np

from litecl.delegate.cl_op import Arg, Launch, Local
from litecl.delegate.gpu.groups import groups
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.ops.gpu.rows import LEAST_LENGTH, WIDEST
from litecl.interpreter.dataclass import dataclass

_KERNEL = "reduce"
_COLUMNS = 16  # of a group: neighbours fill one access to memory
_BUSY_GROUPS = 4  # groups of results that keep a GPU busy


@dataclass(frozen=True)
class Reductions:
    """How a GPU reduces arrays of a shape [outer, length, inner] to [outer, inner]."""

    target: GpuTarget

    def pieces(self, lines: int, length: int) -> int:
        """Return the number of equal pieces that each of a few long lines is split into."""
        schedule = self.target.schedule(_KERNEL)
        if lines > _BUSY_GROUPS * schedule.group or length < schedule.least:
            return 1
        return max(part for part in range(1, schedule.pieces + 1) if length % part == 0)

    def launch(
        self,
        x: Arg,
        y: Arg,
        shape: tuple[int, int, int],
        defines: Mapping[str, str | int | float],
        *more: np.generic,
    ) -> Launch | None:
        """Return a reduction in groups; None if lines are short, or the device has no room for a group.

        defines: macros of reduce.cl. more: the initial value and the divisor.
        """
        outer, length, inner = shape
        rows = inner == 1
        items = self.target.items_for(length if rows else length * _COLUMNS)
        local = Local(WIDEST * items)
        if length < LEAST_LENGTH or not self.target.has_room(items, local):
            return None
        args: tuple[Arg, ...] = (x, y, local, np.int32(length), *more)
        if rows:
            return groups("reduce_local", "reduce_local", outer, items, args, defines, outer * length)
        macros, count = {**defines, "COLUMNS": _COLUMNS}, outer * -(-inner // _COLUMNS)
        args = (*args, np.int32(inner))
        return groups("reduce_local", "reduce_columns_local", count, items, args, macros, outer * length * inner)
