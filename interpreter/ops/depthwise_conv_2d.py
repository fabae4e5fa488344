"""DEPTHWISE_CONV_2D: filters of one channel each, ``multiplier`` of them for every input channel."""

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import exact, halves, hybrid, rescale, weighted
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import Integers
from litecl.interpreter.kit import activation, lowest, require, types, window
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, Padding

# Up to this many channels it pays to compute a row of outputs at once.
_MOST_JOINED = 64


@dataclass(frozen=True)
class DepthwiseConv2DOptions:
    padding: Padding = Padding.SAME
    stride_w: int = 0
    stride_h: int = 0
    depth_multiplier: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1


def windows(options: DepthwiseConv2DOptions, x: Shape, filter_: Shape) -> tuple[window.Window, window.Window]:
    """Return the windows along height and width, for an input [n, h, w, c] and a filter [1, h, w, c * multiplier]."""
    o = options
    return (
        window.fit(o.padding, x[1], filter_[1], o.stride_h, o.dilation_h_factor),
        window.fit(o.padding, x[2], filter_[2], o.stride_w, o.dilation_w_factor),
    )


def _infer(options: DepthwiseConv2DOptions, inputs: Specs) -> list[TensorSpec]:
    x, filter_ = require.present(inputs, 2)
    require.types(x, (*types.FLOAT, *rescale.INTEGERS))
    require.factors(x, filter_, hybrid.WEIGHTS)
    require.rank(x, exactly=4)
    require.rank(filter_, exactly=4)
    channels, (one, _, _, outputs) = x.static_shape[3], filter_.static_shape
    # The multiplier follows from the shapes: the option is not always set.
    if one != 1 or channels < 1 or outputs % channels:
        raise ShapeError(f"expected a filter [1, h, w, a multiple of {channels}], got {list(filter_.static_shape)}")
    require.bias(inputs, 2, outputs)
    height, width = windows(options, x.static_shape, filter_.static_shape)
    return [TensorSpec(x.type, (x.static_shape[0], height.output, width.output, outputs))]


def _run(options: DepthwiseConv2DOptions, inputs: Inputs) -> list[Array]:
    x, filter_ = require.arrays(inputs, 2)
    return [activation.finish(correlate(options, x, filter_), inputs, 2, options.fused_activation_function)]


def correlate(options: DepthwiseConv2DOptions, x: Array, filter_: Array) -> Array:
    """Return the sums over the taps, [n, height, width, c * multiplier], in the type of the operands."""
    sizes = windows(options, x.shape, filter_.shape)
    return _by_blocks(x, filter_, sizes, lambda sums: sums, np.result_type(x, filter_))


def _by_blocks(
    x: Array,
    filter_: Array,
    sizes: Sequence[window.Window],
    last: Callable[[Array], Array],
    dtype: np.dtype[np.generic],
) -> Array:
    """Apply ``last``, which sets a type, to the sums over the taps, as many rows at a time as the cache holds."""
    multiplier = filter_.shape[3] // x.shape[3]
    patches = window.patches(window.pad(x if multiplier == 1 else x.repeat(multiplier, axis=3), sizes), sizes)
    images, height, width, *_, channels = patches.shape
    blocks = list(window.blocks(images, height, width * channels))
    if len(blocks) == 1:
        return last(_sums(patches, filter_))
    result = np.empty((images, height, width, channels), dtype)
    for block in blocks:
        limits.tick()
        result[block] = last(_sums(patches[block], filter_))
    return result


def _sums(patches: Array, filter_: Array) -> Array:
    """Return patches [n, height, width, *taps, c] times their filters [1, *taps, c], added up."""
    n, height, width, h, w, channels = patches.shape
    if channels > _MOST_JOINED:
        return np.asarray(np.einsum("nhwijc,ijc->nhwc", patches, filter_[0]))
    limits.temporary("patches", patches.shape, patches.dtype.itemsize)
    # A whole row of outputs at a time, with the filters repeated along it.
    rows = patches.transpose(0, 1, 3, 4, 2, 5).reshape(n, height, h, w, width * channels)
    along = filter_.reshape(h, w, 1, channels).repeat(width, axis=2).reshape(h, w, width * channels)
    return np.asarray(np.einsum("nhijk,ijk->nhk", rows, along)).reshape(n, height, width, channels)


def _bind(options: DepthwiseConv2DOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    x, filter_ = require.present(inputs, 2)
    if x.type in rescale.INTEGERS:
        return _integer(options, inputs, outputs[0])
    return _hybrid(hybrid.scales_of(filter_)) if hybrid.applies(x, filter_) else None


def _integer(options: DepthwiseConv2DOptions, inputs: Specs, output: TensorSpec) -> Run:
    x, filter_ = require.present(inputs, 2)
    bias = require.optional(inputs, 2)
    scaling = weighted.convolution_scaling(options.fused_activation_function, [x, filter_, bias], output)

    geometry = cache(partial(windows, options))
    ready = exact.once([filter_, bias], lambda taps, bias: scaling.spread(taps, bias, axis=3))

    def run(options: DepthwiseConv2DOptions, inputs: Inputs) -> list[Array]:
        x, filter_ = require.arrays(inputs, 2)
        taps, added, last = ready(filter_, require.optional(inputs, 2))
        sizes = geometry(x.shape, filter_.shape)
        centred = x.astype(taps.dtype) - scaling.zero_point
        return [_by_blocks(centred, taps, sizes, lambda sums: last(sums + added), output.dtype)]

    return run


def _hybrid(scales: Array) -> Run:
    def run(options: DepthwiseConv2DOptions, inputs: Inputs) -> list[Array]:
        x, filter_ = require.arrays(inputs, 2)
        integers, scale = hybrid.quantize(x, hybrid.RowKind.ASYMMETRIC)
        sums = correlate(options, integers, hybrid.summable(filter_, filter_[..., 0].size))
        result = sums.astype(np.float32) * (scale * scales)
        return [activation.finish(result, inputs, 2, options.fused_activation_function)]

    return run


def _lowest(options: DepthwiseConv2DOptions, inputs: Specs) -> int:
    if lowest.is_hybrid(inputs):
        return 6
    return 2 if (options.dilation_w_factor, options.dilation_h_factor) != (1, 1) else 1


DEPTHWISE_CONV_2D = halves.also(
    Op(
        "DEPTHWISE_CONV_2D",
        versions=range(1, 8),
        options=DepthwiseConv2DOptions,
        infer=_infer,
        run=_run,
        bind=_bind,
        integers=Integers(weights={1: 3}, bias=2),
        lowest=lowest.most(_lowest, lowest.integers(3, 5)),
    ),
    loose=(2,),
)
