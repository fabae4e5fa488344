"""Gradients of convolutions, as convolutions of other operands.

The filter gradient slides the output gradient, dilated by the stride, over the images; batch and channels swap places.
The image gradient slides the flipped filter over the output gradient; TFLite's TRANSPOSE_CONV does that, but not
depthwise.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.conv import zero_bias
from litecl.converter.lower.expression import Expression
from litecl.converter.lower.shape_gradients import dilated, padded
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.kit import window
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import Padding, TensorType


@dataclass(frozen=True)
class _Axis:
    """A window of ``taps`` elements that takes ``steps`` steps along a spatial dimension of size ``length``.

    before: elements of padding in front; never negative.
    """

    length: int
    taps: int
    steps: int
    stride: int
    dilation: int
    before: int

    @property
    def covered(self) -> int:
        """The number of elements from the first tap of the first step to the last tap of the last, with padding."""
        return (self.steps - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    @property
    def spread(self) -> tuple[int, int]:
        """The padding around the dilated output gradient that lets the flipped filter reach every element."""
        before = (self.taps - 1) * self.dilation - self.before
        return before, self.length - ((self.steps - 1) * self.stride + 1) + self.before


def _axes(b: Builder, x: Value, filters: tuple[int | None, ...]) -> list[_Axis]:
    """Return the windows along height and width of a convolution of images like ``x``."""
    attrs = b.node.attrs
    if attrs["data_format"] != "NHWC":
        raise b.error(f"its data_format is {attrs['data_format']}; build the model with channels last")
    axes = []
    for i, (length, taps) in enumerate(zip(b.shape(x, "images")[1:3], filters[:2], strict=True), start=1):
        if length is None or taps is None:
            raise b.error("height and width of its images and filter must be known; give input_shapes")
        axes.append(_axis(b, length, taps, i))
    return axes


def _axis(b: Builder, length: int, taps: int, i: int) -> _Axis:
    attrs = b.node.attrs
    stride, dilation = attrs["strides"][i], attrs["dilations"][i]
    explicit = attrs["padding"] == "EXPLICIT"
    before, after = attrs["explicit_paddings"][2 * i : 2 * i + 2] if explicit else (0, 0)
    padding = Padding.VALID if explicit else Padding[attrs["padding"]]
    try:
        fitted = window.fit(padding, length + before + after, taps, stride, dilation)
    except ShapeError as error:
        raise b.error(str(error)) from error
    return _Axis(length, taps, fitted.output, stride, dilation, before if explicit else fitted.before)


def _covered(x: Expression, axes: list[_Axis]) -> Expression:
    """Return images [n, h, w, c] with padding, but without elements that no window covers."""
    before = [a.before for a in axes]
    after = [a.covered - a.length - a.before for a in axes]
    x = padded(x, _around((first, max(last, 0)) for first, last in zip(before, after, strict=True)))
    if min(after) >= 0:
        return x
    dims = x.b.shape(x.value)
    shape = (dims[0], *(a.covered for a in axes), dims[3])
    operands = [x.value, x.b.const([0] * 4, np.int32), x.b.const([-1, *(a.covered for a in axes), -1], np.int32)]
    return Expression(x.b, x.b.op(SLICE, operands, type=x.type, shape=shape))


def _around(pads: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the padding of images, given that of height and width."""
    return [(0, 0), *pads, (0, 0)]


def _filter_gradient(b: Builder) -> Value:
    x, dy = Expression(b, b.node.input(0)), Expression(b, b.node.input(2))
    filters = _filter_shape(b)
    if filters[2] != b.shape(x.value)[3]:
        raise b.error("TFLite has no gradient of a convolution in groups")
    axes = _axes(b, x.value, filters)
    images = _covered(x, axes).transpose((3, 1, 2, 0))
    windows = dy.transpose((3, 1, 2, 0))
    options = Conv2DOptions(
        padding=Padding.VALID,
        stride_h=axes[0].dilation,
        stride_w=axes[1].dilation,
        dilation_h_factor=axes[0].stride,
        dilation_w_factor=axes[1].stride,
    )
    height, width, channels, outputs = filters
    operands = [images.value, windows.value, zero_bias(b, windows.value, 0)]
    gradient = Expression(b, b.op(CONV_2D, operands, options, shape=(channels, height, width, outputs)))
    return gradient.transpose((1, 2, 0, 3)).value


def _filter_shape(b: Builder) -> tuple[int, ...]:
    shape = b.node.output.static_shape
    return tuple(b.known(1, "filter's shape").tolist()) if shape is None else shape


