"""Sparse tensors: indices [n, rank] of elements, their values, and a dense shape."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, int32, sizes


def _matmul(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Scale the dense matrix's rows by the elements, and sum them by the elements' rows."""
    places = int32(indices)
    rows, columns = (places[:, 1], places[:, 0]) if attrs["adjoint_a"] else (places[:, 0], places[:, 1])
    dense = tf.transpose(dense) if attrs["adjoint_b"] else dense
    count = int32(shape[1] if attrs["adjoint_a"] else shape[0])
    return tf.math.unsorted_segment_sum(tf.gather(dense, columns) * values[:, None], rows, count)


def _reduce_sum(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, axes: Any) -> Any:
    dense = tf.scatter_nd(int32(indices), values, int32(shape))
    return tf.reduce_sum(dense, axes, keepdims=bool(attrs["keep_dims"]))


def _linear(indices: Any, shape: Any) -> Any:
    """Return the row-major indices of elements."""
    index = tf.zeros_like(indices[:, 0])
    for dimension in range(sizes(indices, 1)[0]):
        index = index * shape[dimension] + indices[:, dimension]
    return index


def _reorder(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any) -> Any:
    """Sort by one dimension after the other, last one first: flat indices may exceed int32."""
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
    """Return the sum, mean, or sum over the root of the count, of each segment's rows."""

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
    """Put the default into the first column of empty rows."""
    rows, count = int32(indices[:, 0]), tf.shape(indices)[0]
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, int32(shape[0]))
    is_empty = lengths == 0
    missing = tf.where(is_empty)
    added = tf.concat([missing, tf.zeros([tf.shape(missing)[0], sizes(indices, 1)[0] - 1], tf.int64)], 1)
    all_rows = tf.concat([rows, int32(missing[:, 0])], 0)
    order = tf.argsort(all_rows, stable=True)
    filled_indices = tf.gather(tf.concat([indices, added], 0), order)
    filled = tf.concat([values, tf.fill([tf.shape(missing)[0]], default)], 0)
    back = tf.cast(tf.math.invert_permutation(order)[:count], tf.int64)
    return filled_indices, tf.gather(filled, order), is_empty, back


def _dense(attrs: Mapping[str, Any], indices: Any, shape: Any, values: Any, default: Any) -> Any:
    """Place elements of types that SPARSE_TO_DENSE lacks, by scattering their indices."""
    if values.dtype in (tf.float32, tf.int32, tf.int64, tf.int8, tf.uint8):
        return None
    if indices.shape.rank != 2 or values.shape.rank != 1:
        raise Unfit("its indices are no matrix")
    total = tf.reduce_prod(int32(shape))
    index = _linear(int32(indices), int32(shape))[:, None]
    numbers = tf.scatter_nd(index, tf.range(1, tf.shape(index)[0] + 1), [total])
    return tf.reshape(tf.gather(tf.concat([[default], values], 0), numbers), int32(shape))


def _segments_gradient(combine: str) -> Composition:
    """Return the gradient of the rows combined in each segment."""

    def compose(attrs: Mapping[str, Any], dy: Any, indices: Any, ids: Any, count: Any) -> Any:
        ids = int32(ids)
        number = tf.math.unsorted_segment_sum(tf.ones_like(ids, dy.dtype), ids, tf.shape(dy)[0])
        weight = number if combine == "mean" else tf.sqrt(number)
        rows = tf.gather(dy / tf.reshape(weight, [-1, *[1] * (dy.shape.rank - 1)]), ids)
        return tf.math.unsorted_segment_sum(rows, int32(indices), count)

    return compose


def _filled_gradient(attrs: Mapping[str, Any], places: Any, dy: Any) -> Any:
    own = tf.gather(dy, places)
    return own, tf.reduce_sum(dy) - tf.reduce_sum(own)


def _counted(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, size: Any, weights: Any) -> Any:
    """Sum weights by number, for a vector or for each row of a matrix."""
    rank, size, ids = sizes(shape)[0], tf.reshape(int32(size), []), int32(values)
    binary = bool(attrs["binary_output"])
    if binary or 0 in weights.shape.as_list():
        weights = tf.ones_like(ids, weights.dtype)
    rows = int32(indices[:, 0]) if rank == 2 else tf.zeros_like(ids)
    count = int32(shape[0]) if rank == 2 else 1
    places = tf.where(ids < size, rows * size + ids, count * size)
    sums = tf.math.unsorted_segment_sum(weights, places, count * size + 1)[:-1]
    sums = tf.minimum(sums, tf.ones([], sums.dtype)) if binary else sums
    return tf.reshape(sums, [count, size]) if rank == 2 else sums


def _placed(indices: Any, shape: Any) -> Any:
    """Return the row-major indices of elements as int32."""
    return _linear(int32(indices), int32(shape))


def _added(attrs: Mapping[str, Any], a: Any, x: Any, shape: Any, b: Any, y: Any, other: Any, least: Any) -> Any:
    """Return the sums of both tensors' elements, in order, without those of too small magnitude."""
    places, ids = tf.unique(tf.concat([_placed(a, shape), _placed(b, shape)], 0))
    total = tf.math.unsorted_segment_sum(tf.concat([x, y], 0), ids, tf.shape(places)[0])
    kept = tf.where(tf.abs(total) >= least)[:, 0]
    places, total = tf.gather(places, kept), tf.gather(total, kept)
    order = tf.argsort(places, stable=True)
    return _unplaced(tf.gather(places, order), shape), tf.gather(total, order), shape


