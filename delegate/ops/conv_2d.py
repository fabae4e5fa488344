"""CONV_2D on the device: a matrix product for 1x1 filters, Winograd's algorithm for 3x3 ones where it pays, a depthwise
convolution where every channel is a group, and for all others a product that gathers its rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Operand, Record, Refusal, Scratch, Step
from litecl.delegate.cpu.lines import lines_of
from litecl.delegate.cpu.winograd import winograd
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import Tile
from litecl.delegate.matmul.geometry import Geometry, Placement, geometry, reached
from litecl.delegate.matmul.product import Packed, Product, gemm, packed, packed_weights
from litecl.delegate.ops import depthwise_conv_2d
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.schema import TensorType

(_DEPTHWISE,) = depthwise_conv_2d.CL_OPS
ByPatches = Callable[[Any, Geometry], list[Launch] | None]


@dataclass(frozen=True)
class Convolution(Record):
    """Arguments of conv_2d.cl: the window, where results go, and a work-item's share."""

    window: Geometry
    out: Placement
    item_rows: int
    item_columns: int


def _claim(options: Conv2DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    refused = claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)
    return refused or reached(options, inputs, outputs)


def lower(call: Call, by_patches: ByPatches | None = None) -> list[Step]:
    """Return the steps of a convolution.

    by_patches: an alternative for constant 3x3 filters; returns None where it doesn't suit.
    """
    (x, filter_, bias), out = call.weighted, call.outputs[0]
    g = geometry(call.options, x.shape, filter_.shape[1:3], filter_.shape[3], out.shape, call.pads)
    plain = call.residual is None and out.row_step is None
    if g.group_channels == 1 < g.channels and filter_.data is not None and plain:
        return _DEPTHWISE.steps(replace(call, inputs=(x, _by_tap(filter_.data), bias)))
    if by_patches is not None and g.is_3x3 and filter_.data is not None and (launches := by_patches(call, g)):
        return [*launches]
    return window_product(call, g, x, filter_, bias, out)


def window_product(
    call: Call,
    g: Geometry,
    x: Operand,
    filter_: Operand,
    bias: Operand | None,
    out: Operand | Scratch,
    place: Placement | None = None,
) -> list[Step]:
    """Return the launches of a convolution as one product, with the activation and the residual of a call.

    place: the pixels that results are written to, all of them by default.
    """
    target, step = call.target, g.columns if isinstance(out, Scratch) else out.step
    plain = place is None and g.is_product
    lines = lines_of(g, target) if target.line_tiles and g.groups == 1 and not g.is_product else None
    kernel = "gemm" if plain else "conv_2d"
    tile = lines.tile if lines else target.tile_for(kernel, g.pixels, g.group_columns, narrow=True)
    weights = packed_weights(filter_, g.groups, g.group_columns, tile.panel, target)
    added = packed(bias, g.groups, g.group_columns, tile.panel, target)
    place = place or Placement(height=g.out_height, width=g.out_width, pixel_step=step)
    if plain:
        product = Product(g.pixels, g.columns, g.depth)
        launch = gemm(product, tile, target, x, weights, added, out, call.activation, call.residual)
    elif lines:
        launch = lines.launch(target, (x,), weights, added, out, place, call.activation, call.residual)
    else:
        launch = _gathered(call, x, g, place, tile, weights, added, out)
    return [*weights.steps, *added.steps, launch]


def known(data: Array) -> Operand:
    """Return constant floats as an operand."""
    return Operand(TensorSpec(TensorType.FLOAT32, data.shape, data=data.astype(np.float32, copy=False)))


def _by_tap(weights: Array) -> Operand:
    """Rearrange filters [columns, height, width, 1], each for one input channel, as a depthwise convolution's."""
    data = np.ascontiguousarray(weights[..., 0].transpose(1, 2, 0))[np.newaxis]
    return Operand(TensorSpec(TensorType.FLOAT32, data.shape, data=data))


def _gathered(
    call: Call,
    x: Operand,
    g: Geometry,
    placement: Placement,
    tile: Tile,
    weights: Packed,
    bias: Packed,
    out: Operand | Scratch,
) -> Launch:
    """Return the launch of conv_2d.cl, for weights and bias packed for ``tile``."""
    grid = call.target.product("conv_2d", tile, (g.pixels, g.group_columns, g.depth), g.groups)
    zeros = Const(np.zeros(max(1, g.kernel_width * g.group_channels), np.float32))
    operands = (x, weights.values, bias.values, zeros, call.residual or bias.values, out)
    shape = Convolution(g, placement, *grid.shares[:2])
    return grid.launch(
        "conv_2d",
        (*operands, shape, np.int32(call.residual is not None), *call.activation.bounds),
        tile.defines | call.activation.defines,
        g.flops,
    )


CL_OPS = (
    ClOp(
        CONV_2D,
        claim=_claim,
        lower=partial(lower, by_patches=winograd),
        fuses_activation=True,
        fuses_residual=True,
        fuses_pads=True,
        writes_rows=True,
    ),
)
