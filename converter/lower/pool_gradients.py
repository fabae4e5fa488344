"""Gradients of pooling and of batch normalization.

Windows slide over planes, images of one channel. TRANSPOSE_CONV with filters of zeros and ones then adds up, for each
element, the gradients of the windows that cover it.
"""

from collections.abc import Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.conv import lowest
from litecl.converter.lower.expression import Expression
from litecl.converter.records import Dims
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.kit import window
from litecl.interpreter.kit.window import Window
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.arg_max import ARG_MAX, ArgMaxOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.one_hot import ONE_HOT, OneHotOptions
from litecl.interpreter.ops.pad import PADV2
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import Padding, TensorType


def _planes(x: Expression) -> Expression:
    """Reshape [n, h, w, c] to [n * c, h, w, 1]."""
    count, height, width, channels = x.b.shape(x.value)
    shape = (None if count is None or channels is None else count * channels, height, width, 1)
    return x.transpose((0, 3, 1, 2)).reshape([-1, height or 0, width or 0, 1], shape)


def _windows(b: Builder, x: Value) -> tuple[Window, Window]:
    """Return the windows along height and width over images like ``x``."""
    attrs = b.node.attrs
    _, height, width, channels = b.shape(x, "images")
    if (
        attrs["data_format"] != "NHWC"
        or attrs["padding"] == "EXPLICIT"
        or (attrs["ksize"][0], attrs["ksize"][3]) != (1, 1)
    ):
        raise b.error("TFLite pools over height and width with SAME or VALID padding, channels last")
    if height is None or width is None or channels is None:
        raise b.error("height, width and channels of its images must be known; give input_shapes")
    padding = Padding[attrs["padding"]]
    try:
        return (
            window.fit(padding, height, attrs["ksize"][1], attrs["strides"][1]),
            window.fit(padding, width, attrs["ksize"][2], attrs["strides"][2]),
        )
    except ShapeError as error:
        raise b.error(str(error)) from error


def _given_back(b: Builder, parts: Expression, taps: Sequence[Sequence[int]]) -> Value:
    """Return images like the result: each element sums the parts [n * c, steps, steps, taps] of its windows.

    taps: the row and column of each tap. If ``parts`` has depth 1, it goes to every tap.
    """
    attrs, (count, height, width, channels) = b.node.attrs, b.shape(b.node.output)
    depth = b.shape(parts.value)[3] or 0
    filters = np.zeros((1, *attrs["ksize"][1:3], depth), np.float32)
    for i, (row, column) in enumerate(taps):
        filters[0, row, column, i % depth] = 1
    planes = (b.shape(parts.value)[0], height, width, 1)
    options = TransposeConvOptions(
        Padding[attrs["padding"]], stride_h=attrs["strides"][1], stride_w=attrs["strides"][2]
    )
    operands = [_sized(parts, planes), b.const(filters), parts.value]
    sums = Expression(b, b.op(TRANSPOSE_CONV, operands, options, shape=planes))
    images = sums.reshape([-1, channels or 0, height or 0, width or 0], (count, channels, height, width))
    return images.transpose((0, 2, 3, 1)).value


def _sized(parts: Expression, shape: Dims) -> Value:
    """Return a shape as a tensor; its first dimension is that of ``parts``."""
    if shape[0] is not None:
        return parts.b.const(shape, np.int32)  # type: ignore[arg-type]
    like = parts.shape()
    return (like * like.constant([1, 0, 0, 0]) + like.constant([0, *shape[1:]])).value


def _average_gradient(b: Builder) -> Value:
    """Return each element's share of the gradients of its windows; padding gets none."""
    windows = _windows(b, b.node.output)
    sizes = b.shape(b.node.output)[1:3]
    rows, columns = (_counts(w, size or 0) for w, size in zip(windows, sizes, strict=True))
    counts = np.outer(rows, columns).astype(np.float32)[None, :, :, None]
    dy = _planes(Expression(b, b.node.input(1)))
    share = dy * dy.constant(1 / counts if counts.min() < counts.max() else 1 / counts.max())
    return _given_back(b, share, list(np.ndindex(windows[0].size, windows[1].size)))