def _unplaced(places: Any, shape: Any) -> Any:
    """Return the indices of elements, given their row-major indices."""
    columns, rest = [], places
    for dimension in reversed(range(sizes(shape)[0])):
        size = int32(shape[dimension])
        columns.append(tf.math.floormod(rest, size))
        rest = rest // size
    return tf.cast(tf.stack(columns[::-1], 1), tf.int64)


def _both(extreme: Any) -> Composition:
    """Return a composition for the extremes of two sparse tensors; missing elements are 0."""

    def compose(attrs: Mapping[str, Any], a: Any, x: Any, shape: Any, b: Any, y: Any, other: Any) -> Any:
        places, ids = tf.unique(tf.concat([_placed(a, shape), _placed(b, shape)], 0))
        count, split = tf.shape(places)[0], tf.shape(x)[0]
        left = tf.math.unsorted_segment_sum(x, ids[:split], count)
        right = tf.math.unsorted_segment_sum(y, ids[split:], count)
        order = tf.argsort(places, stable=True)
        return _unplaced(tf.gather(places, order), shape), tf.gather(extreme(left, right), order)

    return compose


def _with_dense(function: Any) -> Composition:
    """Return a function of each element and the dense element at its place, which may be broadcast."""

    def compose(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, dense: Any) -> Any:
        whole = tf.broadcast_to(dense, int32(shape))
        return function(values, tf.gather_nd(whole, indices))

    return compose


def _joined(attrs: Mapping[str, Any], *operands: Any) -> Any:
    count, axis = int(attrs["N"]), int(attrs["concat_dim"])
    indices, values, shapes = (operands[i * count : (i + 1) * count] for i in range(3))
    rank = sizes(indices[0], 1)[0]
    begin, moved = tf.zeros([], tf.int64), []
    along = tf.one_hot(axis % rank, rank, dtype=tf.int64)
    for part, shape in zip(indices, shapes, strict=True):
        moved.append(part + begin * along)
        begin += shape[axis]
    shape = tf.where(along > 0, begin, shapes[0])
    return *_reorder(attrs, tf.concat(moved, 0), tf.concat(values, 0), shape), shape


def _sliced(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, start: Any, size: Any) -> Any:
    end = tf.minimum(start + size, shape)
    inside = tf.reduce_all(tf.logical_and(indices >= start, indices < end), 1)
    kept = tf.where(inside)[:, 0]
    return tf.gather(indices, kept) - start, tf.gather(values, kept), tf.maximum(end - start, tf.zeros([], tf.int64))


def _softmax(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any) -> Any:
    """Return the softmax over the elements of each row."""
    rows, ids = tf.unique(_linear(int32(indices[:, :-1]), int32(shape[:-1])))
    count = tf.shape(rows)[0]
    parts = tf.exp(values - tf.gather(tf.math.unsorted_segment_max(values, ids, count), ids))
    return parts / tf.gather(tf.math.unsorted_segment_sum(parts, ids, count), ids)


def _reduce_max(attrs: Mapping[str, Any], indices: Any, values: Any, shape: Any, axes: Any) -> Any:
    """Return the largest elements, or 0 if there are none."""
    places, count = _placed(indices, shape), tf.reduce_prod(int32(shape))
    keep = bool(attrs["keep_dims"])
    largest = tf.reshape(tf.math.unsorted_segment_max(values, places, count), int32(shape))
    number = tf.math.unsorted_segment_sum(tf.ones_like(values), places, count)
    number = tf.reduce_sum(tf.reshape(number, int32(shape)), axes, keepdims=keep)
    return tf.where(number > 0, tf.reduce_max(largest, axes, keepdims=keep), tf.zeros([], values.dtype))


COMPOSITIONS: dict[str, Composition] = {
    "SparseTensorDenseMatMul": _matmul,
    "SparseReduceSum": _reduce_sum,
    "SparseReorder": _reorder,
    "SparseReshape": _reshape,
    "SparseFillEmptyRows": _fill_empty_rows,
    "SparseToDense": _dense,
    "SparseAdd": _added,
    "SparseBincount": _counted,
    "SparseConcat": _joined,
    "SparseDenseCwiseAdd": _with_dense(tf.add),
    "SparseDenseCwiseDiv": _with_dense(tf.divide),
    "SparseDenseCwiseMul": _with_dense(tf.multiply),
    "SparseFillEmptyRowsGrad": _filled_gradient,
    "SparseReduceMax": _reduce_max,
    "SparseSegmentMeanGrad": _segments_gradient("mean"),
    "SparseSegmentSqrtNGrad": _segments_gradient("sqrt_n"),
    "SparseSlice": _sliced,
    "SparseSoftmax": _softmax,
    "SparseSparseMaximum": _both(tf.maximum),
    "SparseSparseMinimum": _both(tf.minimum),
    **{
        f"SparseSegment{name}{suffix}": _segments(name.lower())
        for name in ("Sum", "Mean", "SqrtN")
        for suffix in ("", "WithNumSegments")
    },
}
