"""DEPTHWISE_CONV_2D on the device."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Operand, Record, Refusal, Step, Target
from litecl.delegate.kit import claims
from litecl.delegate.kit.pixel_groups import KERNEL, pixel_share, width_of
from litecl.delegate.kit.schedule import Grid, aligned, filled, rows_of, schedule_of
from litecl.delegate.matmul.geometry import Geometry, geometry, reached
from litecl.delegate.matmul.product import Packed, Strided, pack
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions

_WIDEST_UNROLLED = 7
_LEAST_BLOCK = 64  # channels: with fewer, short runs of memory cost more than the cache gains


@dataclass(frozen=True)
class Depthwise(Record):
    """Arguments of depthwise_conv_2d.cl: the window, and a work-item's share."""

    window: Geometry
    item_rows: int
    item_pixels: int
    item_channels: int


def _claim(options: DepthwiseConv2DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    refused = claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)
    return refused or reached(options, inputs, outputs)


def lower(call: Call) -> list[Step]:
    """Return the launches for the filter [1, height, width, channels * multiplier] of a call."""
    (x, filter_, bias), out, target = call.weighted, call.outputs[0], call.target
    g = geometry(call.options, x.shape, filter_.shape[1:3], 1, out.shape, call.pads)
    weights = _by_multiplier(filter_, g.taps, g, target)
    added = _by_multiplier(bias, 1, g, target)
    lines = g.images * g.out_height * -(-g.channels // target.vector_width)
    counts = (g.channels, g.images * g.out_height, g.out_width)
    share = pixel_share(target, counts[1], counts[2], g.channels, g.taps) if target.kind == "gpu" else None
    pixels = rows_of(KERNEL, target, g.out_width, lines) if share is None else share.pixels
    items = _items(g, target) if share is None else Depthwise(g, 1, pixels, share.width)
    grid = Grid(KERNEL, target, counts, (items.item_channels, items.item_rows, items.item_pixels))
    launch = (grid if share is None else replace(grid, local=share.local, tiled=share.tiled)).launch(
        "depthwise_conv_2d",
        (x, weights.values, added.values, out, items, *call.activation.bounds),
        _defines(g, pixels, target) | call.activation.defines,
        g.flops,
    )
    return [*weights.steps, *added.steps, launch]


def _by_multiplier(values: Operand | None, taps: int, g: Geometry, target: Target) -> Packed:
    """Rearrange [taps, channels * multiplier], weights or a bias, as [multiplier, taps, channels]; None is zeros."""
    channels, multiplier = g.channels, g.group_columns
    if values is None:
        return Packed(Const(np.zeros(g.columns, np.float32)))
    if multiplier == 1:
        return Packed(values)
    if values.data is not None:
        split = values.data.reshape(taps, channels, multiplier)
        return Packed(Const(np.ascontiguousarray(split.transpose(2, 0, 1))))
    source = Strided(multiplier, taps, channels, 1, channels * multiplier, multiplier)
    scratch, launch = pack(values, source, channels, target)
    return Packed(scratch, (launch,))


def _items(g: Geometry, target: Target) -> Depthwise:
    """Return a CPU's share: all columns of some rows, of as many channels as stay cached from row to row."""
    width = target.vector_width
    block = schedule_of(KERNEL, target).near_bytes // (4 * g.kernel_height * g.width) // width * width
    block = min(g.channels, block) if block >= _LEAST_BLOCK else g.channels
    rows, blocks = g.images * g.out_height, -(-g.channels // block)
    return Depthwise(g, filled(KERNEL, target, rows, blocks, g.flops / (rows * blocks)), g.out_width, block)


def _defines(g: Geometry, pixels: int, target: Target) -> dict[str, str | int | float]:
    defines: dict[str, str | int | float] = {"PIXELS": pixels, **aligned(target, g.channels)}
    if g.dilation_x == 1 and g.kernel_width <= _WIDEST_UNROLLED and g.stride_x <= 2:
        defines |= {"KERNEL_WIDTH": g.kernel_width, "STRIDE_X": g.stride_x}
    if g.channels < target.vector_width:
        defines |= {"WIDTH": width_of(g.channels, target)}
    return defines


CL_OPS = (ClOp(DEPTHWISE_CONV_2D, claim=_claim, lower=lower, fuses_activation=True, fuses_pads=True),)
