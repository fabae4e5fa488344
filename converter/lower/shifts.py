"""Operators made of a tensor beside itself, moved along a dimension."""

import math
from collections.abc import Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression, formula
from litecl.interpreter.ops.binary import FLOOR_MOD
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.reduce import SUM
from litecl.interpreter.ops.slice import SLICE


def _roll(b: Builder) -> Value:
    x, axes = Expression(b, b.node.input(0)), b.known(2, "axis").reshape(-1)
    rank = len(b.shape(x.value))
    moves = b.node.input(1).data
    if moves is None:
        return _rolled_by_computed(x, [int(axis) % rank for axis in axes]).value
    shifts = dict.fromkeys(range(rank), 0)
    for shift, axis in zip(moves.reshape(-1), axes, strict=True):
        shifts[int(axis) % rank] += int(shift)
    for axis, shift in shifts.items():
        x = _rolled(x, axis, shift) if shift else x
    return x.value


def _rolled_by_computed(x: Expression, axes: Sequence[int]) -> Expression:
    """Return a part of the tensor beside itself, for each axis, that begins where the shifts say."""
    b, rank = x.b, len(x.b.shape(x.value))
    shifts = Expression(b, b.reshape(b.int32(b.node.input(1)), [-1], (len(axes),)))
    sizes = x.shape()
    for i, axis in enumerate(axes):
        if x.value.shape is not None and x.value.shape[axis] == 0:
            continue
        chosen, own = ([int(k == at) for k in range(n)] for n, at in ((len(axes), i), (rank, axis)))
        shift, size = (
            (v * v.constant(mask)).reduce(SUM, [0], keep=True) for v, mask in ((shifts, chosen), (sizes, own))
        )
        begin = (-shift).binary(FLOOR_MOD, size) * sizes.constant(own)
        twice = b.op(
            CONCATENATION,
            [x.value, x.value],
            ConcatenationOptions(axis),
            type=x.type,
            shape=tuple(None if k == axis else d for k, d in enumerate(b.shape(x.value))),
        )
        x = Expression(b, b.op(SLICE, [twice, begin.value, sizes.value], type=x.type, shape=x.value.shape))
    return x


def _rolled(x: Expression, axis: int, shift: int) -> Expression:
    size = x.b.shape(x.value)[axis]
    if size is None:
        raise x.b.error(f"the size of dimension {axis} must be known; give input_shapes")
    cut = -shift % size if size else 0
    if not cut:
        return x
    parts = [_part(x, axis, cut, size), _part(x, axis, 0, cut)]
    made = x.b.op(CONCATENATION, [p.value for p in parts], ConcatenationOptions(axis), type=x.type, shape=x.value.shape)
    return Expression(x.b, made)


def _part(x: Expression, axis: int, begin: int, end: int) -> Expression:
    dims = list(x.b.shape(x.value))
    starts = [begin if i == axis else 0 for i in range(len(dims))]
    sizes = [end - begin if i == axis else -1 for i in range(len(dims))]
    dims[axis] = end - begin
    operands = [x.value, x.b.const(starts, np.int32), x.b.const(sizes, np.int32)]
    return Expression(x.b, x.b.op(SLICE, operands, type=x.type, shape=tuple(dims)))


def _cumprod(x: Expression, axis_operand: Expression) -> Expression:
    """Return products of 1, 2, 4, ... neighbours, each from the one before."""
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
    """Return the elements ``by`` places before each, ones where there is none."""
    kept = _part(x, axis, by, size) if reverse else _part(x, axis, 0, size - by)
    dims = list(x.b.shape(x.value))
    ones = [1] * len(dims)
    ones[axis] = by
    if None in dims:
        missing = Expression(x.b, _part(x, axis, 0, by).value) * 0 + 1
    else:
        missing = x.constant(np.ones([by if i == axis else d or 0 for i, d in enumerate(dims)]))
    parts = [kept.value, missing.value] if reverse else [missing.value, kept.value]
    made = x.b.op(CONCATENATION, parts, ConcatenationOptions(axis), type=x.type, shape=x.value.shape)
    return Expression(x.b, made)


LOWERINGS: dict[str, Lowering] = {"Roll": _roll, "Cumprod": formula(_cumprod)}
