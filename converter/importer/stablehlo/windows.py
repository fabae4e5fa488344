"""Convolutions, and reductions of dimensions and of windows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.converter.importer.stablehlo.shapes import padded, sizes_of
from litecl.converter.importer.stablehlo.values import (
    Rule,
    Spread,
    body_of,
    directions,
    integers,
    known,
    number,
    plain,
    whole,
    words,
)
from litecl.interpreter.kit import window
from litecl.interpreter.schema import Padding

_REDUCTIONS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any], float]] = {
    "add": (tf.reduce_sum, tf.add, 0),
    "multiply": (tf.reduce_prod, tf.multiply, 1),
    "maximum": (tf.reduce_max, tf.maximum, -np.inf),
    "minimum": (tf.reduce_min, tf.minimum, np.inf),
    "and": (tf.reduce_all, tf.logical_and, True),
    "or": (tf.reduce_any, tf.logical_or, False),
}
_TIES = ("compare", "compare", "and", "or", "select", "select")
_EXTREME_BODIES = (("compare", "compare", "or", *_TIES), ("compare", *_TIES))  # of floats, possibly NaN, and of others
_EXTREMES = {"GT": (tf.reduce_max, tf.argmax), "LT": (tf.reduce_min, tf.argmin)}


def _reduce(op: Any, *operands: Any) -> Any:
    axes, body = integers(op, "dimensions"), body_of(op)
    if len(operands) == 4:
        return _extreme(op, whole(operands[0]), operands[1], axes)
    x, first = (whole(operands[0]), operands[1]) if len(operands) == 2 else (None, None)
    kind = _REDUCTIONS.get(body[0]) if len(body) == 1 else None
    if x is None or kind is None or (x.dtype == tf.bool) != (body[0] in ("and", "or")):
        raise NotImplementedError(f"reduces by {', '.join(body)}")
    reduced, combined, neutral = kind
    result = reduced(x, axes)
    start = known(first)
    return result if start is not None and _is_neutral(start, neutral) else combined(result, whole(first))


def _is_neutral(start: Any, neutral: float) -> bool:
    if np.isinf(neutral) and start.dtype.kind == "i":
        limits = np.iinfo(start.dtype)
        return bool(start == (limits.max if neutral > 0 else limits.min))
    return bool(start == neutral)


def _extreme(op: Any, x: Any, indices: Any, axes: Sequence[int]) -> Any:
    """Return the largest, or smallest, elements with their positions, which JAX writes for argmax."""
    direction, *ties = directions(op) or [""]
    line = indices.value if isinstance(indices, Spread) else indices
    counts = len(axes) == 1 and known(line) is not None and _counts(known(line), axes[0], x.shape[axes[0]])
    if direction not in _EXTREMES or not counts or body_of(op) not in _EXTREME_BODIES or ties[-2:] != ["EQ", "LT"]:
        raise NotImplementedError("reduces two operands other than to the largest or smallest with its position")
    value, position = _EXTREMES[direction]
    return [value(x, axes), tf.cast(position(x, axes[0], tf.int32), line.dtype)]


def _counts(numbers: Any, axis: int, size: int | None) -> bool:
    """Return whether numbers count up along one dimension and are constant along all others."""
    line = np.arange(numbers.shape[axis]).reshape([-1 if i == axis else 1 for i in range(numbers.ndim)])
    return bool(numbers.shape[axis] == size and np.all(numbers == line))


def _convolution(op: Any, x: Any, filters: Any) -> Any:
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    spatial = list(numbers.input_spatial_dimensions)
    rank = len(spatial)
    groups = number(op, "feature_group_count", 1)
    if number(op, "batch_group_count", 1) != 1 or rank not in (1, 2, 3):
        raise NotImplementedError("has batch groups, or no dimension to slide along")
    x = tf.transpose(x, [numbers.input_batch_dimension, *spatial, numbers.input_feature_dimension])
    kernel = (numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension)
    filters = tf.transpose(filters, [*numbers.kernel_spatial_dimensions, *kernel])
    if any(np.array(op.attributes["window_reversal"]).reshape(-1) if "window_reversal" in op.attributes else ()):
        filters = tf.reverse(filters, list(range(rank)))
    pads = np.reshape(integers(op, "padding", [0] * 2 * rank), (rank, 2))
    inner = [n - 1 for n in integers(op, "lhs_dilation", [1] * rank)]
    if any(inner):
        zeros = [0] * (rank + 2)
        x = padded(x, tf.zeros([], x.dtype), zeros, zeros, [0, *inner, 0])
    strides, dilations = (integers(op, name, [1] * rank) for name in ("window_strides", "rhs_dilation"))
    result = _correlated(x, filters, strides, pads.tolist(), dilations, groups)
    order = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions, numbers.output_feature_dimension]
    return tf.transpose(result, np.argsort(order))


def _correlated(
    x: Any, filters: Any, strides: list[int], pads: list[list[int]], dilations: list[int], groups: int
) -> Any:
    """Convolve images, channels last, with filters [*kernel, in, out]."""
    if x.shape.rank == 3:
        lines = _correlated(x[:, None], filters[None], [1, *strides], [[0, 0], *pads], [1, *dilations], groups)
        return lines[:, 0]
    sizes = list(filters.shape[:-2])
    padding: Any = _named(list(x.shape[1:-1]), sizes, strides, pads, dilations)
    if padding is None:  # also if padding is negative
        low, high = ([0, *(pad[i] for pad in pads), 0] for i in (0, 1))
        x, padding = padded(x, tf.zeros([], x.dtype), low, high, [0] * x.shape.rank), "VALID"
    if x.shape.rank == 5:
        if groups != 1:
            raise NotImplementedError("has groups of channels in three dimensions")
        return tf.nn.conv3d(x, filters, [1, *strides, 1], padding, dilations=[1, *dilations, 1])
    if groups > 1 and groups == x.shape[-1]:
        filters = tf.reshape(filters, [*sizes, groups, -1])
        if len(set(strides)) == 1 and (max(strides) == 1 or max(dilations) == 1):
            return tf.nn.depthwise_conv2d(x, filters, [1, *strides, 1], padding, dilations=dilations)
        raise NotImplementedError("has a group per channel, with unequal or dilated strides")
    return tf.nn.conv2d(x, filters, strides, padding, dilations=dilations)


def _named(
    lengths: list[int | None], sizes: list[int], strides: list[int], pads: list[list[int]], dilations: list[int]
) -> str | None:
    """Return a padding's name, if it has one."""
    if not np.any(pads):
        return "VALID"
    if None in lengths:
        return None
    fitted = [
        window.fit(Padding.SAME, length or 0, size, stride, dilation)
        for length, size, stride, dilation in zip(lengths, sizes, strides, dilations, strict=True)
    ]
    return "SAME" if [[w.before, w.after] for w in fitted] == pads else None


