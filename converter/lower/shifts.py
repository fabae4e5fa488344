"""Operators composed of a tensor and shifted copies of itself."""

import math

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression, formula
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.binary import FLOOR_MOD
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reduce import SUM
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.schema import TensorType


def _roll(b: Builder) -> Value:
    x, moves, axes = Expression(b, b.node.input(0)), b.node.input(1).data, b.node.input(2).data
    if moves is None or axes is None:
        return _rolled_by_computed(x, axes).value
    rank = len(b.shape(x.value))
    shifts = dict.fromkeys(range(rank), 0)
    for shift, axis in zip(moves.reshape(-1), axes.reshape(-1), strict=True):
        shifts[int(axis) % rank] += int(shift)
    for axis, shift in shifts.items():
        x = _rolled(x, axis, shift) if shift else x
    return x.value


def _rolled_by_computed(x: Expression, axes: Array | None) -> Expression:
    """Roll by computed shifts: for each dimension, slice the doubled tensor from where the shift says."""
    b, dims = x.b, x.b.shape(x.value)
    moved = range(len(dims)) if axes is None else sorted({int(axis) % len(dims) for axis in axes.reshape(-1)})
    shifts, sizes = _shifts(x, axes), x.shape()
    for axis in moved:
        if dims[axis] == 0:
            continue
        own = [int(k == axis) for k in range(len(dims))]
        shift, size = ((v * v.constant(own)).reduce(SUM, [0], keep=True) for v in (shifts, sizes))
        begin = (-shift).binary(FLOOR_MOD, size) * sizes.constant(own)
        twice = b.op(
            CONCATENATION,
            [x.value, x.value],
            ConcatenationOptions(axis),
            type=x.type,
            shape=tuple(None if k == axis else d for k, d in enumerate(dims)),
        )
        x = Expression(b, b.op(SLICE, [twice, begin.value, sizes.value], type=x.type, shape=x.value.shape))
    return x


def _shifts(x: Expression, axes: Array | None) -> Expression:
    """Return the sum of shifts per dimension, as int32 [rank]."""
    b, rank = x.b, len(x.b.shape(x.value))
    rows = np.eye(rank, dtype=np.int32)
    if axes is None:  # from -rank on; GATHER refuses others, as TensorFlow does
        count = b.shape(b.node.input(2))[:1] or (1,)
        places = Expression(b, b.reshape(b.int32(b.node.input(2)), [-1], count)) + rank
        operands = [b.const(np.concatenate([rows, rows])), places.value]
        chosen = Expression(b, b.op(GATHER, operands, GatherOptions(), type=TensorType.INT32, shape=(*count, rank)))
    else:
        count = (axes.size,)
        chosen = Expression(b, b.const(rows[axes.reshape(-1)]))
    moves = Expression(b, b.reshape(b.int32(b.node.input(1)), [-1, 1], (*count, 1)))
    return (moves * chosen).reduce(SUM, [0])


def _rolled(x: Expression, axis: int, shift: int) -> Expression:
    size = x.b.shape(x.value)[axis]
    if size is None:
        raise x.b.error(f"the size of dimension {axis} must be known; give input_shapes")
    cut = -shift % size if size else 0
    if not cut:
        return x
    parts = [_part(x, axis, cut, size), _part(x, axis, 0, cut)]
    rolled = x.b.op(
        CONCATENATION, [p.value for p in parts], ConcatenationOptions(axis), type=x.type, shape=x.value.shape
    )
    return Expression(x.b, rolled)


def _part(x: Expression, axis: int, begin: int, end: int) -> Expression:
    dims = list(x.b.shape(x.value))
    starts = [begin if i == axis else 0 for i in range(len(dims))]
    sizes = [end - begin if i == axis else -1 for i in range(len(dims))]
    dims[axis] = end - begin
    operands = [x.value, x.b.const(starts, np.int32), x.b.const(sizes, np.int32)]
    return Expression(x.b, x.b.op(SLICE, operands, type=x.type, shape=tuple(dims)))


def _cumprod(x: Expression, axis_operand: Expression) -> Expression:
    """Multiply 1, 2, 4, ... neighbours, each product from the previous one."""
    b = x.b
    axis = int(b.known(1, "axis")) % len(b.shape(x.value))
    size = b.shape(x.value)[axis]
    if size is None:
        raise b.error(f"the size of dimension {axis} must be known; give input_shapes")
    reverse, exclusive = bool(b.node.attrs["reverse"]), bool(b.node.attrs["exclusive"])
    if exclusive:
        x = _shifted(x, axis, 1, size, reverse=reverse)
    for power in range(math.ceil(math.log2(size)) if size > 1 else 0):
        x = x * _shifted(x, axis, 1 << power, size, reverse=reverse)
    return x


def _shifted(x: Expression, axis: int, by: int, size: int, *, reverse: bool) -> Expression:
    """Shift elements by ``by`` places, filling with ones."""
    kept = _part(x, axis, by, size) if reverse else _part(x, axis, 0, size - by)
    dims = list(x.b.shape(x.value))
    ones = [1] * len(dims)
    ones[axis] = by
    if None in dims:
        missing = Expression(x.b, _part(x, axis, 0, by).value) * 0 + 1
    else:
        missing = x.constant(np.ones([by if i == axis else d or 0 for i, d in enumerate(dims)]))
    parts = [kept.value, missing.value] if reverse else [missing.value, kept.value]
    shifted = x.b.op(CONCATENATION, parts, ConcatenationOptions(axis), type=x.type, shape=x.value.shape)
    return Expression(x.b, shifted)


LOWERINGS: dict[str, Lowering] = {"Roll": _roll, "Cumprod": formula(_cumprod)}
