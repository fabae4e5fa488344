"""CONV_2D on the device: a matrix product for 1x1 filters, Winograd's algorithm for 3x3 ones where it pays, a depthwise
convolution where every channel is a group, and for all others a product that gathers its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Call, ClOp, Const, Launch, Operand, Refusal, Step, Target
from litecl.delegate.kit import claims
from litecl.delegate.kit.shared import const
from litecl.delegate.matmul.gemm import Product, gemm
from litecl.delegate.matmul.geometry import Geometry, geometry
from litecl.delegate.matmul.packing import packed_bias, packed_rows, stored_as
from litecl.delegate.matmul.tile import Tile, flops, grid_for, tile_for
from litecl.delegate.matmul.winograd import suits, winograd
from litecl.delegate.ops import depthwise_conv_2d
from litecl.delegate.ops.gpu import products
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions, windows
from litecl.interpreter.schema import TensorType

_FEW_CHANNELS = 4


@dataclass(frozen=True)
class Placement:
    """The pixels of a ``height`` x ``width`` image that results are written to: every step-th from first on.

    pixel_step: elements from one pixel to the next.
    """

    height: int
    width: int
    step_y: int
    step_x: int
    first_y: int
    first_x: int
    pixel_step: int


@dataclass(frozen=True)
class Convolution:
    """Arguments of conv_2d.cl: the window, where results go, and a work-item's share."""

    window: Geometry
    out: Placement
    item_rows: int
    item_columns: int


def whole(out: Operand) -> Placement:
    """Return the placement of pixels that fill an image."""
    return Placement(out.shape[1], out.shape[2], 1, 1, 0, 0, out.step)


def convolution(
    g: Geometry,
    placement: Placement,
    tile: Tile,
    target: Target,
    x: Operand,
    weights: Arg,
    bias: Arg,
    out: Operand,
    activation: Activation,
    residual: Operand | None = None,
) -> Launch:
    """Return the launch of conv_2d.cl, for weights and bias packed for ``tile``."""
    grid = grid_for("conv_2d", tile, target, g.pixels, g.group_columns, g.depth, g.groups)
    shape = const(Convolution(g, placement, *grid.shares))
    zeros = np.zeros(max(1, g.kernel_width * g.group_channels), np.float32)
    operands = (x, weights, bias, Const(zeros), bias if residual is None else residual, out)
    return grid.launch(
        "conv_2d",
        (*operands, shape, np.int32(residual is not None), *activation.bounds),
        tile.defines | stored_as(weights) | _neighbours(g) | activation.defines,
        flops(g.pixels, g.columns, g.depth),
    )


def _neighbours(g: Geometry) -> dict[str, str | int | float]:
    """Return the macro of conv_2d.cl for images of few channels, such as a network's input."""
    few = g.dilation_x == 1 and g.channels == g.group_channels <= _FEW_CHANNELS
    return {"ROW_STEP": g.stride_x * g.channels} if few else {}


def _claim(options: Conv2DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)


def _lower(call: Call) -> list[Step]:
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    g = _geometry(call, x.shape, filter_.shape)
    plain = call.residual is None and out.row_step is None
    if g.group_channels == 1 < g.channels and filter_.data is not None and plain:
        return depthwise_conv_2d.lower(replace(call, inputs=(x, _by_tap(filter_.data), *call.inputs[2:])))
    if g.is_matrix:
        return _product(call)
    if suits(g, call.target, filter_):
        return [*winograd(call, g)]
    tile = tile_for("conv_2d", call.target, g.pixels, g.group_columns, narrow=True)
    weights, packing = packed_rows(filter_, g.groups, tile.panel, call.target)
    bias, padding = packed_bias(_bias(call), g.group_columns, g.groups, tile.panel, call.target)
    launch = convolution(g, whole(out), tile, call.target, x, weights, bias, out, call.activation, call.residual)
    return [*packing, *padding, launch]


def _by_tap(weights: Array) -> Operand:
    """Rearrange filters [columns, height, width, 1], each for one input channel, as those of a depthwise
    convolution.
    """
    data = np.ascontiguousarray(weights[..., 0].transpose(1, 2, 0))[np.newaxis]
    return Operand(TensorSpec(TensorType.FLOAT32, data.shape, data=data))


def _geometry(call: Call, x: Shape, filter_: Shape) -> Geometry:
    return geometry(windows(call.options, call.image, filter_), x, filter_[3], filter_[0], call.pads)


def _product(call: Call) -> list[Step]:
    """Return the launches of a 1x1 convolution, whose pixels are the rows of a matrix."""
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    columns, depth = filter_.shape[0], filter_.shape[3]
    rows = x.spec.size // depth
    tile = tile_for("gemm", call.target, rows, columns, narrow=True)
    weights, packing = packed_rows(filter_, 1, tile.panel, call.target)
    bias, padding = packed_bias(_bias(call), columns, 1, tile.panel, call.target)
    product = Product(rows, columns, depth)
    launch = gemm(product, tile, call.target, x, weights, bias, out, call.activation, call.residual)
    return [*packing, *padding, launch]


def _bias(call: Call) -> Operand | None:
    return call.inputs[2] if len(call.inputs) > 2 else None


CL_OPS = (
    ClOp(
        CONV_2D,
        claim=_claim,
        lower=_lower,
        on_gpu=products.convolution,
        fuses_activation=True,
        fuses_residual=True,
        fuses_pads=True,
        writes_rows=True,
    ),
)
