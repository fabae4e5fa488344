"""Operators that are variants of others: older, fused, or with other operands."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, dims, int32, known
from litecl.converter.importer.types import tf_type

raw = tf.raw_ops


def _offsets(attrs: Mapping[str, Any], axis: Any, *shapes: Any) -> Any:
    """Return the offset of each array when joined along an axis."""
    along = tf.one_hot(int32(axis), dims(shapes[0])[0], dtype=shapes[0].dtype)
    return tf.unstack(tf.cumsum(tf.stack(shapes) * along, 0, exclusive=True), len(shapes))


def _format_place(attrs: Mapping[str, Any], x: Any) -> Any:
    source, target = attrs["src_format"], attrs["dst_format"]
    table = tf.constant([target.index(name) for name in source], x.dtype)
    return tf.gather(table, tf.math.floormod(x, tf.cast(len(source), x.dtype)))


def _format_order(attrs: Mapping[str, Any], x: Any) -> Any:
    source, target = attrs["src_format"], attrs["dst_format"]
    if x.shape[0] == 2:
        source, target = ("".join(name for name in layout if name in "HW") for layout in (source, target))
    return tf.gather(x, [source.index(name) for name in target])


def _scattered_by_step(scatter: Callable[..., Any]) -> Composition:
    return lambda attrs, x, places, rows: scatter(x, int32(places)[:, None], rows)


def _padded_convolution(attrs: Mapping[str, Any], x: Any, paddings: Any, weights: Any) -> Any:
    padded = tf.pad(x, paddings, attrs["mode"])
    return raw.Conv2D(input=padded, filter=weights, strides=list(attrs["strides"]), padding=attrs["padding"])


def _resized_convolution(attrs: Mapping[str, Any], x: Any, size: Any, paddings: Any, weights: Any) -> Any:
    large = raw.ResizeBilinear(images=x, size=size, align_corners=bool(attrs["resize_align_corners"]))
    return _padded_convolution(attrs, large, paddings, weights)


def _pool(attrs: Mapping[str, Any], x: Any, ksize: Any, strides: Any) -> Any:
    more = {"ksize": known(ksize, "size").tolist(), "strides": known(strides, "strides").tolist()}
    return raw.MaxPool(input=x, padding=attrs["padding"], data_format=attrs["data_format"], **more)


def _pool_gradient(attrs: Mapping[str, Any], x: Any, y: Any, dy: Any, ksize: Any, strides: Any) -> Any:
    more = {"ksize": known(ksize, "size").tolist(), "strides": known(strides, "strides").tolist()}
    more |= {"padding": attrs["padding"], "data_format": attrs["data_format"]}
    return raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=dy, **more)


def _mirror_gradient(attrs: Mapping[str, Any], dy: Any, paddings: Any) -> Any:
    """Add the gradients of mirrored borders to the mirrored elements, one dimension after the other."""
    away = attrs["mode"] == "REFLECT"
    for axis, (before, after) in enumerate(known(paddings, "paddings").tolist()):
        size = dims(dy)[axis] - before - after
        left, inner, right = (tf.gather(dy, places, axis=axis) for places in _parts(before, size, after))
        for part, first in ((left, int(away)), (right, size - after - int(away))):
            count = before if part is left else after
            pads = [[0, 0]] * dy.shape.rank
            pads[axis] = [first, size - first - count]
            inner += tf.pad(tf.reverse(part, [axis]), pads)
        dy = inner
    return dy


def _parts(before: int, size: Any, after: int) -> tuple[Any, Any, Any]:
    ends = (0, before, before + size, before + size + after)
    first, inner, last = (tf.range(a, b) for a, b in itertools.pairwise(ends))
    return first, inner, last


def _bits(attrs: Mapping[str, Any], x: Any) -> Any:
    """Return the number of set bits, by a table of bytes."""
    count = {tf.int8: 1, tf.uint8: 1, tf.int16: 2, tf.int32: 4, tf.int64: 8}.get(x.dtype)
    if count is None:
        raise Unfit(f"it counts bits of {x.dtype.name}; cast to int32")
    wide = x if x.dtype == tf.int64 else int32(x)
    table = tf.constant([bin(n).count("1") for n in range(256)], tf.int32)
    base, total = tf.cast(256, wide.dtype), tf.zeros_like(x, tf.int32)
    for _ in range(count):
        byte = tf.math.floormod(wide, base)
        total += tf.gather(table, int32(byte))
        wide = (wide - byte) // base
    return tf.cast(total, tf.uint8)


def _nudged(attrs: Mapping[str, Any], low: Any, high: Any) -> tuple[Any, Any]:
    """Return the range that FakeQuant rounds to, in which zero is an integer."""
    first, last = float(bool(attrs["narrow_range"])), float(2 ** int(attrs["num_bits"]) - 1)
    scale = (high - low) / (last - first)
    zero = tf.clip_by_value(tf.floor(first - low / scale + 0.5), first, last)
    return (first - zero) * scale, (last - zero) * scale


def _rounding_gradient(attrs: Mapping[str, Any], dy: Any, x: Any, *given: Any) -> Any:
    """Pass the gradient through within the range; sum it below and above for the range's ends."""
    ends = given or (tf.constant(attrs["min"], tf.float32), tf.constant(attrs["max"], tf.float32))
    low, high = _nudged(attrs, *ends)
    axes = list(range(x.shape.rank - ends[0].shape.rank))
    below, above = (tf.reduce_sum(tf.where(side, dy, 0.0), axes) for side in (x < low, x > high))
    inside = tf.where(tf.logical_and(x >= low, x <= high), dy, 0.0)
    return (inside, below, above) if given else inside


