"""Gradients of slices and of broadcast operands."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression
from litecl.converter.strided import MASKS, axis_bounds
from litecl.interpreter.ops.binary import LOGICAL_AND, LOGICAL_OR
from litecl.interpreter.ops.compare import NOT_EQUAL
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dilate import DILATE
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.reduce import REDUCE_ANY
from litecl.interpreter.ops.select import WHERE
from litecl.interpreter.schema import TensorType


def _reduced_axes(b: Builder) -> Sequence[Value]:
    """Return, for each of two shapes, the axes along which its gradient is summed: those of size 1.

    If the other size is 1 too, that changes nothing. For equal shapes TensorFlow returns no axes.
    """
    shapes = [Expression(b, b.int32(b.node.input(i))) for i in (0, 1)]
    ranks = [None if shape.value.shape is None else shape.value.shape[0] for shape in shapes]
    if ranks[0] is None or ranks[1] is None:
        return _of_open_ranks(b, [shape.reshape([-1], (None,)) for shape in shapes])
    rank, differ = max(ranks[0], ranks[1]), None
    if ranks[0] == ranks[1]:
        differ = shapes[0].binary(NOT_EQUAL, shapes[1], TensorType.BOOL).reduce(REDUCE_ANY, [0], keep=True)
    return [_ones(shape, rank - known, differ) for shape, known in zip(shapes, (ranks[0], ranks[1]), strict=True)]


def _of_open_ranks(b: Builder, shapes: Sequence[Expression]) -> Sequence[Value]:
    """Return the same for shapes whose ranks are known only at run time."""
    ranks = [shape.shape() for shape in shapes]
    rank = ranks[0].maximum(ranks[1])
    whole = [_after_ones(shape, rank - known) for shape, known in zip(shapes, ranks, strict=True)]
    differ, *others = (
        x.binary(NOT_EQUAL, y, TensorType.BOOL).reduce(REDUCE_ANY, [0], keep=True) for x, y in (whole, ranks)
    )
    return [_ones(shape, 0, differ.binary(LOGICAL_OR, others[0])) for shape in whole]


def _after_ones(shape: Expression, missing: Expression) -> Expression:
    """Prepend dimensions of 1 to a shape; a vector of one element holds their number."""
    b = shape.b
    ones = b.op(FILL, [missing.value, b.const(1, np.int32)], type=shape.type, shape=(None,))
    joined = b.op(CONCATENATION, [ones, shape.value], ConcatenationOptions(0), type=shape.type, shape=(None,))
    return Expression(b, joined)


def _ones(shape: Expression, missing: int, differ: Expression | None) -> Value:
    """Return the positions of ones in a shape after prepending ``missing`` ones; empty unless ``differ``."""
    b = shape.b
    if missing:
        operands = [b.const([1] * missing, np.int32), shape.value]
        rank = missing + (b.shape(shape.value)[0] or 0)
        joined = b.op(CONCATENATION, operands, ConcatenationOptions(0), type=shape.type, shape=(rank,))
        shape = Expression(b, joined)
    ones = shape.equals(1) if differ is None else shape.equals(1).binary(LOGICAL_AND, differ)
    places = b.op(WHERE, [ones.value], type=TensorType.INT64, shape=(None, 1))
    return b.cast(b.reshape(places, [-1], (None,)), b.node.output.type)


def _slice_gradient(b: Builder) -> Value:
    """Return the gradient surrounded by zeros."""
    begin, end, strides = (b.known(i, "bounds") for i in (1, 2, 3))
    masks = {name: int(b.node.attrs[name]) for name in MASKS}
    sizes = b.shape(b.node.output)
    spec = axis_bounds(len(begin), len(sizes), masks)
    spec += [None] * (len(sizes) - len(spec))
    bounds = [None if i is None else (begin[i], end[i], strides[i]) for i in spec]
    bits = [{name: i is not None and bool(mask >> i & 1) for name, mask in masks.items()} for i in spec]
    parts = [_part(b, *dimension) for dimension in zip(sizes, bounds, bits, strict=True)]
    kept = tuple(None if part is None else len(part) for part in parts)
    x = Expression(b, b.node.input(4)).reshape([-1 if d is None else d for d in kept], kept)
    x = dilated(x, [1 if part is None else part.step for part in parts])
    pads = []
    for size, part in zip(sizes, parts, strict=True):
        end_of_part = 0 if part is None else part[-1] + 1 if part else part.start
        pads.append((0, 0) if size is None or part is None else (part.start, size - end_of_part))
    return padded(x, pads).value


def _part(b: Builder, size: int | None, bounds: tuple[int, int, int] | None, bits: Mapping[str, bool]) -> range | None:
    """Return the indices that a slice takes along a dimension; None if it takes a whole one of unknown size."""
    begin, end, stride = bounds or (0, 0, 1)
    if stride < 1:
        raise b.error("it is the gradient of a slice with negative strides; use tf.reverse")
    is_whole = bounds is None or (bits["begin_mask"] and bits["end_mask"] and stride == 1)
    if size is None:
        if not is_whole:
            raise b.error("it takes a part of a dimension of unknown size; give input_shapes")
        return None
    if is_whole:
        return range(size)
    if bits["shrink_axis_mask"]:
        return range(size)[int(begin) % size :][:1]
    return range(size)[slice(None if bits["begin_mask"] else begin, None if bits["end_mask"] else end, stride)]


def dilated(x: Expression, steps: Sequence[int]) -> Expression:
    """Insert zeros between elements, which are then ``steps`` apart."""
    if max(steps, default=1) == 1:
        return x
    b = x.b
    shape = tuple(None if d is None else max((d - 1) * n + 1, 0) for d, n in zip(b.shape(x.value), steps, strict=True))
    if x.value.data is not None:
        data = np.zeros([d or 0 for d in shape], x.type.dtype)
        data[tuple(slice(None, None, step) for step in steps)] = x.value.data
        return Expression(b, b.const(data))
    operands = [x.value, b.const(steps, np.int32), b.const(0, x.type.dtype)]
    return Expression(b, b.op(DILATE, operands, type=x.type, shape=shape))


def padded(x: Expression, pads: Sequence[tuple[int, int]]) -> Expression:
    """Pad a tensor with zeros along every dimension."""
    if not any(map(any, pads)):
        return x
    b = x.b
    shape = tuple(None if d is None else d + sum(pad) for d, pad in zip(b.shape(x.value), pads, strict=True))
    return Expression(b, b.op(PAD, [x.value, b.const(pads, np.int32)], type=x.type, shape=shape))


LOWERINGS: dict[str, Lowering] = {"BroadcastGradientArgs": _reduced_axes, "StridedSliceGrad": _slice_gradient}