def _channel_filter_gradient(b: Builder) -> Value:
    """Return the filter gradient of a depthwise convolution, with the channels of all images as those of one image."""
    x, dy = Expression(b, b.node.input(0)), Expression(b, b.node.input(2))
    filters = _filter_shape(b)
    height, width, channels, multiplier = filters
    axes = _axes(b, x.value, filters)
    images, windows = _one_image(_covered(x, axes)), _one_image(dy)
    options = DepthwiseConv2DOptions(
        padding=Padding.VALID,
        stride_h=axes[0].dilation,
        stride_w=axes[1].dilation,
        depth_multiplier=multiplier,
        dilation_h_factor=axes[0].stride,
        dilation_w_factor=axes[1].stride,
    )
    each = (1, height, width, b.shape(windows.value)[3])
    operands = [images.value, windows.value, _zeros(windows)]
    gradient = Expression(b, b.op(DEPTHWISE_CONV_2D, operands, options, shape=each))
    gradient = gradient.reshape(
        [height, width, -1, channels * multiplier], (height, width, None, channels * multiplier)
    )
    return gradient.sum([2]).reshape(filters, filters).value


def _zeros(windows: Expression) -> Value:
    """Return a bias of zeros, without which LiteRT's kernel crashes; the number of images may be open."""
    b = windows.b
    known = zero_bias(b, windows.value, 3)
    if known is not None:
        return known
    operands = [windows.shape().value, b.const([3], np.int32), b.const([1], np.int32)]
    count = b.op(SLICE, operands, type=TensorType.INT32, shape=(1,))
    return b.op(FILL, [count, b.const(0, np.float32)], shape=(None,))


def _one_image(x: Expression) -> Expression:
    """Reshape [n, h, w, c] to [1, h, w, n * c]."""
    count, height, width, channels = x.b.shape(x.value)
    shape = (1, height, width, None if count is None or channels is None else count * channels)
    return x.transpose((1, 2, 0, 3)).reshape([1, height or 0, width or 0, -1], shape)


def _channel_image_gradient(b: Builder) -> Value:
    """Return the image gradient of a depthwise convolution, by sliding the flipped filter over the output gradient."""
    filters, dy = Expression(b, b.node.input(1)), Expression(b, b.node.input(2))
    height, width, channels, multiplier = b.shape(filters.value, "filter")
    if height is None or width is None or channels is None or multiplier is None:
        raise b.error("the shape of its filter must be known")
    axes = _axes(b, b.node.output, (height, width))
    many = channels * multiplier
    rows = filters.reshape([height * width, many], (height * width, many))
    turned = Expression(b, b.reverse(rows.value, 0))
    taps = turned.reshape([1, height, width, many], (1, height, width, many)).value
    spread = padded(dilated(dy, [1, *(a.stride for a in axes), 1]), _around(a.spread for a in axes))
    options = DepthwiseConv2DOptions(
        padding=Padding.VALID,
        stride_h=1,
        stride_w=1,
        depth_multiplier=1,
        dilation_h_factor=axes[0].dilation,
        dilation_w_factor=axes[1].dilation,
    )
    sizes = [a.length for a in axes]
    count = b.shape(b.node.output)[0]
    operands = [spread.value, taps, zero_bias(b, taps, 3)]
    gradient = Expression(b, b.op(DEPTHWISE_CONV_2D, operands, options, shape=(count, *sizes, many)))
    if multiplier == 1:
        return gradient.value
    return gradient.reshape([-1, *sizes, channels, multiplier], (count, *sizes, channels, multiplier)).sum([4]).value


def _image_gradient(b: Builder) -> Value:
    """Return the image gradient; filters are [h, w, in, out]."""
    attrs = b.node.attrs
    if attrs["data_format"] != "NHWC":
        raise b.error(f"its data_format is {attrs['data_format']}; build the model with channels last")
    explicit = attrs["padding"] == "EXPLICIT"
    pads = [tuple(attrs["explicit_paddings"][i : i + 2]) for i in (2, 4)] if explicit else [(0, 0), (0, 0)]
    filters = dilated(Expression(b, b.node.input(1)).transpose((2, 0, 1, 3)), [1, *attrs["dilations"][1:3], 1])
    size = Expression(b, b.int32(b.node.input(0)))
    shape = b.node.output.shape
    if size.value.data is None and b.node.output.static_shape is not None:
        size = size.constant(b.node.output.static_shape)
    padding = Padding.VALID if explicit else Padding[attrs["padding"]]
    options = TransposeConvOptions(padding, stride_h=attrs["strides"][1], stride_w=attrs["strides"][2])
    if not any(map(any, pads)):
        return b.op(TRANSPOSE_CONV, [size.value, filters.value, b.node.input(2)], options)
    more = np.array([0, *map(sum, pads), 0], np.int32)
    large = b.const(size.value.data + more) if size.value.data is not None else (size + size.constant(more)).value
    whole = (
        None if shape is None else tuple(None if d is None else d + int(n) for d, n in zip(shape, more, strict=True))
    )
    padded = b.op(TRANSPOSE_CONV, [large, filters.value, b.node.input(2)], options, shape=whole)
    return b.op(SLICE, [padded, b.const([0, *(before for before, _ in pads), 0], np.int32), size.value])


LOWERINGS: dict[str, Lowering] = {
    "Conv2DBackpropFilter": _filter_gradient,
    "Conv2DBackpropInput": _image_gradient,
    "DepthwiseConv2dNativeBackpropFilter": _channel_filter_gradient,
    "DepthwiseConv2dNativeBackpropInput": _channel_image_gradient,
}
