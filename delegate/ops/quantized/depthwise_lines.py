"""The launch of DEPTHWISE_CONV_2D on bytes on CPUs with vectors of 8 lanes or more, from lines that hold the bytes of
four rows side by side."""

from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Call, Const, Launch, Record, Scratch, Target
from litecl.delegate.cpu.target import spread
from litecl.delegate.kit import claims
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.quantized.integers import Bounds, Weights, bounds_of, unsigned_zero
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_KERNEL = "quantized_depthwise_lines"
_LEAST_LANES = 8
_GROUP = 4  # rows of a filter, multiplied at once
_MOST_UNROLLED = 10  # vectors of weights, which then stay in registers
_FOURS_BYTES, _ROWS_BYTES = 1 << 14, 1 << 14  # of a work-item's fours, and of the image's rows, in a first-level cache
_LEAST_SEGMENT = 16  # pixels


@dataclass(frozen=True)
class DepthwiseLines(Record):
    """Arguments of quantized_depthwise_lines.cl. group_ints: of the fours of a group of rows. item_ints: of all."""

    window: Geometry
    item_rows: int
    item_blocks: int
    block_rows: int
    segment: int
    group_ints: int
    item_ints: int
    bounds: Bounds


def suits(g: Geometry, target: Target) -> bool:
    """Return whether the kernel can compute a convolution with one filter per channel."""
    wide = target.lanes == target.vector_width >= _LEAST_LANES
    return wide and (g.channels >= _GROUP or _flat(g, target.vector_width) > 1)


def launch(call: Call, g: Geometry, weights: Weights, parts: Array) -> Launch:
    """Return the launch of quantized_depthwise_lines.cl.

    parts: bytes [parts, channels, taps] that add up to weights.
    """
    x, out, target = call.input(0), call.outputs[0], call.target
    flat = _flat(g, target.vector_width)
    fitting = (lanes for lanes in (16, 8, 4) if lanes <= target.vector_width)
    width = target.vector_width if flat > 1 else next(lanes for lanes in fitting if lanes <= g.channels)
    channels = np.tile(np.arange(g.channels), flat) if flat > 1 else _overlapping(g.channels, width)
    blocks, lines, groups = len(channels) // width, g.images * g.out_height, _groups(g)
    item_rows, item_blocks = spread(_KERNEL, target, lines, blocks, g.flops)
    pixel, reach = width // flat, (g.kernel_width - 1) * g.dilation_x + 1
    most = (_FOURS_BYTES // (4 * groups * pixel) - reach) // g.stride_x + 1
    segment = g.out_width if flat > 1 else min(g.out_width, max(_LEAST_SEGMENT, most))
    group_ints = ((segment - 1) * g.stride_x + reach) * pixel
    shape = DepthwiseLines(
        window=g,
        item_rows=item_rows,
        item_blocks=item_blocks,
        block_rows=max(1, _ROWS_BYTES // (g.stride_y * g.width * g.channels)),
        segment=segment,
        group_ints=group_ints,
        item_ints=-(-(groups * group_ints + width) // width) * width,
        bounds=bounds_of(call.options, out.spec),
    )
    ordered = {name: getattr(weights, name)[:, channels] for name in ("values", "bias", "factors")}
    stage = replace(weights, **ordered).stage(width, width, unsigned_zero(x.spec), shape.bounds)
    items = -(-lines // item_rows) * -(-blocks // item_blocks)
    operands = (
        x,
        Const(_packed(parts[:, channels], g, width)),
        Const(stage.fields),
        Const(np.full(width, fixed_point.zero_point_of(x.spec), x.spec.dtype)),
        Scratch(4 * shape.item_ints * items),
        out,
        shape,
    )
    defines = {"T": claims.C_TYPES[out.spec.type], **stage.defines, **shape.bounds.defines(out.spec.type)}
    defines |= {"GROUPS": groups, "PARTS": len(parts), "ROWS": min(_GROUP, g.kernel_height)}
    if len(parts) * groups * g.kernel_width <= _MOST_UNROLLED:
        defines["KERNEL_WIDTH"] = g.kernel_width
    if flat > 1:
        defines["FLAT"] = flat
    if width != target.vector_width:
        defines["WIDTH"] = width
    return target.grid(_KERNEL, (blocks, lines), (item_blocks, item_rows)).launch(_KERNEL, operands, defines, g.flops)


def _groups(g: Geometry) -> int:
    return -(-g.kernel_height // _GROUP)


def _flat(g: Geometry, lanes: int) -> int:
    """Return how many adjacent pixels of few channels fill a vector; 1 if a vector holds channels of one pixel."""
    if g.channels >= lanes or lanes % g.channels or (g.stride_x, g.dilation_x) != (1, 1):
        return 1
    flat, columns = lanes // g.channels, g.out_width + g.kernel_width - 1
    inside = min(columns, g.pad_x + g.width) - min(columns, g.pad_x)
    fits = 4 * _groups(g) * columns * g.channels <= _FOURS_BYTES
    return flat if fits and min(g.out_width, inside) >= flat else 1


def _overlapping(channels: int, width: int) -> Array:
    """Return the channels of all vectors, the last of which may overlap the one before."""
    firsts = np.minimum(np.arange(0, channels, width), channels - width)
    return (firsts[:, None] + np.arange(width)).ravel()


def _packed(parts: Array, g: Geometry, width: int) -> Array:
    """Return parts [parts, channels, taps] as [blocks, parts, groups, kernel_width, width, 4 rows]."""
    count, channels = parts.shape[:2]
    padded = np.zeros((count, channels, _groups(g) * _GROUP, g.kernel_width), np.int8)
    padded[:, :, : g.kernel_height] = parts.reshape(count, channels, g.kernel_height, g.kernel_width)
    split = padded.reshape(count, -1, width, _groups(g), _GROUP, g.kernel_width)
    return np.ascontiguousarray(split.transpose(1, 0, 3, 5, 2, 4))
