"""Constants, operators that move elements, and products."""

import string
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.tensor_util import constant_value_as_shape

from litecl.converter.importer.stablehlo.values import (
    Rule,
    Spread,
    element_type,
    integers,
    number,
    plain,
    shape_of,
    whole,
)


def _constant(op: Any) -> Any:
    elements = op.attributes["value"]
    shape, type_ = shape_of(op), element_type(op)
    if type_ == tf.bfloat16:
        raise NotImplementedError("has bfloat16 elements, which jaxlib does not expose; use float32")
    array = np.array(elements)
    if elements.is_splat and np.prod(shape) > 1:
        return Spread(tf.constant(array.reshape(-1)[:1].reshape([1] * len(shape))), tuple(shape))
    return tf.constant(array.reshape(shape))


def _iota(op: Any) -> Any:
    shape, axis = shape_of(op), number(op, "iota_dimension", 0)
    line = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return Spread(tf.constant(line.astype(element_type(op).as_numpy_dtype)), tuple(shape))


def _dynamic_iota(op: Any, shape: Any) -> Any:
    axis, rank = number(op, "iota_dimension", 0), op.results[0].type.rank
    count = constant_value_as_shape(shape)[axis]
    with tf.init_scope() if count is not None else nullcontext():  # to stay a known constant
        line = tf.range(shape[axis] if count is None else count)
        line = tf.cast(tf.reshape(line, [-1 if i == axis else 1 for i in range(rank)]), element_type(op))
    return Spread(line, shape)


def _broadcast(op: Any, x: Any) -> Any:
    """Give the operand the rank of the result; an attribute maps its dimensions."""
    shape, value = shape_of(op), _raised(op, x)
    return value if list(value.shape) == shape else Spread(value, tuple(shape))


def _dynamic_broadcast(op: Any, x: Any, shape: Any) -> Any:
    return Spread(_raised(op, x), whole(shape))


def _raised(op: Any, x: Any) -> Any:
    places, rank = integers(op, "broadcast_dimensions"), op.results[0].type.rank
    if places != sorted(places):
        raise NotImplementedError("changes the order of dimensions")
    small = x.value if isinstance(x, Spread) else x
    sizes = [1] * rank
    for axis, size in zip(places, small.shape, strict=True):
        sizes[axis] = -1 if size is None else size
    return small if len(places) == rank else tf.reshape(small, sizes)


def _reshape(op: Any, x: Any) -> Any:
    shape = shape_of(op)
    if isinstance(x, Spread) and all(n == 1 for n in x.value.shape):
        return Spread(tf.reshape(x.value, [1] * len(shape)), tuple(shape))
    return tf.reshape(whole(x), shape)


def _transpose(op: Any, x: Any) -> Any:
    order = integers(op, "permutation")
    if isinstance(x, Spread) and isinstance(x.shape, tuple):
        return Spread(tf.transpose(x.value, order), tuple(x.shape[i] for i in order))
    return tf.transpose(whole(x), order)


def _slice(op: Any, x: Any) -> Any:
    return tf.strided_slice(x, *(integers(op, name) for name in ("start_indices", "limit_indices", "strides")))


