"""DEPTHWISE_CONV_2D on the device."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Operand, Record, Refusal, Step, Target
from litecl.delegate.cpu.target import spread
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import Grid, aligned, rows_of, width_of
from litecl.delegate.matmul.geometry import Geometry, geometry, reached
from litecl.delegate.matmul.product import Packed, Strided, pack
from litecl.delegate.target import own
from litecl.delegate.tuning import Tiled
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions

_KERNEL = "depthwise_conv_2d"
_WIDEST_UNROLLED = 7
_ROWS = 2  # of a tile on a CPU
_LINE = 16  # floats, of a cache: tiles of narrower vectors prefetch its lines in order
_LEAST_AHEAD = 1 << 17  # bytes: a smaller image is in the second-level cache
_LEAST_FRESH_AHEAD = 1 << 20  # the same of an image that was computed last


@dataclass(frozen=True)
class Depthwise(Record):
    """Arguments of depthwise_conv_2d.cl: the window, and a work-item's share. ahead: the most rows of the input that a
    tile prefetches for the next.
    """

    window: Geometry
    item_rows: int
    item_pixels: int
    item_channels: int
    ahead: int = 0


def _claim(options: DepthwiseConv2DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    refused = claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)
    return refused or reached(options, inputs, outputs)


class Share(NamedTuple):
    """A work-item's share, in tiles of ``rows`` x ``pixels``; local, tiled: as in ``Grid``; defines: macros."""

    items: Depthwise
    rows: int
    pixels: int
    local: tuple[int, ...] = ()
    tiled: Tiled | None = None
    defines: Mapping[str, str | int | float] = MappingProxyType({})


def share_of(g: Geometry, target: Target) -> Share:
    """Give a work-item all columns of some rows; all channels too, if there are enough rows."""
    rows = min(_ROWS, g.out_height) if g.dilation_y == 1 and g.stride_y <= g.kernel_height else 1
    pixels = rows_of(_KERNEL, target, g.out_width)
    bands, vectors = -(-g.images * g.out_height // rows), -(-g.channels // target.vector_width)
    item_bands, item_vectors = spread(_KERNEL, target, bands, vectors, g.flops)
    item_vectors = min(item_vectors, _near_vectors(g, rows, pixels, vectors, target))
    item_channels = min(g.channels, item_vectors * target.vector_width)
    ahead = rows * g.stride_y if 4 * g.height * g.width * g.channels >= _LEAST_AHEAD else 0
    items = Depthwise(g, item_bands * rows, g.out_width, item_channels, ahead)
    usual = target.schedule(_KERNEL).usual_rows  # a model's other nodes share this code
    near = g.near and pixels <= g.out_width  # else a tile has windows that don't exist
    defines: dict[str, str | int | float] = {"NEAR": 1} if near else {}
    return Share(items, rows, pixels, defines=defines if pixels == usual else defines | g.guarded(pixels))


def _near_vectors(g: Geometry, rows: int, pixels: int, vectors: int, target: Target) -> int:
    """Return how many of a pixel's vectors a tile may read and write: all of them where tiles prefetch adjacent lines,
    else equal parts, so that the tile beside it finds the columns that both read in the first-level cache.
    """
    if target.vector_width < _LINE:
        return vectors
    high, wide = (rows - 1) * g.stride_y + g.kernel_height, (pixels - 1) * g.stride_x + g.kernel_width
    vector_bytes = 4 * target.vector_width * (high * wide + rows * pixels)
    parts = -(-vectors * vector_bytes // max(1, target.schedule(_KERNEL).near_bytes))
    return -(-vectors // max(1, parts))


def _lower(call: Call) -> list[Step]:
    """Lower a call whose filter is [1, height, width, channels * multiplier]."""
    (x, filter_, bias), out, target = call.weighted, call.outputs[0], call.target
    g = geometry(call.options, x.shape, filter_.shape[1:3], 1, out.shape, call.pads)
    weights = _by_multiplier(filter_, g.taps, g, target)
    added = _by_multiplier(bias, 1, g, target)
    share = own(target, share_of)(g, target)
    near = call.fresh and x.size_bytes < _LEAST_FRESH_AHEAD
    items = replace(share.items, ahead=0) if near else share.items
    counts = g.channels, g.images * g.out_height, g.out_width
    shares = items.item_channels, items.item_rows, items.item_pixels
    launch = Grid(_KERNEL, counts, shares, local=share.local, tiled=share.tiled).launch(
        _KERNEL,
        (x, weights.values, added.values, out, items, *call.activation.bounds),
        _defines(g, share, target) | call.activation.defines,
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


def _defines(g: Geometry, share: Share, target: Target) -> dict[str, str | int | float]:
    defines: dict[str, str | int | float] = {"PIXELS": share.pixels, **aligned(target, g.channels), **share.defines}
    if share.rows > 1:
        defines["ROWS"] = share.rows
    if g.group_columns > 1:
        defines["APART"] = 1
    if g.dilation_x == 1 and g.kernel_width <= _WIDEST_UNROLLED and g.stride_x <= 2:
        defines |= {"KERNEL_WIDTH": g.kernel_width, "STRIDE_X": g.stride_x}
    if g.channels < target.vector_width:
        defines |= {"WIDTH": width_of(target, g.channels)}
    return defines


CL_OPS = (
    ClOp(
        DEPTHWISE_CONV_2D,
        claim=_claim,
        lower=_lower,
        fuses_activation=True,
        fuses_pads=True,
    ),
)
