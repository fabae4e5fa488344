"""Convolutions.

TensorFlow's filters are [h, w, in, out]; TFLite's are [out, h, w, in], depthwise ones [1, h, w, in * multiplier].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.converter.graph import Value, constant
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.records import Dims
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions
from litecl.interpreter.ops.conv_3d_transpose import CONV_3D_TRANSPOSE
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.pad import PAD, PADV2
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from litecl.interpreter.schema import Padding


@dataclass(frozen=True)
class _Geometry:
    x: Value
    padding: Padding
    strides: tuple[int, ...]
    dilations: tuple[int, ...]


def geometry(b: Builder, x: Value, padded_with: float = 0) -> _Geometry:
    """Return strides, dilations and padding along the spatial dimensions.

    Explicit padding, with the number ``padded_with``, becomes an operator in front.
    """
    attrs = b.node.attrs
    if attrs.get("data_format") in ("NCHW", "NCDHW"):
        raise b.error(f"its data_format is {attrs['data_format']}; build the model with channels last")
    strides = tuple(attrs["strides"][1:-1])
    dilations = tuple(attrs.get("dilations") or (1,) * (len(strides) + 2))[1:-1]
    if attrs["padding"] != "EXPLICIT":
        return _Geometry(x, Padding[attrs["padding"]], strides, dilations)
    pads = np.array(attrs["explicit_paddings"], np.int32).reshape(-1, 2)
    return _Geometry(_pad(b, x, pads, padded_with), Padding.VALID, strides, dilations)


def _pad(b: Builder, x: Value, pads: Array, number: float) -> Value:
    shape: Dims = tuple(
        None if size is None else size + int(before + after)
        for size, (before, after) in zip(b.shape(x), pads, strict=True)
    )
    if number:
        return b.op(PADV2, [x, b.const(pads), b.const(number, x.type.dtype)], type=x.type, shape=shape)
    return b.op(PAD, [x, b.const(pads)], type=x.type, shape=shape)


def lowest(b: Builder) -> float:
    """Return the lowest number of the result's type."""
    dtype: Any = b.node.output.type.dtype
    return float(np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min)


def zero_bias(b: Builder, weights: Value, axis: int) -> Value | None:
    """Return a bias of zeros, which kernels need if there is no bias."""
    channels = b.shape(weights, "weights")[axis]
    return None if channels is None else b.const(np.zeros(channels, np.float32))


def _conv_2d(b: Builder) -> Value:
    g = geometry(b, b.node.input(0))
    filters = b.transpose(b.node.input(1), (3, 0, 1, 2))
    return b.op(
        CONV_2D,
        [g.x, filters, zero_bias(b, filters, 0)],
        Conv2DOptions(
            padding=g.padding,
            stride_h=g.strides[0],
            stride_w=g.strides[1],
            dilation_h_factor=g.dilations[0],
            dilation_w_factor=g.dilations[1],
        ),
    )


def _depthwise_conv_2d(b: Builder) -> Value:
    g = geometry(b, b.node.input(0))
    height, width, channels, multiplier = b.shape(b.node.input(1), "filter")
    if height is None or width is None or channels is None or multiplier is None:
        raise b.error("the shape of its filter must be known")
    filters = b.node.input(1)
    shape = (1, height, width, channels * multiplier)
    if filters.data is None:
        filters = b.reshape(filters, shape, shape)
    else:
        grid = None if filters.grid is None else filters.grid.repeated(channels, 3)
        filters = constant(filters.data.reshape(shape), filters.name, grid)
    return b.op(
        DEPTHWISE_CONV_2D,
        [g.x, filters, zero_bias(b, filters, 3)],
        DepthwiseConv2DOptions(
            padding=g.padding,
            stride_h=g.strides[0],
            stride_w=g.strides[1],
            depth_multiplier=multiplier,
            dilation_h_factor=g.dilations[0],
            dilation_w_factor=g.dilations[1],
        ),
    )


def _conv_3d(b: Builder) -> Value:
    g, filters = geometry(b, b.node.input(0)), b.node.input(1)
    options = Conv3DOptions(
        padding=g.padding,
        stride_d=g.strides[0],
        stride_h=g.strides[1],
        stride_w=g.strides[2],
        dilation_d_factor=g.dilations[0],
        dilation_h_factor=g.dilations[1],
        dilation_w_factor=g.dilations[2],
    )
    channels, depth = b.shape(g.x)[-1], b.shape(filters, "filter")[-2]
    if channels == depth:
        return b.op(CONV_3D, [g.x, filters], options)
    if channels is None or depth is None:
        raise b.error("the channels of its input and its filter must be known")
    count = channels // depth  # TFLite convolves all channels at once
    parts = zip(_parts(b, g.x, count), _parts(b, filters, count), strict=True)
    shape = (*b.shape(b.node.output)[:-1], _part(b.shape(filters)[-1], count))
    groups = [b.op(CONV_3D, [x, part], options, shape=shape) for x, part in parts]
    return b.op(CONCATENATION, groups, ConcatenationOptions(len(shape) - 1))


def _parts(b: Builder, value: Value, count: int) -> Sequence[Value]:
    """Split the last dimension into groups."""
    if value.data is not None:
        return [b.const(np.ascontiguousarray(part)) for part in np.split(value.data, count, axis=-1)]
    shape = (*b.shape(value)[:-1], _part(b.shape(value)[-1], count))
    axis = b.const(len(shape) - 1, np.int32)
    return b.ops(SPLIT, [axis, value], SplitOptions(count), [b.value(value.type, shape) for _ in range(count)])


def _part(size: int | None, count: int) -> int | None:
    return None if size is None else size // count


def _conv_3d_transpose(b: Builder) -> Value:
    attrs = b.node.attrs
    if attrs["padding"] == "EXPLICIT" or attrs["data_format"] != "NDHWC" or tuple(attrs["dilations"]) != (1,) * 5:
        raise b.error("TFLite transposes only convolutions of SAME or VALID padding, channels last, not dilated")
    size = b.int32(b.node.input(0))
    if size.data is None and b.node.output.static_shape is not None:
        size = b.const(b.node.output.static_shape, np.int32)
    strides = tuple(attrs["strides"])[1:4]
    options = Conv3DOptions(Padding[attrs["padding"]], stride_d=strides[0], stride_h=strides[1], stride_w=strides[2])
    return b.op(CONV_3D_TRANSPOSE, [size, b.node.input(1), b.node.input(2)], options)


LOWERINGS: dict[str, Lowering] = {
    "Conv2D": _conv_2d,
    "DepthwiseConv2dNative": _depthwise_conv_2d,
    "Conv3D": _conv_3d,
    "Conv3DBackpropInputV2": _conv_3d_transpose,
}
