"""CONV_2D and FULLY_CONNECTED of quantized tensors: patches gathered row by row, and a product of bytes."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from litecl.delegate import claims
from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Launch, Refusal, Scratch, Step, Target
from litecl.delegate.quantized import (
    Weights,
    bounded,
    bounds_of,
    per_tensor,
    unsigned_zero,
    weights_of,
)
from litecl.delegate.tile import Grid, Tile, flops, grid_for, tile_for
from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D, windows
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.window import Window
from litecl.interpreter.schema import FullyConnectedOptionsWeightsFormat, TensorType

_ITEMS_PER_UNIT = 8
_LEAST_ITEM_OPERATIONS = 1e5


@dataclass(frozen=True)
class Geometry:
    """The struct of this name in kernels_cl/quantized_conv_2d.cl, up to the fields that name columns."""

    height: int
    width: int
    channels: int
    group_channels: int
    kernel_height: int = 1
    kernel_width: int = 1
    stride_y: int = 1
    stride_x: int = 1
    dilation_y: int = 1
    dilation_x: int = 1
    pad_y: int = 0
    pad_x: int = 0
    pixels: int = 1
    out_height: int = 1
    out_width: int = 1
    columns: int = 1
    group_columns: int = 1

    @property
    def patch(self) -> int:
        """Length of the dot product that an output element is."""
        return self.kernel_height * self.kernel_width * self.group_channels


def claim_product(inputs: claims.Specs, outputs: Sequence[TensorSpec], options: Any) -> Refusal | None:
    """A product of activations and constant weights of 8 bits."""
    x, weights = claims.given(inputs, 0), claims.given(inputs, 1)
    bias = inputs[2] if len(inputs) > 2 else None
    return (
        claims.constant(inputs, weights=1)
        or claims.typed((x, weights, outputs[0]), claims.BYTES, quantized=True)
        or (Refusal("a bias that is not a constant") if bias is not None and bias.data is None else None)
        or per_tensor(x, outputs[0])
        or (per_tensor(weights) if weights.type == TensorType.UINT8 else None)
        or bounded(options)
    )


def _claim_conv(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim_product(inputs, outputs, options)


def _claim_dense(
    options: FullyConnectedOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]
) -> Refusal | None:
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Refusal(f"weights are stored as {options.weights_format.name}")
    return claim_product(inputs, outputs, options)


def _lower_conv(call: Call) -> list[Step]:
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    g = geometry(windows(call.options, x.shape, filter_.shape), x.shape, filter_.shape, out.shape)
    return [convolution(call, g, weights_of(call, filter_.value, g.columns // g.group_columns))]


def _lower_dense(call: Call) -> list[Step]:
    columns, depth = call.input(1).shape
    rows = call.input(0).spec.size // depth
    return [convolution(call, _matrix(rows, depth, columns), weights_of(call, call.input(1).value, 1), real=True)]


def _matrix(rows: int, depth: int, columns: int) -> Geometry:
    """A plain product: rows are pixels side by side."""
    return Geometry(1, rows, depth, depth, pixels=rows, out_width=rows, columns=columns, group_columns=columns)


def geometry(windows: tuple[Window, Window], x: Shape, filter_: Shape, out: Shape) -> Geometry:
    """The geometry of a convolution with filters [columns, height, width, channels of a group]."""
    vertical, horizontal = windows
    pixels = out[0] * out[1] * out[2]
    if filter_[1:3] == (1, 1) and filter_[3] == x[3] and vertical.stride == horizontal.stride == 1:
        return _matrix(pixels, x[3], filter_[0])
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
        pad_y=vertical.before,
        pad_x=horizontal.before,
        pixels=pixels,
        out_height=out[1],
        out_width=out[2],
        columns=filter_[0],
        group_columns=filter_[0] * filter_[3] // x[3],
    )


def convolution(call: Call, g: Geometry, weights: Weights, *, real: bool = False) -> Launch:
    """The launch of quantized_conv_2d.cl on the first input of a call; ``real`` if factors are applied in float64."""
    x, out, target = call.input(0), call.outputs[0], call.target
    groups = g.columns // g.group_columns
    tile = tile_for(target, g.pixels, g.group_columns)
    grid = _grid(tile, target, g, groups)
    row_bytes = -(-g.patch // 4) * 4
    x_zero, bounds = unsigned_zero(x.spec), bounds_of(call.options, out.spec)
    plain = int((g.kernel_height, g.height, g.stride_x, row_bytes) == (1, 1, 1, g.channels))
    shares = (grid.item_rows, grid.item_columns, row_bytes, plain, x.spec.size)
    sizes = (*astuple(g), *shares, x_zero, *astuple(bounds), weights.factor)
    items = -(-g.pixels // grid.item_rows) * -(-g.group_columns // grid.item_columns) * groups
    stage = weights.stage(tile.panel, target.vector_width, x_zero, bounds, real=real)
    operands: tuple[Arg, ...] = (
        x,
        Const(weights.packed(tile.panel)),
        Const(stage.fields),
        Scratch(items * (tile.rows * row_bytes + 4 * target.vector_width)),
        out,
        Const(np.array(sizes, np.int32)),
    )
    defines = tile.defines | stage.defines | {"T": claims.C_TYPES[out.spec.type]}
    if weights.factor:
        defines["ROW_SUMS"] = 1
    return Launch(
        "quantized_conv_2d",
        "quantized_conv_2d",
        operands,
        grid.global_size,
        grid.local_size,
        defines,
        flops(g.pixels, g.columns, g.patch),
    )


def _grid(tile: Tile, target: Target, g: Geometry, groups: int) -> Grid:
    """Few work-items, each with memory for the rows that it gathers, and all columns where there are rows enough."""
    if target.kind == "gpu":
        return grid_for(tile, target, g.pixels, g.group_columns, g.patch, groups)
    bands, panels = -(-g.pixels // tile.rows), -(-g.group_columns // tile.columns)
    wanted = 1
    if target.compute_units > 1:
        operations = flops(g.pixels, g.group_columns, g.patch)
        wanted = max(1, min(target.compute_units * _ITEMS_PER_UNIT, int(operations / _LEAST_ITEM_OPERATIONS)))
    bands_per_item = -(-bands // min(bands, wanted))
    rows = -(-bands // bands_per_item)
    panels_per_item = -(-panels // min(panels, max(1, wanted // (rows * groups))))
    columns = -(-panels // panels_per_item)
    return Grid(bands_per_item * tile.rows, panels_per_item * tile.columns, (rows, columns, groups), (1, 1, 1))


CL_OPS = (
    ClOp(CONV_2D, claim=_claim_conv, lower=_lower_conv),
    ClOp(FULLY_CONNECTED, claim=_claim_dense, lower=_lower_dense),
)
