"""Strided views of dense arrays, and the launches that copy between them.

A view is a numpy array that is never read: slicing, transposing, flipping and broadcasting it gives the offset of every
element of the result.
"""

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Launch, Operand, Record, Scratch, Target
from litecl.delegate.kit.claims import BITS
from litecl.delegate.kit.loops import Loop, LoopNest, Strides, by_array, loop_nest, loops_over
from litecl.delegate.kit.schedule import Chunks, chunks, elements
from litecl.delegate.target import own
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Shape

Memory = Operand | Scratch


class Square(IntEnum):
    """The tile of transpose.cl: SIDE rows and columns."""

    SIDE = 8


@dataclass(frozen=True, eq=False)
class Matrices:
    """``count`` matrices to transpose, of ``rows`` x ``columns`` elements of ``size_bytes``, of OpenCL type ``bits``.

    memory: source, destination and the table of the dimensions around them; sizes: the next arguments (transpose.cl).
    """

    count: int
    rows: int
    columns: int
    size_bytes: int
    bits: str
    memory: tuple[Arg, ...]
    sizes: tuple[np.int32, ...]


_ORIGIN = np.zeros(1, np.int8)
_LEAST_WIDENED = 1024  # elements; with fewer, another kernel isn't worth building


def view(shape: Sequence[int]) -> Array:
    """Return a dense array of ``shape`` as a view: a byte represents an element, so strides count elements."""
    return np.lib.stride_tricks.as_strided(_ORIGIN, tuple(shape), dense(shape), writeable=False)


def box(whole: Array, slices: Sequence[slice]) -> Array:
    """Return the part of a view that slices select, one per dimension."""
    index: tuple[Any, ...] = (*slices, ...)  # the ellipsis keeps a scalar an array, which is never read
    part: Array = whole[index]
    return part


def view_of(operand: Operand) -> Array:
    """Return a view of an operand, which may be part of a wider tensor."""
    if operand.row_step is None:
        return view(operand.shape)
    *around, last = operand.shape
    strides = (*(stride * operand.row_step for stride in dense(around)), 1)
    return np.lib.stride_tricks.as_strided(_ORIGIN, (*around, last), strides, writeable=False)


def broadcast_view(operand: Operand, shape: Shape) -> Array:
    """Return a view of an operand broadcast to a shape; a dense operand of as many elements may have other rows."""
    regrouped = operand.row_step is None and operand.spec.size == math.prod(shape)
    return view(shape) if regrouped else np.broadcast_to(view_of(operand), shape)


def row_step(array: Array) -> int | None:
    """Return the elements from one row (the last dimension) of a view to the next, None if that is not constant.

    Rows of one element do not count: they would merge into one row, whose elements are not contiguous.
    """
    loops, length = loops_over(array), array.shape[-1] if array.shape else 1
    if is_dense(array):
        return length
    return loops[0][1][0] if len(loops) == 2 and loops[1] == (length, (1,)) else None


def same_steps(a: Array, b: Array) -> bool:
    """Return whether two views of one shape differ only in the offset of their first elements."""
    return loops_over(a) == loops_over(b)


def is_dense(array: Array) -> bool:
    """Return whether a view's elements are contiguous and in order."""
    return loops_over(array) in ([], [(array.size, (1,))])


def offset(array: Array) -> int:
    """Return the offset of a view's first element in its dense array."""
    assert isinstance(array, np.ndarray), "a view was indexed down to a number"
    address: int = array.__array_interface__["data"][0]
    return address - int(_ORIGIN.__array_interface__["data"][0])


def dense(shape: Sequence[int]) -> Strides:
    """Return the strides of a row-major array."""
    strides: list[int] = []
    stride = 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= size
    return tuple(reversed(strides))


def _copy_args(source: Memory, at: Array, into: Memory, to: Array, target: Target) -> tuple[tuple[Arg, ...], Chunks]:
    nest = loop_nest(at, to)
    share = elements("copy", at.size, target)
    offsets = np.int32(offset(at)), np.int32(offset(to))
    return (source, into, nest.table, *share.args, *nest.arguments, *offsets), share


def copy(source: Memory, at: Array, into: Memory, to: Array, bits: str, target: Target) -> Launch:
    """Copy the elements ``at`` (a view) of ``source`` to the elements ``to`` (a view) of ``into``.

    bits: the integer type of the elements' size (``claims.bits``).
    """
    at, to, bits = _widened(at, to, bits)
    *around, last = loops_over(at, to) or [(1, (1, 1))]
    columns = [loop for loop in around if loop[0] >= Square.SIDE and loop[1][0] == 1]
    if columns and last[0] >= Square.SIDE and last[1][0] > 1 and last[1][1] == 1:
        around.remove(columns[0])
        return _transpose(source, offset(at), into, offset(to), (around, last, columns[0]), bits, target)
    pixels = _pixels_of(around, last) if target.lanes > 1 and source is not into else None
    if pixels is not None:
        return _interleave(source, offset(at), into, offset(to), (around[:-1], pixels), bits, target)
    args, share = _copy_args(source, at, into, to, target)
    return share.launch("copy", args, {"T": bits})