def _reversed(attrs: Mapping[str, Any], x: Any, which: Any) -> Any:
    return tf.reverse(x, np.flatnonzero(known(which, "dimensions")).tolist())


def _unique_with_counts(attrs: Mapping[str, Any], x: Any, axis: Any) -> Any:
    if x.shape.rank != 1:
        raise Unfit("TFLite finds unique elements only of vectors")
    return tuple(raw.UniqueWithCounts(x=x, out_idx=tf_type(attrs["out_idx"])))


def _kept_by_overlaps(attrs: Mapping[str, Any], overlaps: Any, scores: Any, most: Any, limit: Any, least: Any) -> Any:
    """Return the boxes, best first, that don't overlap an earlier one too much."""
    order = tf.argsort(scores, direction="DESCENDING", stable=True)
    count, close = tf.shape(scores)[0], tf.gather(tf.gather(overlaps, order), order, axis=1) > limit
    good = tf.gather(scores, order) > least

    def step(k: Any, kept: Any) -> Any:
        clash = tf.reduce_any(tf.logical_and(kept, close[k]))
        fits = tf.reduce_sum(int32(kept)) < int32(most)
        return k + 1, tf.logical_or(kept, (tf.range(count) == k) & good[k] & fits & tf.logical_not(clash))

    none = tf.zeros_like(order, tf.bool)
    _, kept = tf.while_loop(lambda k, kept: k < count, step, (0, none), (tf.TensorShape([]), none.shape))
    return tf.gather(order, int32(tf.where(kept)[:, 0]))


def _rounded_and_back(attrs: Mapping[str, Any], x: Any, low: Any, high: Any, bits: Any = None) -> Any:
    """Round to the integers that a range allows, with one scale, or one per element along an axis."""
    number = int(attrs["num_bits"]) if bits is None else int(known(bits, "number of bits"))
    signed, axis = bool(attrs["signed_input"]), int(attrs.get("axis", -1))
    last = 2 ** (number - 1) - 1 if signed else 2**number - 1
    first = (-last - (not attrs["narrow_range"])) if signed else 0
    others = [k for k in range(x.shape.rank) if axis == -1 or k != axis % x.shape.rank]
    if not attrs["range_given"]:
        low, high = tf.reduce_min(x, others), tf.reduce_max(x, others)
    if axis != -1:
        shape = [1 if k in others else -1 for k in range(x.shape.rank)]
        low, high = tf.reshape(low, shape), tf.reshape(high, shape)
    endless = tf.constant(x.dtype.max, x.dtype)
    from_low = tf.where(first * low > 0, first / low, endless)
    from_high = tf.where(last * high > 0, last / high, endless)
    scale = tf.minimum(from_low, from_high)
    if attrs["range_given"]:
        x = tf.maximum(tf.minimum(x, last / scale), first / scale)
    steps = x * scale
    return (tf.round(steps) if attrs["round_mode"] == "HALF_TO_EVEN" else tf.floor(steps + 0.5)) / scale


