"""Strided views of dense arrays, and the launches that copy between them.

A view is a numpy array that is never read: slicing, transposing, flipping and broadcasting it gives the place of every
element of the result.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Const, Launch, Operand, Record, Scratch, Target
from litecl.delegate.kit.schedule import Chunks, chunks, elements
from litecl.interpreter.graph import Array, Shape, TensorSpec

Strides = tuple[int, ...]
Memory = Operand | Scratch

_LONG_ROW = 1024


class Square(IntEnum):
    """The tiles in which transpose.cl works: rows and columns of each."""

    SIDE = 8


_ORIGIN = np.zeros(1, np.int8)


def view(shape: Sequence[int]) -> Array:
    """A dense array of ``shape`` as a view: one byte stands for an element, so strides count elements."""
    return np.lib.stride_tricks.as_strided(_ORIGIN, tuple(shape), dense(shape), writeable=False)


def box(whole: Array, slices: Sequence[slice]) -> Array:
    """The part of a view that slices name, one a dimension."""
    index: tuple[Any, ...] = (*slices, ...)  # with the ellipsis a scalar stays an array, which is not read
    part: Array = whole[index]
    return part


def view_of(operand: Operand) -> Array:
    """The elements of an operand, which may lie within a wider tensor."""
    if operand.row_step is None:
        return view(operand.shape)
    *around, last = operand.shape
    strides = (*(stride * operand.row_step for stride in dense(around)), 1)
    return np.lib.stride_tricks.as_strided(_ORIGIN, (*around, last), strides, writeable=False)


def row_step(array: Array) -> int | None:
    """Elements from one row (the last dimension) of a view to the next, None where that is not the same everywhere.

    Rows of one element are none: a walk would take them for one row, whose elements do not lie side by side.
    """
    loops, length = _loops(array), array.shape[-1] if array.shape else 1
    if is_dense(array):
        return length
    return loops[0][1][0] if len(loops) == 2 and loops[1] == (length, (1,)) else None


def same_steps(a: Array, b: Array) -> bool:
    """Whether two views of one shape go on from their first elements in the same way."""
    return _loops(a) == _loops(b)


def is_dense(array: Array) -> bool:
    """Whether a view's elements lie side by side, in order."""
    return _loops(array) in ([], [(array.size, (1,))])


def offset(array: Array) -> int:
    """Where a view's first element lies in the dense array that the view is of."""
    assert isinstance(array, np.ndarray), "a view that was indexed became a number"
    address: int = array.__array_interface__["data"][0]
    return address - int(_ORIGIN.__array_interface__["data"][0])


def dense(shape: Sequence[int]) -> Strides:
    """Strides of a row-major array."""
    strides: list[int] = []
    stride = 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= size
    return tuple(reversed(strides))


Loop = tuple[int, Strides]  # the size of a dimension, and each array's stride in it


@dataclass(frozen=True)
class Walk:
    """Several arrays walked together: rows of ``row`` elements, one for every index of ``dims``.

    strides: of each array, over ``dims``. steps: of each array, from one element of a row to the next.
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


def long_rows(x: Operand, shape: Shape) -> tuple[Operand, Shape]:
    """A constant that is repeated by every row, several times over, and the shape with as much longer rows.

    The start of a row costs some time, and a row of a few channels fills no vector.
    """
    own = tuple(dropwhile(lambda size: size == 1, x.shape))
    length, total = x.spec.size, math.prod(shape)
    if x.data is None or shape[len(shape) - len(own) :] != own or not 1 < length < _LONG_ROW:
        return x, shape
    times = max(n for n in range(1, _LONG_ROW // length + 1) if total // length % n == 0)
    data = np.tile(np.ravel(x.data), times)
    return Operand(TensorSpec(x.spec.type, data.shape, data=data)), (total // data.size, data.size)


def walk(*views: Array) -> Walk:
    """The walk over views of one shape in the fewest dimensions."""
    loops = _loops(*views)
    if not loops:
        return Walk(1, (), ((),) * len(views), (1,) * len(views))
    *outer, (row, steps) = loops
    return Walk(row, tuple(size for size, _ in outer), _by_array(outer, len(views)), steps)


def _loops(*views: Array) -> list[Loop]:
    """The dimensions that views have in common: size 1 goes, what no view tells apart merges."""
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


def _by_array(loops: Sequence[Loop], count: int) -> tuple[Strides, ...]:
    return tuple(tuple(strides[i] for _, strides in loops) for i in range(count))


def _copy_args(source: Memory, at: Array, into: Memory, to: Array, target: Target) -> tuple[tuple[Arg, ...], Chunks]:
    path = walk(at, to)
    share = elements("copy", at.size, target)
    offsets = np.int32(offset(at)), np.int32(offset(to))
    return (source, into, path.table, *share.args, *path.arguments, *offsets), share


def copy(source: Memory, at: Array, into: Memory, to: Array, bits: str, target: Target) -> Launch:
    """Copies the elements of ``source`` that the view ``at`` names to the places in ``into`` that ``to`` names.

    bits: the integer type of the elements' size (``claims.bits``).
    """
    *around, last = _loops(at, to) or [(1, (1, 1))]
    columns = [loop for loop in around if loop[0] >= Square.SIDE and loop[1][0] == 1]
    if columns and last[0] >= Square.SIDE and last[1][0] > 1 and last[1][1] == 1:
        around.remove(columns[0])
        return _transpose(source, offset(at), into, offset(to), (around, last, columns[0]), bits, target)
    args, share = _copy_args(source, at, into, to, target)
    return share.launch("copy", args, {"T": bits})


def _transpose(
    source: Memory,
    at: int,
    into: Memory,
    to: int,
    loops: tuple[Sequence[Loop], Loop, Loop],
    bits: str,
    target: Target,
) -> Launch:
    """A copy in square tiles. loops: around them, over rows (adjacent in ``into``), over columns (in ``source``)."""
    around, (rows, row_strides), (columns, column_strides) = loops
    dims = tuple(size for size, _ in around)
    table = Walk(1, dims, _by_array(around, 2), (1, 1)).table
    tiles = math.prod(dims) * -(-rows // Square.SIDE) * -(-columns // Square.SIDE)
    share = chunks("transpose", tiles, target, work=Square.SIDE * Square.SIDE)
    sizes = (np.int32(value) for value in (rows, columns, row_strides[0], column_strides[1], at, to))
    return share.launch("transpose", (source, into, table, *share.args, *sizes), {"T": bits})


@dataclass(frozen=True)
class Place(Record):
    """One coordinate of a box that is given on the device: ``index`` in the tensor of positions, the ``most`` that it
    may be, what is added to a negative one (``wrap``), and the ``stride`` of its dimension."""

    index: int
    most: int
    wrap: int
    stride: int


def copy_box(
    entry: str,
    source: Memory,
    at: Array,
    into: Memory,
    to: Array,
    positions: Operand,
    places: Sequence[Place],
    defines: Mapping[str, str],
    target: Target,
) -> Launch:
    """``copy`` where the box in ``source`` (entry copy_from_box) or in ``into`` (copy_to_box) lies at ``positions``."""
    args, share = _copy_args(source, at, into, to, target)
    return share.launch(entry, (*args, positions, tuple(places), np.int32(len(places))), defines)


def fill(into: Memory, count: int, value: Arg, bits: str, target: Target) -> Launch:
    """Writes one element, which lies on the device, ``count`` times."""
    share = elements("copy", count, target)
    return share.launch("fill", (into, value, *share.args), {"T": bits})
