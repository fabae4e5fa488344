"""Joint loops over arrays of one shape, in as few dimensions as possible, and their table for kernels."""

import math
from collections.abc import Sequence
from itertools import dropwhile

import numpy as np

from litecl.delegate.cl_op import Const, Operand, Target
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Shape, TensorSpec

Strides = tuple[int, ...]

_LONG_ROW = 1024

Loop = tuple[int, Strides]  # the size of a dimension, and each array's stride in it


@dataclass(frozen=True)
class LoopNest:
    """Joint loops over several arrays: a row of ``row`` elements for every index of ``dims``.

    strides: each array's, over ``dims``. steps: each array's, from one element of a row to the next; -n if the array
    repeats after n elements.
    """

    row: int
    dims: Shape
    strides: tuple[Strides, ...]
    steps: tuple[int, ...]

    @property
    def table(self) -> Const:
        """``dims`` and the strides as a kernel reads them: rank, dims, then the strides of each array."""
        return Const(np.array([len(self.dims), *self.dims, *(s for array in self.strides for s in array)], np.int32))

    @property
    def arguments(self) -> tuple[np.int32, ...]:
        """``row`` and the steps as a kernel takes them."""
        return tuple(np.int32(value) for value in (self.row, *self.steps))

    def straight(self, target: Target) -> dict[str, str | int | float]:
        """Return the macro of GPU kernels that need no table because there is a single row."""
        return {**target.special(STRAIGHT=not self.dims)}


def long_rows(x: Operand, shape: Shape) -> tuple[Operand, Shape]:
    """Tile a constant that repeats in every row into longer rows; return it, and the shape with rows of that length.

    Starting a row costs time, and a row of a few channels fills no vector.
    """
    own = tuple(dropwhile(lambda size: size == 1, x.shape))
    length, total = x.spec.size, math.prod(shape)
    if x.data is None or shape[len(shape) - len(own) :] != own or not 1 < length < _LONG_ROW:
        return x, shape
    times = max(n for n in range(1, _LONG_ROW // length + 1) if total // length % n == 0)
    data = np.tile(np.ravel(x.data), times)
    return Operand(TensorSpec(x.spec.type, data.shape, data=data)), (total // data.size, data.size)


def loop_nest(*views: Array) -> LoopNest:
    """Return the loops over views of one shape, in as few dimensions as possible."""
    loops = loops_over(*views)
    if not loops:
        return LoopNest(1, (), ((),) * len(views), (1,) * len(views))
    *outer, (row, steps) = loops
    return LoopNest(row, tuple(size for size, _ in outer), by_array(outer, len(views)), steps)


def periodic(nest: LoopNest, target: Target) -> LoopNest:
    """Merge the rows of the last dimension into one, in which arrays may repeat, if a CPU's vector holds whole rows."""
    if not nest.dims or nest.row == 1 or target.lanes % nest.row:
        return nest
    steps = []
    for strides, step in zip(nest.strides, nest.steps, strict=True):
        if strides[-1] != nest.row * step and (strides[-1], step) != (0, 1):
            return nest
        steps.append(step if strides[-1] == nest.row * step else -nest.row)
    outer = tuple(strides[:-1] for strides in nest.strides)
    return LoopNest(nest.row * nest.dims[-1], nest.dims[:-1], outer, tuple(steps))


def loops_over(*views: Array) -> list[Loop]:
    """Return the views' common dimensions, dropping those of size 1 and merging those contiguous in every view."""
    loops: list[Loop] = []
    for size, *steps in zip(views[0].shape, *(v.strides for v in views), strict=True):
        strides = tuple(steps)
        if size == 1:
            continue
        if loops and loops[-1][1] == tuple(size * stride for stride in strides):
            loops[-1] = (loops[-1][0] * size, strides)
        else:
            loops.append((size, strides))
    return loops


def by_array(loops: Sequence[Loop], count: int) -> tuple[Strides, ...]:
    return tuple(tuple(strides[i] for _, strides in loops) for i in range(count))