def _part_replaced(attrs: Mapping[str, Any], x: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
    """Scatter a value to the places of a slice, found by slicing the element indices."""
    masks = {name: int(attrs[name]) for name in attrs if name.endswith("_mask")}
    numbers = tf.reshape(tf.range(tf.size(x)), tf.shape(x))
    places = raw.StridedSlice(input=numbers, begin=begin, end=end, strides=strides, **masks)
    parts = tf.reshape(tf.broadcast_to(value, tf.shape(places)), [-1])
    flat = tf.tensor_scatter_nd_update(tf.reshape(x, [-1]), tf.reshape(places, [-1, 1]), parts)
    return tf.reshape(flat, tf.shape(x))


def _of_mostly_zeros(attrs: Mapping[str, Any], a: Any, b: Any) -> Any:
    a, b = tf.cast(a, tf.float32), tf.cast(b, tf.float32)
    return tf.matmul(a, b, transpose_a=bool(attrs["transpose_a"]), transpose_b=bool(attrs["transpose_b"]))


def _tridiagonal_product(attrs: Mapping[str, Any], above: Any, main: Any, below: Any, x: Any) -> Any:
    columns = [tf.linalg.matrix_transpose(diagonal) for diagonal in (above, main, below)]
    zeros = tf.zeros_like(x[..., :1, :])
    later, earlier = tf.concat([x[..., 1:, :], zeros], -2), tf.concat([zeros, x[..., :-1, :]], -2)
    return columns[0] * later + columns[1] * x + columns[2] * earlier


COMPOSITIONS: dict[str, Composition] = {
    "Concat": lambda attrs, axis, *parts: tf.concat(parts, axis),
    "ConcatOffset": _offsets,
    "DataFormatDimMap": _format_place,
    "DataFormatVecPermute": _format_order,
    "DebugGradientIdentity": lambda attrs, x: tf.identity(x),
    "DeepCopy": lambda attrs, x: tf.identity(x),
    "Empty": lambda attrs, shape: tf.zeros(shape, tf_type(attrs["dtype"])),
    "FakeQuantWithMinMaxArgsGradient": _rounding_gradient,
    "FakeQuantWithMinMaxVarsGradient": _rounding_gradient,
    "FakeQuantWithMinMaxVarsPerChannelGradient": _rounding_gradient,
    "FusedPadConv2D": _padded_convolution,
    "FusedResizeAndPadConv2D": _resized_convolution,
    "InTopK": lambda attrs, x, classes: raw.InTopKV2(predictions=x, targets=classes, k=int(attrs["k"])),
    "InplaceAdd": _scattered_by_step(tf.tensor_scatter_nd_add),
    "InplaceSub": _scattered_by_step(tf.tensor_scatter_nd_sub),
    "InplaceUpdate": _scattered_by_step(tf.tensor_scatter_nd_update),
    "MaxPoolV2": _pool,
    "MaxPoolGradV2": _pool_gradient,
    "MirrorPadGrad": _mirror_gradient,
    "NonMaxSuppressionWithOverlaps": _kept_by_overlaps,
    "ParallelConcat": lambda attrs, *parts: tf.concat(parts, 0),
    "PopulationCount": _bits,
    **dict.fromkeys(
        ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"), _rounded_and_back
    ),
    "Reverse": _reversed,
    "ScatterNdNonAliasingAdd": lambda attrs, x, places, updates: tf.tensor_scatter_nd_add(x, places, updates),
    "SparseMatMul": _of_mostly_zeros,
    "TensorStridedSliceUpdate": _part_replaced,
    "TridiagonalMatMul": _tridiagonal_product,
    "UniqueWithCountsV2": _unique_with_counts,
}