def _reduce_window(op: Any, x: Any, first: Any) -> Any:
    """Return a 2-D pooling, or a 1-D running sum or product."""
    x, start, body = whole(x), known(first), body_of(op)
    rank = x.shape.rank
    sizes, strides, pads = _sizes(op, rank)
    inner = [n - 1 for n in integers(op, "base_dilations", [1] * rank)]
    if any(inner):
        x = padded(x, whole(first), [0] * rank, [0] * rank, inner)
    slid = [i for i in range(rank) if sizes[i] != 1 or strides[i] != 1 or pads[i].any()]
    kind = _REDUCTIONS.get(body[0]) if len(body) == 1 else None
    running = _RUNNING.get(body[0])
    if running is not None and len(slid) == 1 and strides[slid[0]] == 1 and start is not None:
        (axis,) = slid
        directions = {(sizes[axis] - 1, 0): False, (0, sizes[axis] - 1): True}
        reverse = directions.get(tuple(pads[axis].tolist()))
        if reverse is not None and sizes[axis] == x.shape[axis] and kind is not None and _is_neutral(start, kind[2]):
            return running(x, axis, reverse=reverse)
    dilated = max(integers(op, "window_dilations", [1] * rank)) != 1
    if kind is None or body[0] not in ("add", "maximum", "minimum") or dilated or len(slid) > 2:
        raise NotImplementedError(f"reduces windows by {', '.join(body)}, dilated or of more than two dimensions")
    if x.dtype != tf.float32 or start is None or not _is_neutral(start, kind[2]):
        raise NotImplementedError("reduces windows of integers, or from a non-neutral initial value")
    if rank == 3:  # lines, channels last, are images of one row
        widened = [[values[0], one, *values[1:]] for values, one in ((sizes, 1), (strides, 1), (pads.tolist(), [0, 0]))]
        return _pooled_images(x[:, None], body[0], [i + (i > 0) for i in slid], *widened)[:, 0]
    if rank != 4:
        return _pooled_planes(x, body[0], slid, sizes, strides, pads)
    return _pooled_images(x, body[0], slid, sizes, strides, pads.tolist())