def _pad(op: Any, x: Any, value: Any) -> Any:
    low, high, inner = (integers(op, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return padded(x, value, low, high, inner)


def _dynamic_pad(op: Any, x: Any, value: Any, *amounts: Any) -> Any:
    certain = [tf.get_static_value(amount) for amount in amounts]
    if any(amount is None for amount in certain):
        raise NotImplementedError("pads by computed numbers: give every dimension a size")
    return padded(x, value, *(amount.tolist() for amount in certain))


def sizes_of(x: Any) -> list[Any]:
    """Return the sizes of dimensions, as tensors if unknown."""
    return [tf.shape(x)[i] if d is None else d for i, d in enumerate(x.shape)]


def padded(x: Any, value: Any, low: list[int], high: list[int], inner: list[int]) -> Any:
    """Pad around and between elements; negative padding removes elements."""
    for axis, count in enumerate(inner):
        if count:
            x = _apart(x, value, axis, count)
    edges = [(max(before, 0), max(after, 0)) for before, after in zip(low, high, strict=True)]
    if any(map(any, edges)):
        x = _put_around(x, edges, value)
    if min([*low, *high], default=0) >= 0:
        return x
    begin = [max(-n, 0) for n in low]
    size = [d - first - max(-n, 0) for d, first, n in zip(x.shape, begin, high, strict=True)]
    return tf.slice(x, begin, size)


def _put_around(x: Any, edges: list[tuple[int, int]], value: Any) -> Any:
    """Pad unsigned integers as signed ones of the same size, since LiteRT's PAD lacks them."""
    signed = {tf.uint32: tf.int32, tf.uint64: tf.int64}.get(x.dtype)
    if signed is None:
        return tf.pad(x, edges, constant_values=value)
    return tf.bitcast(tf.pad(tf.bitcast(x, signed), edges, constant_values=tf.bitcast(value, signed)), x.dtype)


def _apart(x: Any, value: Any, axis: int, count: int) -> Any:
    shape = [-1 if d is None else d for d in x.shape]
    columns = tf.expand_dims(x, axis + 1)
    pads = [(0, count if i == axis + 1 else 0) for i in range(len(shape) + 1)]
    many = _put_around(columns, pads, value)
    wide = tf.reshape(many, [*shape[:axis], shape[axis] * (count + 1), *shape[axis + 1 :]])
    begin, size = [0] * len(shape), [-1] * len(shape)
    size[axis] = (shape[axis] - 1) * (count + 1) + 1
    return tf.slice(wide, begin, size)


def _dot(op: Any, x: Any, y: Any) -> Any:
    from jaxlib.mlir.dialects import stablehlo

    type_ = element_type(op)
    if type_.is_integer:  # sums need more bits than products of narrow integers
        wide = type_ if type_ == tf.int64 else tf.int32
        return tf.cast(_products(stablehlo, op, tf.cast(x, wide), tf.cast(y, wide)), type_)
    return _products(stablehlo, op, tf.cast(x, type_), tf.cast(y, type_))


def _products(stablehlo: Any, op: Any, x: Any, y: Any) -> Any:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions))
    summed = (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))
    if x.shape.rank == y.shape.rank == 2 and not batch[0] and len(summed[0]) == 1:
        return tf.matmul(x, y, transpose_a=summed[0] == [0], transpose_b=summed[1] == [1])
    letters = iter(string.ascii_letters)
    names: tuple[dict[int, str], dict[int, str]] = ({}, {})
    for left, right in zip((*batch[0], *summed[0]), (*batch[1], *summed[1]), strict=True):
        names[0][left] = names[1][right] = next(letters)
    operands = [
        "".join(own.setdefault(i, next(letters)) for i in range(v.shape.rank))
        for own, v in zip(names, (x, y), strict=True)
    ]
    shared = {own[i] for own, axes in zip(names, summed, strict=True) for i in axes}
    leading = [names[0][i] for i in batch[0]]
    free = [c for text in operands for c in text if c not in shared and c not in leading]
    return tf.einsum(f"{','.join(operands)}->{''.join([*leading, *free])}", x, y)


def _size(op: Any, x: Any) -> Any:
    axis = number(op, "dimension", 0)
    return tf.shape(x)[axis] if x.shape[axis] is None else tf.constant(x.shape[axis])


RULES: Mapping[str, Rule] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": plain(lambda op, *operands: tf.concat(operands, number(op, "dimension", 0))),
    "constant": _constant,
    "dot_general": plain(_dot),
    "dynamic_broadcast_in_dim": _dynamic_broadcast,
    "dynamic_pad": plain(_dynamic_pad),
    "dynamic_iota": plain(_dynamic_iota),
    "dynamic_reshape": plain(lambda op, x, shape: tf.reshape(x, shape)),
    "get_dimension_size": plain(_size),
    "iota": _iota,
    "pad": plain(_pad),
    "reshape": _reshape,
    "reverse": plain(lambda op, x: tf.reverse(x, integers(op, "dimensions"))),
    "slice": plain(_slice),
    "transpose": _transpose,
}
