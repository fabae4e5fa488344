"""CONV_2D on the device: a matrix product for 1x1 filters, Winograd's algorithm for 3x3 ones where it pays, a depthwise
convolution where every channel is a group, and for all others a product that gathers its rows."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Call, ClOp, Const, Launch, Operand, Pads, Refusal, Step, Target
from litecl.delegate.kit import claims
from litecl.delegate.matmul.gemm import Product, gemm
from litecl.delegate.matmul.packing import packed_bias, packed_rows, stored_as
from litecl.delegate.matmul.tile import Tile, flops, grid_for, tile_for
from litecl.delegate.matmul.winograd import suits, winograd
from litecl.delegate.ops import depthwise_conv_2d
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions, windows
from litecl.interpreter.schema import TensorType

_FEW_CHANNELS = 4


@dataclass(frozen=True)
class Geometry:
    """The struct of this name in kernels_cl/conv_2d.cl, field by field."""

    height: int
    width: int
    channels: int
    group_channels: int
    kernel_height: int
    kernel_width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    pad_y: int
    pad_x: int
    pixels: int
    grid_height: int
    grid_width: int
    out_height: int
    out_width: int
    step_y: int
    step_x: int
    first_y: int
    first_x: int
    columns: int
    group_columns: int
    out_step: int = 0
    item_rows: int = 0
    item_columns: int = 0

    @property
    def depth(self) -> int:
        """Length of the dot product that an output element is."""
        return self.kernel_height * self.kernel_width * self.group_channels


def convolution(
    geometry: Geometry,
    tile: Tile,
    target: Target,
    x: Operand,
    weights: Arg,
    bias: Arg,
    out: Operand,
    activation: Activation,
    residual: Operand | None = None,
) -> Launch:
    """The launch of conv_2d.cl, for weights and bias packed for ``tile``."""
    g = geometry
    groups = g.columns // g.group_columns
    grid = grid_for(tile, target, g.pixels, g.group_columns, g.depth, groups)
    shape = astuple(replace(g, out_step=out.step, item_rows=grid.item_rows, item_columns=grid.item_columns))
    zeros = np.zeros(max(1, g.kernel_width * g.group_channels), np.float32)
    operands = (x, weights, bias, Const(zeros), bias if residual is None else residual, out)
    return Launch(
        "conv_2d",
        "conv_2d",
        (*operands, Const(np.array(shape, np.int32)), np.int32(residual is not None), *activation.bounds),
        grid.global_size,
        grid.local_size,
        tile.defines | stored_as(weights) | _neighbours(g) | activation.defines,
        flops(g.pixels, g.columns, g.depth),
    )


def _neighbours(g: Geometry) -> dict[str, str | int | float]:
    """The macro of conv_2d.cl for images of few channels, as the first layer of a network sees."""
    few = g.dilation_x == 1 and g.channels == g.group_channels <= _FEW_CHANNELS
    return {"ROW_STEP": g.stride_x * g.channels} if few else {}


def _claim(options: Conv2DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)


def _lower(call: Call) -> list[Step]:
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    g = _geometry(call)
    plain = call.residual is None and out.row_step is None
    if g.group_channels == 1 < g.channels and filter_.data is not None and plain:
        return depthwise_conv_2d.lower(replace(call, inputs=(x, _by_tap(filter_.data), *call.inputs[2:])))
    window = (g.kernel_height, g.kernel_width)
    if g.group_channels == g.channels and (g.stride_y, g.stride_x) == (1, 1):
        if window == (1, 1) and call.pads == Pads():
            return _product(call)
        if window == (3, 3) and (g.dilation_y, g.dilation_x) == (1, 1) and suits(call.target, filter_, out):
            return [*winograd(call, (g.pad_y, g.pad_x))]
    tile = tile_for(call.target, g.pixels, g.group_columns, narrow=True)
    groups = g.columns // g.group_columns
    weights, packing = packed_rows(filter_, groups, tile.panel, call.target)
    bias, padding = packed_bias(_bias(call), g.group_columns, groups, tile.panel, call.target)
    launch = convolution(g, tile, call.target, x, weights, bias, out, call.activation, call.residual)
    return [*packing, *padding, launch]


def _by_tap(weights: Array) -> Operand:
    """Filters [columns, height, width, 1], each of one channel of the input, as a depthwise convolution has them."""
    data = np.ascontiguousarray(weights[..., 0].transpose(1, 2, 0))[np.newaxis]
    return Operand(TensorSpec(TensorType.FLOAT32, data.shape, data=data))


def _geometry(call: Call) -> Geometry:
    """The geometry of a plain convolution, whose output is the whole grid."""
    x, filter_, out = call.input(0).shape, call.input(1).shape, call.outputs[0].shape
    vertical, horizontal = windows(call.options, call.image, filter_)
    return Geometry(
        height=x[1],
        width=x[2],
        channels=x[3],
        group_channels=filter_[3],
        kernel_height=filter_[1],
        kernel_width=filter_[2],
        stride_y=vertical.stride,
        stride_x=horizontal.stride,
        dilation_y=vertical.dilation,
        dilation_x=horizontal.dilation,
        pad_y=vertical.before + call.pads.top,
        pad_x=horizontal.before + call.pads.left,
        pixels=out[0] * out[1] * out[2],
        grid_height=out[1],
        grid_width=out[2],
        out_height=out[1],
        out_width=out[2],
        step_y=1,
        step_x=1,
        first_y=0,
        first_x=0,
        columns=filter_[0],
        group_columns=filter_[0] * filter_[3] // x[3],
    )


def _product(call: Call) -> list[Step]:
    """A 1x1 convolution: the pixels are the rows of a matrix."""
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    columns, depth = filter_.shape[0], filter_.shape[3]
    rows = x.spec.size // depth
    tile = tile_for(call.target, rows, columns, narrow=True)
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
        fuses_activation=True,
        fuses_residual=True,
        fuses_pads=True,
        writes_rows=True,
    ),
)
