"""The launch of DEPTHWISE_CONV_2D on 16-bit activations."""

from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Arg, Call, Const, Launch, Record
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.matmul.geometry import Geometry, geometry
from litecl.delegate.ops.quantized.conv_2d import is_wide
from litecl.delegate.quantized.integers import Bounds, Weights, bounds_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

MOST_TAPS = 508
"""Most elements of a filter whose products with 16-bit activations add up within 32 bits."""


@dataclass(frozen=True)
class WordDepthwise(Record):
    """Arguments of quantized_depthwise_16.cl. lanes: channels, including padded ones."""

    window: Geometry
    lanes: int
    bounds: Bounds


def launch(call: Call, weights: Weights) -> Launch:
    """Return the launch of quantized_depthwise_16.cl, for weights in one group."""
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    g = geometry(call.options, x.shape, filter_.shape[1:3], 1, out.shape, call.pads)
    width = call.target.vector_width
    lanes, bounds = -(-g.channels // width) * width, bounds_of(call.options, out.spec)
    by_multiplier = _by_multiplier(weights.words, g.channels)
    if is_wide(call.specs, call.options):
        stage = by_multiplier.wide_stage(width, width, real=False)
    else:
        stage = by_multiplier.stage(width, width, 0, bounds)
    share = chunks("quantized_depthwise_16", g.pixels, call.target, work=g.columns * g.taps)
    tables = (Const(_padded(by_multiplier.values, lanes)), Const(stage.fields))
    args: tuple[Arg, ...] = (x, *tables, out, WordDepthwise(g, lanes, bounds), *share.args)
    defines: dict[str, str | int | float] = {**stage.defines, "T": claims.C_TYPES[out.spec.type], "WORDS": 1}
    return share.launch("quantized_depthwise_16", args, defines, g.flops)


def _by_multiplier(weights: Weights, channels: int) -> Weights:
    """Return the columns grouped by the filters of a channel: [multiplier, channels, taps]."""
    arrays = (weights.values, weights.bias, weights.factors)
    values, bias, factors = (np.swapaxes(a.reshape(channels, -1, *a.shape[2:]), 0, 1) for a in arrays)
    return replace(weights, values=values, bias=bias, factors=factors)


def _padded(values: Array, lanes: int) -> Array:
    """Return [multiplier, channels, taps] as 16-bit [multiplier, taps, lanes]."""
    padded = np.zeros((values.shape[0], values.shape[2], lanes), np.int16)
    padded[..., : values.shape[1]] = values.swapaxes(1, 2)
    return padded
