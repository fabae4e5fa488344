"""Integer arithmetic (int32, int64) that TFLite has only for floats, or for int32."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, int32, known
from litecl.converter.importer.types import tf_type

_ROUNDS = 4  # each gives 23 more bits of the quotient
_LARGEST_POWER = 16


def _magnitude(attrs: Mapping[str, Any], x: Any) -> Any:
    return tf.maximum(x, -x)


def _sign(attrs: Mapping[str, Any], x: Any) -> Any:
    zero = tf.zeros([], x.dtype)
    return tf.cast(x > zero, x.dtype) - tf.cast(x < zero, x.dtype)


def _relu(attrs: Mapping[str, Any], x: Any) -> Any:
    return tf.maximum(x, tf.zeros([], x.dtype))


def _relu6(attrs: Mapping[str, Any], x: Any) -> Any:
    return tf.minimum(tf.maximum(x, tf.zeros([], x.dtype)), tf.cast(6, x.dtype))


def _squared_difference(attrs: Mapping[str, Any], x: Any, y: Any) -> Any:
    return (x - y) * (x - y)


def _power(attrs: Mapping[str, Any], x: Any, y: Any) -> Any:
    exponents = known(y, "exponent").reshape(-1)
    if len(exponents) != 1 or not 0 <= exponents[0] <= _LARGEST_POWER:
        raise Unfit(f"its exponent is not one number from 0 to {_LARGEST_POWER}")
    result = tf.ones_like(x)
    for _ in range(int(exponents[0])):
        result = result * x
    return result


def _arg(extreme: Any) -> Composition:
    """Return the composition that finds the first position of an extreme."""

    def compose(attrs: Mapping[str, Any], x: Any, axis: Any) -> Any:
        axis = int(known(axis, "axis"))
        is_extreme = tf.cast(x == extreme(x, axis, keepdims=True), tf.int32)
        return tf.argmax(is_extreme, axis, tf_type(attrs["output_type"]))

    return compose


def _floor_division(attrs: Mapping[str, Any], x: Any, y: Any) -> Any:
    """Subtract the remainder, then divide in floats repeatedly until nothing is left."""
    rest = x - tf.math.floormod(x, y)
    result = tf.zeros_like(rest)
    for _ in range(_ROUNDS):
        part = tf.cast(tf.round(tf.cast(rest, tf.float32) / tf.cast(y, tf.float32)), x.dtype)
        result, rest = result + part, rest - part * y
    return result


def _truncated_division(attrs: Mapping[str, Any], x: Any, y: Any) -> Any:
    zero = tf.zeros([], x.dtype)
    is_below = tf.logical_and(tf.math.floormod(x, y) != zero, (x < zero) != (y < zero))
    return _floor_division(attrs, x, y) + tf.cast(is_below, x.dtype)


def _truncated_rest(attrs: Mapping[str, Any], x: Any, y: Any) -> Any:
    return x - _truncated_division(attrs, x, y) * y


def _segment_sum(attrs: Mapping[str, Any], x: Any, ids: Any, count: Any) -> Any:
    """Scatter rows; those without a segment go past the end."""
    ids, count = int32(ids), tf.reshape(int32(count), [])
    places = tf.where(tf.logical_or(ids < 0, ids >= count), count, ids)[..., None]
    shape = tf.concat([[count + 1], tf.shape(x)[ids.shape.rank :]], 0)
    return tf.scatter_nd(places, x, shape)[:-1]


def _segments(reduce: Any, empty: int, empty_in_order: int) -> Composition:
    """Return a reduction per segment, with other segments' rows replaced by the neutral element.

    empty, empty_in_order: the results of empty segments if ids are unsorted, or sorted.
    """

    def compose(attrs: Mapping[str, Any], x: Any, ids: Any, count: Any = None) -> Any:
        ids = int32(ids)
        in_order = count is None
        count = tf.maximum(tf.reduce_max(ids), -1) + 1 if in_order else tf.reshape(int32(count), [])
        rows = tf.reshape(x, tf.concat([[1, -1], tf.shape(x)[ids.shape.rank :]], 0))
        own = tf.reshape(ids, [1, -1]) == tf.range(count)[:, None]
        inner = [1] * (x.shape.rank - ids.shape.rank)
        mask = tf.reshape(own, tf.concat([tf.shape(own), inner], 0)) if inner else own
        reduced = reduce(tf.where(mask, rows, tf.constant(empty, x.dtype)), 1)
        if not in_order or empty == empty_in_order:
            return reduced
        has_rows = tf.reshape(tf.reduce_any(own, 1), tf.concat([[-1], inner], 0))
        return tf.where(has_rows, reduced, tf.constant(empty_in_order, x.dtype))

    return compose


def _product(first: str, second: str) -> Composition:
    """Return the matrix product as a sum of broadcast products over the common dimension."""

    def compose(attrs: Mapping[str, Any], x: Any, y: Any) -> Any:
        x = tf.linalg.matrix_transpose(x) if attrs[first] else x
        y = tf.linalg.matrix_transpose(y) if attrs[second] else y
        return tf.reduce_sum(x[..., :, :, None] * y[..., None, :, :], -2)

    return compose


def _einsum(attrs: Mapping[str, Any], *operands: Any) -> Any:
    """Sum broadcast products, with the result's labels first."""
    left, result = attrs["equation"].replace(" ", "").split("->")
    parts = left.split(",")
    if "." in left or any(len(set(part)) != len(part) for part in (*parts, result)):
        raise Unfit("of integers it takes neither dots nor diagonals")
    labels = result + "".join(sorted(set(left) - {*result, ","}))
    product: Any = None
    for part, operand in zip(parts, operands, strict=True):
        own = [label for label in labels if label in part]
        turned = tf.transpose(operand, [part.index(label) for label in own])
        wide = turned[tuple(slice(None) if label in part else None for label in labels)]
        product = wide if product is None else product * wide
    return tf.reduce_sum(product, list(range(len(result), len(labels))))


_POWERS = [1 << n for n in range(63)] + [-1 << 63]


def _left_shift(attrs: Mapping[str, Any], x: Any, y: Any) -> Any:
    return x * tf.gather(tf.constant(_POWERS, tf.int64), int32(y))


OF_INTEGERS: dict[str, Composition] = {
    "Relu": _relu,
    "Relu6": _relu6,
    "Einsum": _einsum,
    "MatMul": _product("transpose_a", "transpose_b"),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _product("adj_x", "adj_y")),
}
OF_INT64: dict[str, Composition] = {
    **OF_INTEGERS,
    "Abs": _magnitude,
    "Sign": _sign,
    "SquaredDifference": _squared_difference,
    "Pow": _power,
    "LeftShift": _left_shift,
    "ArgMax": _arg(tf.reduce_max),
    "ArgMin": _arg(tf.reduce_min),
    "FloorDiv": _floor_division,
    "TruncateDiv": _truncated_division,
    "TruncateMod": _truncated_rest,
    "UnsortedSegmentSum": _segment_sum,
    **dict.fromkeys(("UnsortedSegmentMax", "SegmentMax"), _segments(tf.reduce_max, -1 << 63, 0)),
    **dict.fromkeys(("UnsortedSegmentMin", "SegmentMin"), _segments(tf.reduce_min, (1 << 63) - 1, 0)),
    **dict.fromkeys(("UnsortedSegmentProd", "SegmentProd"), _segments(tf.reduce_prod, 1, 1)),
    "SegmentSum": _segments(tf.reduce_sum, 0, 0),
}
