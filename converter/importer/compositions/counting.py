"""Counts, histograms, sets and running sums."""

import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, dims, int32, known, rows_of, sizes
from litecl.converter.importer.types import tf_type


def _bincount(attrs: Mapping[str, Any], values: Any, size: Any, weights: Any) -> Any:
    """Sum weights by number, or return whether a number occurs; return None without either, as there is a lowering."""
    binary = bool(attrs.get("binary_output"))
    has_weights = weights.shape.rank is None or 0 not in weights.shape.as_list()
    if not (binary or has_weights):
        return None
    size = tf.reshape(int32(size), [])
    if values.shape.rank == 2 and "binary_output" in attrs:
        ids = int32(values)
        count = dims(ids)[0]
        inside = ids < size
        flat = tf.where(inside, ids + tf.range(count)[:, None] * size, count * size)
        sums = _sums(flat, tf.where(inside, _ones(weights, values, binary), 0), count * size + 1)[:-1]
        return _clipped(tf.reshape(sums, [count, size]), binary)
    ids = int32(tf.reshape(values, [-1]))
    ones = tf.reshape(_ones(weights, values, binary), [-1])
    return _clipped(_sums(tf.minimum(ids, size), ones, size + 1)[:-1], binary)


def _ragged_bincount(attrs: Mapping[str, Any], splits: Any, values: Any, size: Any, weights: Any) -> Any:
    """Sum weights by row and number."""
    size, rows = tf.reshape(int32(size), []), rows_of(int32(splits), tf.shape(values)[0])
    count, ids = tf.shape(splits)[0] - 1, int32(values)
    binary = bool(attrs["binary_output"])
    if binary or 0 in weights.shape.as_list():
        weights = tf.ones(tf.shape(values), weights.dtype)
    places = tf.where(ids < size, rows * size + ids, count * size)
    sums = _sums(places, weights, count * size + 1)[:-1]
    return _clipped(tf.reshape(sums, [count, size]), binary)


def _ones(weights: Any, values: Any, binary: bool) -> Any:
    return tf.ones(tf.shape(values), weights.dtype) if binary else weights


def _sums(ids: Any, weights: Any, count: Any) -> Any:
    return tf.math.unsorted_segment_sum(tf.reshape(weights, [-1]), tf.reshape(ids, [-1]), count)


def _clipped(counts: Any, binary: bool) -> Any:
    return tf.minimum(counts, tf.ones([], counts.dtype)) if binary else counts


def _histogram(attrs: Mapping[str, Any], values: Any, ends: Any, count: Any) -> Any:
    """Count values per equal-width bin, clamping outliers to the end bins."""
    values = tf.reshape(values, [-1])
    bins = tf.cast(count, values.dtype)
    places = tf.floor((values - ends[0]) / (ends[1] - ends[0]) * bins)
    ids = int32(tf.clip_by_value(places, tf.zeros([], values.dtype), bins - 1))
    return _sums(ids, tf.ones_like(ids, tf_type(attrs["dtype"])), count)


def _unique_with_counts(attrs: Mapping[str, Any], x: Any) -> Any:
    unique, ids = tf.unique(x, tf_type(attrs["out_idx"]))
    counts = tf.math.unsorted_segment_sum(tf.ones_like(int32(ids)), int32(ids), tf.shape(unique)[0])
    return unique, ids, tf.cast(counts, ids.dtype)


def _difference(attrs: Mapping[str, Any], x: Any, y: Any) -> Any:
    """Return the elements of x that are not in y, and their positions."""
    places = tf.where(tf.logical_not(tf.reduce_any(x[:, None] == y[None], 1)))[:, 0]
    return tf.gather(x, places), tf.cast(places, tf_type(attrs["out_idx"]))


def _nth(attrs: Mapping[str, Any], x: Any, n: Any) -> Any:
    """Return the n-th smallest, or largest, element of every row."""
    count = int(known(n, "place")) + 1
    if attrs["reverse"]:
        return tf.math.top_k(x, count).values[..., -1]
    return -tf.math.top_k(-x, count).values[..., -1]