@dataclass(frozen=True)
class _Pixels:
    """Pixels of few channels, interleaved in one view; in the other each channel is a plane, ``plane`` elements from
    the next.
    """

    count: int
    channels: int
    plane: int
    to_planes: bool


def _pixels_of(around: Sequence[Loop], last: Loop) -> _Pixels | None:
    """Return the pixels that the two innermost loops copy from or to planes; None if they do anything else."""
    if not around:
        return None
    (outer, outer_steps), (inner, inner_steps) = around[-1], last
    if outer_steps == (1, inner) and inner_steps[1] == 1 and inner < Square.SIDE < outer:
        return _Pixels(outer, inner, inner_steps[0], to_planes=False)
    if inner_steps == (outer, 1) and outer_steps[0] == 1 and outer < Square.SIDE < inner:
        return _Pixels(inner, outer, outer_steps[1], to_planes=True)
    return None


def _widened(at: Array, to: Array, bits: str) -> tuple[Array, Array, str]:
    """Treat short rows that are contiguous in both views as single elements, if an integer type has their size."""
    loops = loops_over(at, to)
    if len(loops) < 2 or at.size < _LEAST_WIDENED:
        return at, to, bits
    *outer, (row, steps) = loops
    size, shape = row * next(size for size, name in BITS.items() if name == bits), tuple(count for count, _ in outer)
    layouts = [(offset(x), *(strides[i] for _, strides in outer)) for i, x in enumerate((at, to))]
    if size not in BITS or steps != (1, 1) or any(n % row for layout in layouts for n in layout):
        return at, to, bits
    wide = [[n // row for n in layout] for layout in layouts]
    views = [
        np.lib.stride_tricks.as_strided(view((start + 1,))[start:], shape, strides, writeable=False)
        for start, *strides in wide
    ]
    return views[0], views[1], BITS[size]


def _transpose(
    source: Memory,
    at: int,
    into: Memory,
    to: int,
    loops: tuple[Sequence[Loop], Loop, Loop],
    bits: str,
    target: Target,
) -> Launch:
    """Return a copy in square tiles, in the device's own way. loops: the outer ones, over rows (adjacent in
    ``into``), over columns (adjacent in ``source``).
    """
    around, (rows, row_strides), (columns, column_strides) = loops
    dims = tuple(size for size, _ in around)
    table = LoopNest(1, dims, by_array(around, 2), (1, 1)).table
    sizes = tuple(np.int32(value) for value in (rows, columns, row_strides[0], column_strides[1], at, to))
    size_bytes = next(size for size, name in BITS.items() if name == bits)
    matrices = Matrices(math.prod(dims), rows, columns, size_bytes, bits, (source, into, table), sizes)
    return own(target, transposed)(matrices, target)


def transposed(matrices: Matrices, target: Target) -> Launch:
    """Return the launch that transposes matrices in squares."""
    m = matrices
    squares = m.count * -(-m.rows // Square.SIDE) * -(-m.columns // Square.SIDE)
    share = chunks("transpose", squares, target, work=Square.SIDE * Square.SIDE)
    return share.launch("transpose", (*m.memory, *share.args, *m.sizes), {"T": m.bits})


def _interleave(
    source: Memory,
    at: int,
    into: Memory,
    to: int,
    loops: tuple[Sequence[Loop], _Pixels],
    bits: str,
    target: Target,
) -> Launch:
    """Return a copy of pixels of few channels. loops: the outer ones, and the pixels."""
    around, pixels = loops
    dims = tuple(size for size, _ in around)
    table = LoopNest(1, dims, by_array(around, 2), (1, 1)).table
    share = chunks("interleave", math.prod(dims) * pixels.count, target, work=pixels.channels)
    sizes = tuple(np.int32(value) for value in (pixels.count, pixels.plane, at, to))
    defines: dict[str, str | int | float] = {"T": bits, "CHANNELS": pixels.channels}
    if pixels.to_planes:
        defines["TO_PLANES"] = 1
    return share.launch("interleave", (source, into, table, *share.args, *sizes), defines)


@dataclass(frozen=True)
class Place(Record):
    """One coordinate of a box whose position is computed on the device: its ``index`` in the tensor of positions,
    its upper bound (``most``), the size added to a negative one (``wrap``), and the ``stride`` of its dimension.
    """

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
    """Copy a box of ``source`` (entry copy_from_box) or into a box of ``into`` (copy_to_box) at ``positions``."""
    args, share = _copy_args(source, at, into, to, target)
    return share.launch(entry, (*args, positions, tuple(places), np.int32(len(places))), defines)


def fill(into: Memory, count: int, value: Arg, bits: str, target: Target) -> Launch:
    """Write one element, which is in device memory, ``count`` times."""
    share = elements("copy", count, target)
    return share.launch("fill", (into, value, *share.args), {"T": bits})
