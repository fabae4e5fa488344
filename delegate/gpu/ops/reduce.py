"""Reductions on a GPU: a group for each row, or for some columns side by side; long lines in several parts."""

from collections.abc import Mapping

import numpy as np

from litecl.delegate.cl_op import Arg, Launch, Local
from litecl.delegate.gpu.groups import groups
from litecl.delegate.gpu.ops.rows import LEAST_LENGTH, WIDEST
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.ops import reduce
from litecl.delegate.ops.reduce import Stage

_KERNEL = "reduce"
_COLUMNS = 16  # of a group: neighbours fill one access to memory
_BUSY_GROUPS = 4  # groups of results that keep a GPU busy


def parts_of(stage: Stage, target: GpuTarget) -> int:
    """Return the number of equal parts that each of a few long lines is divided into."""
    schedule = target.schedule(_KERNEL)
    if stage.outer * stage.inner > _BUSY_GROUPS * schedule.group or stage.length < schedule.least:
        return 1
    return max(part for part in range(1, schedule.pieces + 1) if stage.length % part == 0)


def launch(
    source: Arg,
    into: Arg,
    stage: Stage,
    defines: Mapping[str, str | int | float],
    numbers: tuple[np.generic, np.generic],
    target: GpuTarget,
) -> Launch:
    """Return the launch of a stage in groups, if lines are long and the device has room for a group; see
    ``reduce.launch``.
    """
    outer, length, inner = stage.outer, stage.length, stage.inner
    rows = inner == 1
    items = target.items_for(length if rows else length * _COLUMNS)
    local = Local(WIDEST * items)
    if length < LEAST_LENGTH or not target.has_room(items, local):
        return reduce.launch(source, into, stage, defines, numbers, target)
    args: tuple[Arg, ...] = (source, into, local, np.int32(length), *numbers)
    if rows:
        return groups("reduce_local", "reduce_local", outer, items, args, defines, outer * length)
    macros, count = {**defines, "COLUMNS": _COLUMNS}, outer * -(-inner // _COLUMNS)
    args = (*args, np.int32(inner))
    return groups("reduce_local", "reduce_columns_local", count, items, args, macros, outer * length * inner)
