"""DEPTHWISE_CONV_2D on the device."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Launch, Operand, Refusal, Step, Target
from litecl.delegate.kit import claims
from litecl.delegate.kit.shared import const
from litecl.delegate.matmul.geometry import Geometry, geometry
from litecl.delegate.matmul.packing import Strided, pack
from litecl.delegate.matmul.tile import flops
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions, windows

_PIXELS = (4, 5, 6, 3)  # columns of the output that a piece may compute, the best first
_WIDEST_UNROLLED = 7
_CACHE_BYTES = 24576  # rows of a block of channels that stay in the first-level cache from one output row to the next
_LEAST_BLOCK = 64  # channels: shorter runs of memory cost more than the cache gains
_ITEM_FLOPS = 3e5
_ITEMS_PER_UNIT = 8


@dataclass(frozen=True)
class Depthwise:
    """What depthwise_conv_2d.cl is told of a convolution: the window, and a work-item's share."""

    window: Geometry
    item_rows: int
    item_pixels: int
    item_channels: int


def _claim(options: DepthwiseConv2DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)


def lower(call: Call) -> list[Step]:
    """The launch of depthwise_conv_2d.cl, for the filter [1, height, width, channels * multiplier] of a call."""
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    channels = x.shape[3]
    multiplier = filter_.shape[3] // channels
    taps = filter_.shape[1] * filter_.shape[2]
    weights, packing = _by_multiplier(filter_, taps, channels, multiplier, call.target)
    bias, padding = _bias(call, channels, multiplier)
    work = 2 * out.spec.size * taps
    items = _items(call, work)
    g = geometry(windows(call.options, call.image, filter_.shape), x.shape, 1, filter_.shape[3], call.pads)
    launch = Launch(
        "depthwise_conv_2d",
        "depthwise_conv_2d",
        (x, weights, bias, out, const(Depthwise(g, *items)), *call.activation.bounds),
        *_grid(g, items, call.target),
        _defines(g, call.target) | call.activation.defines,
        flops(out.spec.size, taps),
    )
    return [*packing, *padding, launch]


def _by_multiplier(
    values: Operand, taps: int, channels: int, multiplier: int, target: Target
) -> tuple[Arg, list[Launch]]:
    """[taps, channels * multiplier] as [multiplier, taps, channels]."""
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


def _items(call: Call, work: int) -> tuple[int, int, int]:
    """Output rows, output columns and channels of a work-item."""
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    rows, width, channels = out.shape[0] * out.shape[1], out.shape[2], x.shape[3]
    if call.target.kind == "gpu":
        return 1, _PIXELS[0], _width(channels, call.target)
    fits = _CACHE_BYTES // (4 * filter_.shape[1] * x.shape[2])
    block = fits // call.target.vector_width * call.target.vector_width
    if block < _LEAST_BLOCK:
        block = channels
    blocks = -(-channels // block)
    wanted = min(_ITEM_FLOPS, work / (call.target.compute_units * _ITEMS_PER_UNIT))
    return max(1, min(rows, round(rows * blocks * wanted / work))), width, min(block, channels)


def _grid(g: Geometry, items: tuple[int, int, int], target: Target) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Global and local size: blocks of channels, rows, columns."""
    rows, pixels = -(-g.images * g.out_height // items[0]), -(-g.out_width // items[1])
    blocks = -(-g.channels // items[2])
    if target.kind == "cpu":
        return (blocks, rows, pixels), (1, 1, 1)
    wide = min(64, target.max_work_group_size, 1 << (blocks - 1).bit_length())
    tall = max(1, min(64, target.max_work_group_size) // wide)
    return (-(-blocks // wide) * wide, -(-rows // tall) * tall, pixels), (wide, tall, 1)


def _defines(g: Geometry, target: Target) -> dict[str, str | int | float]:
    whole = target.kind == "gpu"  # a work-item's columns
    pixels = _PIXELS[0] if whole else min(_PIXELS, key=lambda n: -(-g.out_width // n) * n)
    defines: dict[str, str | int | float] = {"PIXELS": pixels}
    if g.dilation_x == 1 and g.kernel_width <= _WIDEST_UNROLLED and g.stride_x <= 2:
        defines |= {"KERNEL_WIDTH": g.kernel_width, "STRIDE_X": g.stride_x}
    if g.channels < target.vector_width:
        defines |= {"WIDTH": _width(g.channels, target)}
    return defines


def _width(channels: int, target: Target) -> int:
    """Channels that are taken at once."""
    return next(width for width in (16, 8, 4, 1) if width <= min(channels, target.vector_width))


CL_OPS = (ClOp(DEPTHWISE_CONV_2D, claim=_claim, lower=lower, fuses_activation=True, fuses_pads=True),)
