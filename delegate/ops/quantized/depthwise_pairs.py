"""The launch of DEPTHWISE_CONV_2D on bytes on CPUs with vectors of 8 lanes, which multiply words in pairs."""

import numpy as np

from litecl.delegate.cl_op import Call, Const, Launch, Record, Target
from litecl.delegate.cpu.target import spread
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import rows_of
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.quantized.integers import Bounds, Weights, bounds_of
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_KERNEL = "quantized_depthwise_pairs"
_LANES = 8
_WIDEST = 5  # columns of a filter
_FARTHEST = 2  # columns from window to window
_ROWS = 2  # of a filter, multiplied at once


@dataclass(frozen=True)
class PairedDepthwise(Record):
    """Arguments of quantized_depthwise_pairs.cl: the window, and a work-item's share."""

    window: Geometry
    item_rows: int
    item_channels: int
    bounds: Bounds


def suits(g: Geometry, target: Target) -> bool:
    """Return whether the kernel can compute a convolution with one filter per channel, and faster than the kernel that
    multiplies four rows at once, whose vectors hold four times as many channels.
    """
    near = g.dilation_x == 1 and g.kernel_width <= _WIDEST and g.stride_x <= _FARTHEST
    return target.vector_width == _LANES and _LANES <= g.channels < 4 * _LANES and near


def launch(call: Call, g: Geometry, weights: Weights) -> Launch:
    """Return the launch of quantized_depthwise_pairs.cl."""
    x, out, target = call.input(0), call.outputs[0], call.target
    zero, bounds = fixed_point.zero_point_of(x.spec), bounds_of(call.options, out.spec)
    lines = g.images * g.out_height
    rows, blocks = spread(_KERNEL, target, lines, -(-g.channels // _LANES), g.flops)
    shape = PairedDepthwise(g, rows, blocks * _LANES, bounds)
    stage = weights.stage(g.channels, g.channels, zero, bounds)
    pixels = rows_of(_KERNEL, target, g.out_width)
    defines: dict[str, str | int | float] = {"PIXELS": pixels, "T": claims.C_TYPES[out.spec.type]}
    defines |= {"KERNEL_WIDTH": g.kernel_width, "STRIDE_X": g.stride_x, **stage.defines}
    if pixels != target.schedule(_KERNEL).usual_rows:
        defines |= g.guarded(pixels)
    operands = (
        x,
        Const(_packed(weights, g)),
        Const(stage.fields),
        Const(np.full(_LANES, zero, x.spec.dtype)),
        out,
        shape,
    )
    grid = target.grid(_KERNEL, (g.channels, lines), (shape.item_channels, rows))
    return grid.launch(_KERNEL, operands, defines, g.flops)


def _packed(weights: Weights, g: Geometry) -> Array:
    """Return weights minus their zero point as words, [row pairs, kernel_width, channels, 2 rows]."""
    words = (weights.values[0].astype(np.int16) + weights.factor).reshape(g.channels, g.kernel_height, g.kernel_width)
    padded = np.zeros((g.channels, -(-g.kernel_height // _ROWS) * _ROWS, g.kernel_width), np.int16)
    padded[:, : g.kernel_height] = words
    by_pair = padded.reshape(g.channels, -1, _ROWS, g.kernel_width)
    return np.ascontiguousarray(by_pair.transpose(1, 3, 0, 2))
