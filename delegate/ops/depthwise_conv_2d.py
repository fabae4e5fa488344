"""DEPTHWISE_CONV_2D on the device."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Launch, Operand, Refusal, Step, Target
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import filled, grid, rows_of, schedule_of
from litecl.delegate.kit.shared import const
from litecl.delegate.matmul.geometry import Geometry, geometry
from litecl.delegate.matmul.packing import Strided, pack
from litecl.delegate.matmul.tile import flops
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions, windows

_WIDEST_UNROLLED = 7
_KERNEL = "depthwise_conv_2d"
_LEAST_BLOCK = 64  # channels: with fewer, short runs of memory cost more than the cache gains


@dataclass(frozen=True)
class Depthwise:
    """Arguments of depthwise_conv_2d.cl: the window, and a work-item's share."""

    window: Geometry
    item_rows: int
    item_pixels: int
    item_channels: int


def _claim(options: DepthwiseConv2DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)


def lower(call: Call) -> list[Step]:
    """Return the launch of depthwise_conv_2d.cl, for the filter [1, height, width, channels * multiplier] of a call."""
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    channels = x.shape[3]
    multiplier = filter_.shape[3] // channels
    taps = filter_.shape[1] * filter_.shape[2]
    weights, packing = _by_multiplier(filter_, taps, channels, multiplier, call.target)
    bias, padding = _bias(call, channels, multiplier)
    g = geometry(windows(call.options, call.image, filter_.shape), x.shape, 1, filter_.shape[3], call.pads)
    pixels = rows_of(_KERNEL, call.target, g.out_width)
    items = _items(g, pixels, call.target)
    counts = (g.channels, g.images * g.out_height, g.out_width)
    launch = grid(_KERNEL, call.target, counts, (items.item_channels, items.item_rows, items.item_pixels)).launch(
        "depthwise_conv_2d",
        (x, weights, bias, out, const(items), *call.activation.bounds),
        _defines(g, pixels, call.target) | call.activation.defines,
        flops(out.spec.size, taps),
    )
    return [*packing, *padding, launch]


def _by_multiplier(
    values: Operand, taps: int, channels: int, multiplier: int, target: Target
) -> tuple[Arg, list[Launch]]:
    """Rearrange [taps, channels * multiplier] as [multiplier, taps, channels]."""
    if multiplier == 1:
        return values, []
    if values.data is not None:
        split = values.data.reshape(taps, channels, multiplier)
        return Const(np.ascontiguousarray(split.transpose(2, 0, 1))), []
    source = Strided(multiplier, taps, channels, 1, channels * multiplier, multiplier)
    packed, launch = pack(values, source, channels, target)
    return packed, [launch]


def _bias(call: Call, channels: int, multiplier: int) -> tuple[Arg, list[Launch]]:
    bias = call.inputs[2] if len(call.inputs) > 2 else None
    if bias is None:
        return Const(np.zeros(channels * multiplier, np.float32)), []
    return _by_multiplier(bias, 1, channels, multiplier, call.target)


def _items(g: Geometry, pixels: int, target: Target) -> Depthwise:
    """Return a work-item's share: all columns of some rows, of as many channels as stay cached from row to row."""
    if target.kind == "gpu":
        return Depthwise(g, 1, pixels, _width(g.channels, target))
    width = target.vector_width
    block = schedule_of(_KERNEL, target).near_bytes // (4 * g.kernel_height * g.width) // width * width
    block = min(g.channels, block) if block >= _LEAST_BLOCK else g.channels
    rows, blocks = g.images * g.out_height, -(-g.channels // block)
    work = flops(rows, g.out_width, g.columns, g.taps) / (rows * blocks)
    return Depthwise(g, filled(_KERNEL, target, rows, blocks, work), g.out_width, block)


def _defines(g: Geometry, pixels: int, target: Target) -> dict[str, str | int | float]:
    defines: dict[str, str | int | float] = {"PIXELS": pixels}
    if g.dilation_x == 1 and g.kernel_width <= _WIDEST_UNROLLED and g.stride_x <= 2:
        defines |= {"KERNEL_WIDTH": g.kernel_width, "STRIDE_X": g.stride_x}
    if g.channels < target.vector_width:
        defines |= {"WIDTH": _width(g.channels, target)}
    return defines


def _width(channels: int, target: Target) -> int:
    """Return how many channels are computed at once."""
    return next(width for width in (16, 8, 4, 1) if width <= min(channels, target.vector_width))


CL_OPS = (ClOp(DEPTHWISE_CONV_2D, claim=_claim, lower=lower, fuses_activation=True, fuses_pads=True),)
