"""DEPTHWISE_CONV_2D of quantized tensors; several filters a channel are a convolution in groups."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Refusal, Step, Target
from litecl.delegate.kit import claims
from litecl.delegate.matmul.patches import geometry
from litecl.delegate.matmul.tile import flops
from litecl.delegate.ops.quantized import depthwise_16
from litecl.delegate.ops.quantized.conv_2d import claim_product, convolution, sums_in_float64
from litecl.delegate.quantized.integers import Bounds, Weights, bounds_of, unsigned_zero, weights_of
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, windows
from litecl.interpreter.schema import TensorType

_PIXELS = (4, 5, 6, 3)  # columns of the output that a piece may compute, the best first
_WIDEST_UNROLLED = 5
_LEAST_FLAT = 4  # fewer do not make up for columns that are loaded anew for every tap
_GROUP = 4  # rows of the kernel that are multiplied at once
_ITEMS_PER_UNIT = 8
_LEAST_ITEM_OPERATIONS = 1e5


@dataclass(frozen=True)
class Geometry:
    """The struct of this name in kernels_cl/quantized_depthwise_conv_2d.cl, field by field."""

    height: int
    width: int
    channels: int
    lanes: int
    parts: int
    kernel_height: int
    kernel_width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    pad_y: int
    pad_x: int
    rows: int
    out_height: int
    out_width: int
    item_rows: int
    item_channels: int
    size: int
    out_zero: int
    low: int
    high: int


def _claim(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if refusal := claim_product(inputs, outputs, options, axis=3):
        return refusal
    filter_ = claims.given(inputs, 1).static_shape
    if outputs[0].type == TensorType.INT16 and filter_[1] * filter_[2] > depthwise_16.MOST_TAPS:
        return Refusal("filters so large that sums of 16-bit activations outgrow 32 bits")
    return None


def _lower(call: Call) -> list[Step]:
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    taps, columns = filter_.shape[1] * filter_.shape[2], filter_.shape[3]
    by_column = filter_.value.reshape(taps, columns).T
    if x.spec.type == TensorType.INT16:
        return [depthwise_16.launch(call, weights_of(call.specs, out.spec, by_column, 1))]
    if columns == x.shape[3]:
        return [_launch(call, weights_of(call.specs, out.spec, by_column, 1))]
    weights = weights_of(call.specs, out.spec, by_column, x.shape[3])
    windows_ = windows(call.options, x.shape, filter_.shape)
    g = geometry(windows_, x.shape, (columns, *filter_.shape[1:3], 1), out.shape, call.pads)
    return [convolution(call, g, weights)]


def _launch(call: Call, weights: Weights) -> Launch:
    x, out, target = call.input(0), call.outputs[0], call.target
    flat = _flat(call)
    width = target.vector_width if flat > 1 else _width(x.shape[3], target)
    bounds = bounds_of(call.options, out.spec)
    weights = weights.repeated(flat)
    parts = _parts(weights)
    g = _geometry(call, width, len(parts), bounds)
    stage = weights.stage(4 * g.lanes, 4 * g.lanes, unsigned_zero(x.spec), bounds)
    operands = (
        x,
        Const(_packed(parts, g)),
        Const(_by_lane(stage.fields, g.lanes)),
        Const(np.full(4 * width, fixed_point.zero_point_of(DEPTHWISE_CONV_2D.name, x.spec), x.spec.dtype)),
        out,
        Const(np.array(astuple(g), np.int32)),
    )
    grid = (-(-g.channels // g.item_channels), -(-g.rows // g.item_rows))
    return Launch(
        "quantized_depthwise_conv_2d",
        "quantized_depthwise_conv_2d",
        operands,
        grid,
        (1, 1),
        _defines(g, width, flat, call) | stage.defines,
        flops(out.spec.size, g.kernel_height * g.kernel_width),
    )


def _flat(call: Call) -> int:
    """Neighbouring pixels that one vector takes: more than one where they have few channels and lie side by side."""
    width = 4 * call.target.vector_width
    filter_, out_width, channels = call.input(1).shape, call.outputs[0].shape[2], call.input(0).shape[3]
    _, horizontal = windows(call.options, call.input(0).shape, filter_)
    dense = (horizontal.stride, horizontal.dilation) == (1, 1) and filter_[2] <= _WIDEST_UNROLLED
    fits = channels % 4 == 0 and width % channels == 0 and width <= out_width * channels
    flat = width // channels if fits and dense and call.target.kind == "cpu" else 1
    return flat if flat >= _LEAST_FLAT else 1


def _width(channels: int, target: Target) -> int:
    """Lanes of a vector, of which four hold four channels each."""
    return next(width for width in (16, 8, 4) if width <= target.vector_width and (4 * width <= channels or width == 4))


def _parts(weights: Weights) -> Array:
    """Weights less their zero point, which may be -255 to 255, as signed bytes to be added: [parts, columns, depth]."""
    rest = weights.values[0].astype(np.int16) + weights.factor
    parts: list[Array] = []
    while not parts or rest.any():
        parts.append(np.clip(rest, -128, 127).astype(np.int8))
        rest = rest - parts[-1]
    return np.stack(parts)


def _packed(parts: Array, g: Geometry) -> Array:
    """[parts, row groups, kernel_width, 4, lanes, 4 rows]."""
    parts = parts.reshape(g.parts, -1, g.kernel_height, g.kernel_width)
    groups = -(-g.kernel_height // _GROUP)
    padded = np.zeros((g.parts, 4 * g.lanes, groups * _GROUP, g.kernel_width), np.int8)
    padded[:, : parts.shape[1], : g.kernel_height] = parts
    split = padded.reshape(g.parts, g.lanes, 4, groups, _GROUP, g.kernel_width)
    return np.ascontiguousarray(split.transpose(0, 3, 5, 2, 1, 4))


def _by_lane(fields: Array, lanes: int) -> Array:
    """Fields [1, 1, 4, channels] as [4, 4, lanes]: those of channel 4 j + q at [q, j]."""
    return np.ascontiguousarray(fields.reshape(4, lanes, 4).transpose(0, 2, 1))


def _geometry(call: Call, width: int, parts: int, bounds: Bounds) -> Geometry:
    x, filter_, out = call.input(0).shape, call.input(1).shape, call.outputs[0]
    vertical, horizontal = windows(call.options, x, filter_)
    images, out_height, out_width, channels = out.shape
    item_rows, item_channels = _items(call, width)
    return Geometry(
        height=x[1],
        width=x[2],
        channels=channels,
        parts=parts,
        lanes=-(-channels // (4 * width)) * width,
        kernel_height=filter_[1],
        kernel_width=filter_[2],
        stride_y=vertical.stride,
        stride_x=horizontal.stride,
        dilation_y=vertical.dilation,
        dilation_x=horizontal.dilation,
        pad_y=vertical.before,
        pad_x=horizontal.before,
        rows=images * out_height,
        out_height=out_height,
        out_width=out_width,
        item_rows=item_rows,
        item_channels=item_channels,
        size=call.input(0).spec.size,
        out_zero=bounds.zero,
        low=bounds.low,
        high=bounds.high,
    )


def _items(call: Call, width: int) -> tuple[int, int]:
    """Output rows and channels of a work-item."""
    out, filter_ = call.outputs[0], call.input(1)
    rows, channels = out.shape[0] * out.shape[1], out.shape[3]
    if call.target.kind == "gpu":
        return 1, 4 * width
    operations = flops(out.spec.size, filter_.shape[1] * filter_.shape[2])
    wanted = max(1, min(call.target.compute_units * _ITEMS_PER_UNIT, int(operations / _LEAST_ITEM_OPERATIONS)))
    if call.target.compute_units == 1:
        wanted = 1
    item_rows = -(-rows // min(rows, wanted))
    blocks = -(-channels // (4 * width))
    parts = min(blocks, max(1, wanted // -(-rows // item_rows)))
    return item_rows, -(-blocks // parts) * 4 * width


def _defines(g: Geometry, width: int, flat: int, call: Call) -> dict[str, str | int | float]:
    pixels = 1 if flat > 1 else min(_PIXELS, key=lambda n: -(-g.out_width // n) * n)
    defines: dict[str, str | int | float] = {"PIXELS": pixels, "ROWS": min(_GROUP, g.kernel_height)}
    defines["T"] = claims.C_TYPES[call.outputs[0].spec.type]
    if g.dilation_x == 1 and g.kernel_width <= _WIDEST_UNROLLED and g.stride_x <= 2:
        defines |= {"KERNEL_WIDTH": g.kernel_width, "STRIDE_X": g.stride_x}
    if width != call.target.vector_width:
        defines["WIDTH"] = width
    if flat > 1:
        defines["FLAT"] = flat
    elif g.channels % 4 or g.channels < 4 * width:
        defines["PARTIAL"] = 1
    return defines


CL_OPS = (ClOp(DEPTHWISE_CONV_2D, claim=_claim, lower=_lower, float64=sums_in_float64),)
