"""Sparse tensors: indices [n, rank] of elements, these, and a dense shape."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, int32, sizes


def _matmul(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Return the sum of the dense matrix's rows, times elements, by the elements' rows."""
    places = int32(indices)
    rows, columns = (places[:, 1], places[:, 0]) if attrs["adjoint_a"] else (places[:, 0], places[:, 1])
    dense = tf.transpose(dense) if attrs["adjoint_b"] else dense
    count = int32(shape[1] if attrs["adjoint_a"] else shape[0])
    return tf.math.unsorted_segment_sum(tf.gather(dense, columns) * values[:, None], rows, count)


def _reduce_sum(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, axes: Any) -> Any:
    dense = tf.scatter_nd(int32(indices), values, int32(shape))
    return tf.reduce_sum(dense, axes, keepdims=bool(attrs["keep_dims"]))


def _linear(indices: Any, shape: Any) -> Any:
    """Return the numbers of elements in the order of rows."""
    place = tf.zeros_like(indices[:, 0])
    for dimension in range(sizes(indices, 1)[0]):
        place = place * shape[dimension] + indices[:, dimension]
    return place


def _reorder(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any) -> Any:
    """Sort by one dimension after the other, the last one first: numbers of elements may be too large for int32."""
    order = tf.range(tf.shape(indices)[0])
    for dimension in reversed(range(sizes(indices, 1)[0])):
        keys = tf.gather(int32(indices[:, dimension]), order)
        order = tf.gather(order, tf.argsort(keys, stable=True))
    return tf.gather(indices, order), tf.gather(values, order)


def _reshape(attrs: Mapping[str, Any], indices: Any, shape: Any, target: Any) -> Any:
    one = tf.ones([], tf.int64)
    given = tf.reduce_prod(tf.where(target < 0, one, target))
    target = tf.where(target < 0, tf.reduce_prod(shape) // tf.maximum(given, one), target)
    rest, columns = _linear(indices, shape), []
    for dimension in reversed(range(sizes(target)[0])):
        columns.append(rest % target[dimension])
        rest = rest // target[dimension]
    return tf.stack(columns[::-1], 1), target


def _segments(combine: str) -> Composition:
    """Return the sum, mean or sum over root of the count of the rows that each segment names."""

    def compose(attrs: Mapping[str, Any], data: Any, indices: Any, ids: Any, count: Any = None) -> Any:
        rows, ids = tf.gather(data, indices), int32(ids)
        count = tf.maximum(tf.reduce_max(ids), -1) + 1 if count is None else int32(count)
        total = tf.math.unsorted_segment_sum(rows, ids, count)
        if combine == "sum":
            return total
        number = tf.math.unsorted_segment_sum(tf.ones_like(ids, data.dtype), ids, count)
        number = tf.maximum(number, tf.ones([], data.dtype))
        weight = number if combine == "mean" else tf.sqrt(number)
        return total / tf.reshape(weight, [-1, *[1] * (data.shape.rank - 1)])

    return compose


def _fill_empty_rows(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, default: Any) -> Any:
    """Put a default into the first column of rows without elements."""
    rows, count = int32(indices[:, 0]), tf.shape(indices)[0]
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, int32(shape[0]))
    is_empty = lengths == 0
    missing = tf.where(is_empty)
    added = tf.concat([missing, tf.zeros([tf.shape(missing)[0], sizes(indices, 1)[0] - 1], tf.int64)], 1)
    all_rows = tf.concat([rows, int32(missing[:, 0])], 0)
    order = tf.argsort(all_rows, stable=True)
    made = tf.gather(tf.concat([indices, added], 0), order)
    filled = tf.concat([values, tf.fill([tf.shape(missing)[0]], default)], 0)
    back = tf.cast(tf.math.invert_permutation(order)[:count], tf.int64)
    return made, tf.gather(filled, order), is_empty, back


def _dense(attrs: Mapping[str, Any], indices: Any, shape: Any, values: Any, default: Any) -> Any:
    """Return elements of types that SPARSE_TO_DENSE lacks at their places, by the numbers of these."""
    if values.dtype in (tf.float32, tf.int32, tf.int64, tf.int8, tf.uint8):
        return None
    if indices.shape.rank != 2 or values.shape.rank != 1:
        raise Unfit("its indices are no matrix")
    total = tf.reduce_prod(int32(shape))
    place = _linear(int32(indices), int32(shape))[:, None]
    numbers = tf.scatter_nd(place, tf.range(1, tf.shape(place)[0] + 1), [total])
    return tf.reshape(tf.gather(tf.concat([[default], values], 0), numbers), int32(shape))


COMPOSITIONS: dict[str, Composition] = {
    "SparseTensorDenseMatMul": _matmul,
    "SparseReduceSum": _reduce_sum,
    "SparseReorder": _reorder,
    "SparseReshape": _reshape,
    "SparseFillEmptyRows": _fill_empty_rows,
    "SparseToDense": _dense,
    **{
        f"SparseSegment{name}{suffix}": _segments(name.lower())
        for name in ("Sum", "Mean", "SqrtN")
        for suffix in ("", "WithNumSegments")
    },
}