def _pooled_images(
    x: Any, kind: str, slid: list[int], sizes: list[int], strides: list[int], pads: list[list[int]]
) -> Any:
    """Pool a tensor of rank 4 along two dimensions, by moving them to the middle."""
    slid = sorted([*slid, *(i for i in (1, 2, 3, 0) if i not in slid)][:2])
    first_axis, last_axis = (i for i in range(4) if i not in slid)
    order = [first_axis, *slid, last_axis]
    extents, steps, edges = ([values[i] for i in slid] for values in (sizes, strides, pads))
    pooled = _pooled(tf.transpose(x, order), kind, extents, steps, edges)  # type: ignore[arg-type]
    return tf.transpose(pooled, np.argsort(order))


def _pooled_planes(x: Any, kind: str, slid: list[int], sizes: list[int], strides: list[int], pads: Any) -> Any:
    """Pool a tensor of any rank, by merging its other dimensions."""
    order = [*(i for i in range(len(sizes)) if i not in slid), *slid]
    images = tf.transpose(x, order)
    missing = 2 - len(slid)
    planes = tf.reshape(images, [-1, *[1] * missing, *images.shape[len(sizes) - len(slid) :], 1])
    ksize, steps = ([1] * missing + [values[i] for i in slid] for values in (sizes, strides))
    pooled = _pooled(planes, kind, ksize, steps, [[0, 0]] * missing + [pads[i].tolist() for i in slid])
    lengths = [*sizes_of(images)[: len(sizes) - len(slid)], *pooled.shape[1 + missing : 3]]
    return tf.transpose(tf.reshape(pooled, lengths), np.argsort(order))


_RUNNING: Mapping[str, Callable[..., Any]] = {"add": tf.cumsum, "multiply": tf.math.cumprod}


def _sizes(op: Any, rank: int) -> tuple[list[int], list[int], Any]:
    """Return sizes, strides and paddings of windows."""
    pads = np.reshape(integers(op, "padding", [0] * 2 * rank), (rank, 2))
    return integers(op, "window_dimensions"), integers(op, "window_strides", [1] * rank), pads


def _selected(op: Any, x: Any, source: Any, first: Any) -> Any:
    """Return the gradient with respect to the largest element of every window."""
    x, source, start = whole(x), whole(source), known(first)
    rank = x.shape.rank
    sizes, strides, pads = _sizes(op, rank)
    bodies = [body_of(op, region) for region in (0, 1)]
    compares = op.regions[0].blocks[0].operations[0].operation
    named = None if rank != 4 else _named(list(x.shape[1:3]), sizes[1:3], strides[1:3], pads[1:3].tolist(), [1, 1])
    if bodies != [("compare",), ("add",)] or words(compares, "comparison_direction") != "GE" or start != 0:
        raise NotImplementedError("is not the gradient of a maximum")
    if named is None or max(sizes[0], sizes[3]) != 1 or pads[[0, 3]].any():
        raise NotImplementedError("is not over the height and width of images, channels last")
    largest = tf.nn.max_pool2d(x, sizes[1:3], strides[1:3], named)
    return tf.raw_ops.MaxPoolGrad(
        orig_input=x, orig_output=largest, grad=source, ksize=sizes, strides=strides, padding=named
    )


def _pooled(x: Any, kind: str, sizes: list[int], strides: list[int], pads: list[list[int]]) -> Any:
    if kind == "minimum":
        return -_pooled(-x, "maximum", sizes, strides, pads)
    named = _named(list(x.shape[1:3]), sizes, strides, pads, [1, 1])
    edges = [[0, 0], *pads, [0, 0]]
    if kind == "maximum":
        return tf.nn.max_pool2d(x, sizes, strides, edges if named is None else named)
    x = tf.pad(x, edges) if named != "VALID" else x
    return tf.nn.avg_pool2d(x, sizes, strides, "VALID") * float(np.prod(sizes))


RULES: Mapping[str, Rule] = {
    "convolution": plain(_convolution),
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "select_and_scatter": _selected,
}