def _counts(w: Window, length: int) -> list[int]:
    """Return the number of elements, without padding, in each step of a window."""
    starts = [i * w.stride - w.before for i in range(w.output)]
    return [min(start + w.size, length) - max(start, 0) for start in starts]


def _max_gradient(b: Builder) -> Value:
    """Return each window's gradient to the first of its largest elements."""
    windows = _windows(b, b.node.input(0))
    taps = list(np.ndindex(windows[0].size, windows[1].size))
    seen = [_tap(_bordered(b, windows), windows, tap) for tap in taps]
    dims = (*b.shape(seen[0].value)[:3], len(taps))
    values = b.op(CONCATENATION, [s.value for s in seen], ConcatenationOptions(3), shape=dims)
    int32 = TensorType.INT32
    largest = b.op(ARG_MAX, [values, b.const(3, np.int32)], ArgMaxOptions(int32), type=int32, shape=dims[:3])
    operands = [largest, b.const(len(taps), np.int32), b.scalar(1), b.scalar(0)]
    chosen = Expression(b, b.op(ONE_HOT, operands, OneHotOptions(-1), shape=dims))
    return _given_back(b, chosen * _planes(Expression(b, b.node.input(2))), taps)


def _bordered(b: Builder, windows: Sequence[Window]) -> Expression:
    """Return the planes of the images, padded with the lowest number."""
    x = _planes(Expression(b, b.node.input(0)))
    pads = [(0, 0), *((w.before, w.after) for w in windows), (0, 0)]
    if not any(map(any, pads)):
        return x
    shape = tuple(None if d is None else d + sum(pad) for d, pad in zip(b.shape(x.value), pads, strict=True))
    operands = [x.value, b.const(pads, np.int32), b.const(lowest(b), x.type.dtype)]
    return Expression(b, b.op(PADV2, operands, shape=shape))


def _tap(x: Expression, windows: Sequence[Window], tap: Sequence[int]) -> Expression:
    """Return the elements under one tap, one per step."""
    met = [w.tap(i) for w, i in zip(windows, tap, strict=True)]
    bounds = ([0, *(m.start for m in met), 0], [0, *(m.stop for m in met), 0], [1, *(m.step for m in met), 1])
    shape = (x.b.shape(x.value)[0], *(w.output for w in windows), 1)
    operands = [x.value, *(x.b.const(bound, np.int32) for bound in bounds)]
    options = StridedSliceOptions(begin_mask=0b1001, end_mask=0b1001)
    return Expression(x.b, x.b.op(STRIDED_SLICE, operands, options, type=x.type, shape=shape))


def _batch_norm_gradient(b: Builder) -> Sequence[Value]:
    """Return the gradients of images, scale and offset; statistics are given, or in training those of the images."""
    dy, x, scale, mean, variance = (Expression(b, b.node.input(i)) for i in range(5))
    if b.node.attrs["data_format"] not in ("NHWC", "NDHWC"):
        raise b.error(f"its data_format is {b.node.attrs['data_format']}; build the model with channels last")
    outer = range(len(b.shape(x.value)) - 1)
    inverse = (variance + float(b.node.attrs["epsilon"])).unary(unary.RSQRT)
    normal = (x - mean) * inverse
    by_offset, by_scale = dy.sum(outer), (dy * normal).sum(outer)
    if b.node.attrs["is_training"]:
        share = 1 / x.count(outer)
        dy = dy - by_offset * share - normal * (by_scale * share)
    results = [dy * (scale * inverse), by_scale, by_offset]
    unused = [b.const(0, np.float32) for _ in b.node.outputs[3:]]
    return [*(result.value for result in results), *unused]


LOWERINGS: dict[str, Lowering] = {
    "AvgPoolGrad": _average_gradient,
    "MaxPoolGrad": _max_gradient,
    "FusedBatchNormGrad": _batch_norm_gradient,
    "FusedBatchNormGradV2": _batch_norm_gradient,
    "FusedBatchNormGradV3": _batch_norm_gradient,
}
