"""TensorFlow functions on integers of all types, narrow ones wrapping around."""

from typing import Any

import tensorflow as tf

from support.tf_functions import TfFunction

_PAIR = ((2, 3, 6), (2, 3, 6))
_NARROW = {"int8": 9.0, "uint8": 9.0, "int16": 2000.0, "int32": 2000.0, "int64": 2000.0, "uint32": 2000.0}


def _arithmetic(dtype: Any, scale: float) -> Any:
    def compute(x: Any, y: Any) -> Any:
        a, b = (_cast(v, dtype, scale) for v in (x, y))
        b = tf.where(b == tf.zeros([], dtype), tf.ones([], dtype), b)
        made = [a + b, a - b, a * b, tf.maximum(a, b), tf.minimum(a, b), a // b, a % b, tf.truncatediv(a, b)]
        made += [a == b, a != b, a < b, a >= b, tf.reduce_sum(a, 1), tf.reduce_max(a, [0, 2]), tf.reduce_prod(a, 2)]
        made += [tf.cumsum(a, 1), tf.argmax(a, 1), tf.argmin(b, -1, tf.int32), tf.reverse_sequence(a, [2, 1], 1)]
        return [*made, tf.bitwise.left_shift(a, tf.ones_like(a))]

    return compute


def _signed(dtype: Any, scale: float) -> Any:
    def compute(x: Any, y: Any) -> Any:
        a, b = (_cast(v, dtype, scale) for v in (x, y))
        return tf.abs(a), -a, tf.sign(a), tf.nn.relu(a), tf.nn.relu6(b), tf.square(a), tf.clip_by_value(a, -3, 5)

    return compute


def _cast(x: Any, dtype: Any, scale: float) -> Any:
    return tf.cast((tf.abs(x) if dtype.is_unsigned else x) * scale, dtype)


def _segments(x: Any, y: Any) -> Any:
    rows, ids = tf.transpose(tf.cast(x[0] * 9, tf.int8)), [0, 1, 1, 3, 0, 2]
    sums = tf.math.unsorted_segment_sum(tf.cast(rows, tf.int64), ids, 5)
    return tf.math.unsorted_segment_max(rows, ids, 5), tf.math.unsorted_segment_min(rows, ids, 5), sums


def _long_segments(x: Any, y: Any) -> Any:
    rows, m = tf.transpose(tf.cast(x[0] * 1e6, tf.int64)) * 1234567, tf.math
    unordered = [
        reduce(part, [0, 1, 1, 3, 0, 2], 5)
        for reduce, part in ((m.unsorted_segment_max, rows), (m.unsorted_segment_min, rows))
    ]
    ordered = [reduce(rows, [0, 0, 1, 3, 3, 3]) for reduce in (m.segment_max, m.segment_min, m.segment_sum)]
    return *unordered, *ordered, m.unsorted_segment_prod(rows // 1000000000, [0, 1, 1, 3, 0, 2], 5)


def _long(x: Any, y: Any) -> Any:
    a, b = (tf.cast(v * 1e6, tf.int64) * 1234567 for v in (x, y))
    b = b // 1000000
    return a // b, -a // 7, tf.truncatediv(a, b), tf.truncatemod(a, b), tf.math.squared_difference(a, b), a**3


def _products(x: Any, y: Any) -> Any:
    a, b = (tf.cast(v * 1000, tf.int32) for v in (x, y))
    wide = tf.einsum("ijk,ijl->ikl", tf.cast(a, tf.int64), tf.cast(b, tf.int64))
    return tf.matmul(a, b, transpose_b=True), tf.matmul(a[0], b[0], transpose_a=True), wide


def _moved(dtype: Any) -> Any:
    def compute(x: Any, y: Any) -> Any:
        a, m = tf.cast(tf.abs(x[0]) * 9, dtype), tf.linalg
        made = [tf.reverse(a, [1]), tf.gather(a, [2, 0], axis=1), tf.gather_nd(a, [[0, 1], [2, 3]]), *tf.unstack(a)]
        made += [tf.stack([a, made[0]]), tf.concat([a, made[0]], 1), *tf.split(a, 3, 1), *tf.split(a, [1, 5], 1)]
        made += [m.diag(a), m.set_diag(a, a[:, 0]), tf.nn.depth_to_space(a[None, None, :, :4], 2)]
        made += [tf.nn.space_to_depth(tf.transpose(a)[None, :, :2, None], 2)]
        return made if dtype == tf.bool else [*made, tf.pad(a, [[1, 0], [0, 2]], constant_values=1)]

    return compute


INTEGERS = (
    *(TfFunction(f"arithmetic of {n}", _arithmetic(tf.as_dtype(n), s), _PAIR) for n, s in _NARROW.items()),
    *(
        TfFunction(f"arithmetic of signed {n}", _signed(tf.as_dtype(n), s), _PAIR)
        for n, s in _NARROW.items()
        if n[0] == "i"
    ),
    TfFunction("segments of int8", _segments, _PAIR),
    TfFunction("segments of int64", _long_segments, _PAIR),
    TfFunction("division of int64", _long, _PAIR),
    TfFunction("products of integers", _products, _PAIR),
    TfFunction("truths moved", lambda x, y: (tf.stack([x > 0, y > 0]), tf.split(x > 0, 3, 2)), _PAIR),
    *(TfFunction(f"{n} moved", _moved(tf.as_dtype(n)), _PAIR) for n in ("bool", "int16", "uint16", "uint32", "int64")),
    TfFunction(
        "bits turned over",
        lambda x, y: [
            tf.bitwise.invert(tf.cast(tf.abs(x) * 9, n))
            for n in ("uint8", "uint16", "uint32", "int8", "int16", "int32", "int64")
        ],
        _PAIR,
    ),
)
