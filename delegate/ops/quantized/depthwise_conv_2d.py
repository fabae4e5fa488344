"""DEPTHWISE_CONV_2D of quantized tensors; several filters per channel are a grouped convolution."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Record, Refusal, Step, Target
from litecl.delegate.cpu.target import spread
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import rows_of
from litecl.delegate.matmul.geometry import Geometry, geometry, reached
from litecl.delegate.ops.quantized import depthwise_16, depthwise_lines
from litecl.delegate.ops.quantized.conv_2d import claim_product, convolution
from litecl.delegate.quantized.integers import Bounds, StageRow, Weights, bounds_of, unsigned_zero, weights_of
from litecl.delegate.target import own
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.schema import TensorType

_KERNEL = "quantized_depthwise_conv_2d"
_WIDEST_UNROLLED = 5
_LEAST_FLAT = 4  # with fewer, reloading the columns for every tap costs more than it gains
_GROUP = 4  # rows of the kernel that are multiplied at once
_BLOCK = 16  # channels whose bytes are transposed at once


@dataclass(frozen=True)
class QuantizedDepthwise(Record):
    """Arguments of quantized_depthwise_conv_2d.cl.

    lanes: fours of channels, including padding. parts: bytes that add up to a weight. size: elements of x.
    """

    window: Geometry
    lanes: int
    parts: int
    item_rows: int
    item_channels: int
    size: int
    bounds: Bounds


def _claim(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if refusal := claim_product(inputs, outputs, options, axis=3) or reached(options, inputs, outputs):
        return refusal
    filter_ = claims.given(inputs, 1).static_shape
    if outputs[0].type == TensorType.INT16 and filter_[1] * filter_[2] > depthwise_16.MOST_TAPS:
        return Refusal("filters so large that sums of 16-bit activations overflow 32 bits")
    return None


@dataclass(frozen=True)
class Share:
    """A work-item's share: ``rows`` and ``channels`` of the output, in vectors of ``width`` lanes, each of which
    holds four channels. lines_whole: whether it computes all pixels of a row.
    """

    width: int
    rows: int
    channels: int
    lines_whole: bool


def _lower(call: Call) -> list[Step]:
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    taps, columns = filter_.shape[1] * filter_.shape[2], filter_.shape[3]
    by_column = filter_.value.reshape(taps, columns).T
    if x.spec.type == TensorType.INT16:
        return [depthwise_16.launch(call, weights_of(call.specs, out.spec, by_column, 1))]
    if columns == x.shape[3]:
        weights = weights_of(call.specs, out.spec, by_column, 1)
        g = _window(call)
        if depthwise_lines.suits(g, call.target):
            return [depthwise_lines.launch(call, g, weights, _parts(weights))]
        return [_launch(call, weights)]
    weights = weights_of(call.specs, out.spec, by_column, x.shape[3])
    return [convolution(call, _window(call), weights)]


def _window(call: Call) -> Geometry:
    x, filter_, _ = call.weighted
    return geometry(call.options, x.shape, filter_.shape[1:3], 1, call.outputs[0].shape, call.pads)


def _launch(call: Call, weights: Weights) -> Launch:
    x, out, target = call.input(0), call.outputs[0], call.target
    g = _window(call)
    flat = _flat(g, target)
    share = own(target, share_of)(g, flat, target)
    width = share.width
    weights = weights.repeated(flat)
    parts = _parts(weights)
    shape = _shape(call, g, share, len(parts))
    defines = _defines(g, width, flat, call)
    overlap = flat == 1 and "PARTIAL" not in defines  # the last vectors of channels
    block = 4 if share.lines_whole and width >= 4 and not (overlap and g.channels % _BLOCK) else 1
    stage = weights.stage(4 * shape.lanes, 4 * shape.lanes, unsigned_zero(x.spec), shape.bounds)
    operands = (
        x,
        Const(_packed(parts, shape, block)),
        Const(_by_lane(stage.fields, shape.lanes, block)),
        Const(np.full(4 * width, fixed_point.zero_point_of(x.spec), x.spec.dtype)),
        out,
        shape,
    )
    defines |= stage.defines
    if block > 1:
        defines["BLOCKED"] = 1
    if share.lines_whole:
        defines |= _sides(g, int(defines["PIXELS"]) * flat)
    pieces = [(g.channels, shape.item_channels), (g.images * g.out_height, shape.item_rows)]
    if not share.lines_whole:
        pieces.append((g.out_width, int(defines["PIXELS"])))
    counts, shares = zip(*pieces, strict=True)
    return target.grid(_KERNEL, counts, shares).launch(_KERNEL, operands, defines, g.flops)


def _flat(g: Geometry, target: Target) -> int:
    """Return how many adjacent pixels fill a vector: more than one if they have few channels and are contiguous."""
    width = 4 * target.lanes
    dense = (g.stride_x, g.dilation_x) == (1, 1) and g.kernel_width <= _WIDEST_UNROLLED
    fits = g.channels % 4 == 0 and width % g.channels == 0 and width <= g.out_width * g.channels
    flat = width // g.channels if fits and dense else 1
    return flat if flat >= _LEAST_FLAT else 1


def share_of(g: Geometry, flat: int, target: Target) -> Share:
    """Return the share of a CPU's work-item: whole lines, in vectors filled by channels or by several pixels."""
    most = target.vector_width
    fitting = (w for w in (16, 8, 4, 1) if w <= most and (4 * w <= g.channels or w == min(4, most)))
    width = most if flat > 1 else next(fitting)
    rows, blocks = g.images * g.out_height, -(-g.channels // (4 * width))
    item_rows, item_blocks = spread(_KERNEL, target, rows, blocks, g.flops)
    return Share(width, item_rows, item_blocks * 4 * width, lines_whole=True)


def _sides(g: Geometry, pixels: int) -> dict[str, str | int | float]:
    """Return the macro of ``pixels`` adjacent pixels, if none or few of their columns lie outside the image."""
    if pixels > g.out_width:  # some of them don't exist
        return {}
    if g.guarded(pixels) == {"GUARDED": 0}:
        return {"INSIDE": 1}
    return {"NEAR": 1} if _is_unrolled(g) and g.near else {}


def _is_unrolled(g: Geometry) -> bool:
    return g.dilation_x == 1 and g.kernel_width <= _WIDEST_UNROLLED and g.stride_x <= 2


def _parts(weights: Weights) -> Array:
    """Split weights minus their zero point (-255 to 255) into signed bytes that add up to them: [parts, columns,
    depth].
    """
    rest = weights.values[0].astype(np.int16) + weights.factor
    parts: list[Array] = []
    while not parts or rest.any():
        parts.append(np.clip(rest, -128, 127).astype(np.int8))
        rest = rest - parts[-1]
    return np.stack(parts)


def _packed(parts: Array, shape: QuantizedDepthwise, block: int) -> Array:
    """Return the parts as [parts, row groups, kernel_width, 4, lanes, 4 rows]. block: adjacent channels in a vector."""
    height, width, count, lanes = shape.window.kernel_height, shape.window.kernel_width, shape.parts, shape.lanes
    parts = parts.reshape(count, -1, height, width)
    groups = -(-height // _GROUP)
    padded = np.zeros((count, 4 * lanes, groups * _GROUP, width), np.int8)
    padded[:, : parts.shape[1], :height] = parts
    split = padded.reshape(count, lanes // block, 4, block, groups, _GROUP, width)
    return np.ascontiguousarray(split.transpose(0, 4, 6, 2, 1, 3, 5))


def _by_lane(fields: Array, lanes: int, block: int) -> Array:
    """Rearrange fields [1, 1, StageRow, channels] as [StageRow, 4, lanes], in the order of ``_packed``."""
    return np.ascontiguousarray(fields.reshape(len(StageRow), lanes // block, 4, block).transpose(0, 2, 1, 3))


def _shape(call: Call, g: Geometry, share: Share, parts: int) -> QuantizedDepthwise:
    return QuantizedDepthwise(
        g,
        -(-g.channels // (4 * share.width)) * share.width,
        parts,
        share.rows,
        share.channels,
        call.input(0).spec.size,
        bounds_of(call.options, call.outputs[0].spec),
    )


def _defines(g: Geometry, width: int, flat: int, call: Call) -> dict[str, str | int | float]:
    pixels = 1 if flat > 1 else rows_of(_KERNEL, call.target, g.out_width)
    defines: dict[str, str | int | float] = {"PIXELS": pixels, "ROWS": min(_GROUP, g.kernel_height)}
    defines["T"] = claims.C_TYPES[call.outputs[0].spec.type]
    if _is_unrolled(g):
        defines |= {"KERNEL_WIDTH": g.kernel_width, "STRIDE_X": g.stride_x}
    if width != call.target.vector_width:
        defines["WIDTH"] = width
    if flat > 1:
        defines["FLAT"] = flat
    elif g.channels % 4 or g.channels < 4 * width:
        defines["PARTIAL"] = 1
    return defines


CL_OPS = (ClOp(DEPTHWISE_CONV_2D, claim=_claim, lower=_lower),)