def _approximate_top_k(attrs: Mapping[str, Any], x: Any) -> Any:
    """Return the largest, or smallest, elements exactly."""
    rank, axis = x.shape.rank, int(attrs["reduction_dimension"])
    if rank is None or axis % rank != rank - 1:
        raise Unfit("it looks along another dimension than the last")
    top = tf.math.top_k(x if attrs["is_max_k"] else -x, int(attrs["k"]))
    return (top.values if attrs["is_max_k"] else -top.values), top.indices


def _scattered(extreme: Any, combine: Any) -> Composition:
    """Return a composition that takes the extreme of each element and the updates at its place."""

    def compose(attrs: Mapping[str, Any], x: Any, indices: Any, updates: Any) -> Any:
        depth, shape = sizes(indices)[-1], dims(x)
        strides = [tf.reduce_prod(tf.stack([1, *shape[i + 1 : depth]])) for i in range(depth)]
        places = tf.reshape(tf.reduce_sum(int32(indices) * tf.stack(strides), -1), [-1])
        rows = tf.reduce_prod(tf.stack([1, *shape[:depth]]))
        flat = tf.concat([[-1], tf.stack([1, *shape[depth:]])[1:]], 0)
        extremes = tf.reshape(extreme(tf.reshape(updates, flat), places, rows), tf.shape(x))
        # Without finite updates this is the lowest or highest number, which an infinite x exceeds.
        is_empty = extremes == (x.dtype.min if combine is tf.maximum else x.dtype.max)
        return tf.where(is_empty, x, combine(x, extremes))

    return compose


def _running_log_sum(attrs: Mapping[str, Any], x: Any, axis: Any) -> Any:
    """Compute running log-sum-exps of 1, 2, 4, ... neighbours, each from the previous one."""
    dimension = int(known(axis, "axis")) % x.shape.rank
    size, reverse = x.shape[dimension], bool(attrs["reverse"])
    if size is None:
        raise Unfit(f"the size of dimension {dimension} must be known; give input_shapes")
    x = tf.maximum(x, x.dtype.min)  # the difference of two infinities would be NaN
    x = _shifted(x, dimension, 1, reverse) if attrs["exclusive"] else x
    step = 1
    while step < size:
        other = _shifted(x, dimension, step, reverse)
        x = tf.maximum(x, other) + tf.math.log1p(tf.exp(-tf.abs(x - other)))
        step *= 2
    return tf.where(x <= x.dtype.min, -math.inf, x)


def _shifted(x: Any, axis: int, by: int, reverse: bool) -> Any:
    pads = [[0, 0]] * x.shape.rank
    pads[axis] = [0, by] if reverse else [by, 0]
    padded = tf.pad(x, pads, constant_values=x.dtype.min)
    begin, size = [0] * x.shape.rank, [-1] * x.shape.rank
    begin[axis], size[axis] = by if reverse else 0, x.shape[axis]
    return tf.slice(padded, begin, size)


def _unravelled(attrs: Mapping[str, Any], indices: Any, shape: Any) -> Any:
    rows, rest = [], indices
    for size in reversed(tf.unstack(shape)):
        rows.append(rest % size)
        rest = rest // size
    return tf.stack(rows[::-1])


COMPOSITIONS: dict[str, Composition] = {
    "Bincount": _bincount,
    "DenseBincount": _bincount,
    "RaggedBincount": _ragged_bincount,
    "HistogramFixedWidth": _histogram,
    "UniqueWithCounts": _unique_with_counts,
    "ListDiff": _difference,
    "NthElement": _nth,
    "ApproxTopK": _approximate_top_k,
    "TensorScatterMax": _scattered(tf.math.unsorted_segment_max, tf.maximum),
    "TensorScatterMin": _scattered(tf.math.unsorted_segment_min, tf.minimum),
    "CumulativeLogsumexp": _running_log_sum,
    "UnravelIndex": _unravelled,
}
