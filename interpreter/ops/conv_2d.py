"""CONV_2D: a bank of filters slid over an image, in groups of channels."""

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from litecl.interpreter.arithmetic import exact, halves, hybrid, rescale, weighted
from litecl.interpreter.arithmetic.exact import Product
from litecl.interpreter.arithmetic.weighted import Weighted
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import Integers
from litecl.interpreter.kit import activation, lowest, require, types, window
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType


@dataclass(frozen=True)
class Conv2DOptions:
    padding: Padding = Padding.SAME
    stride_w: int = 0
    stride_h: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1
    quantized_bias_type: TensorType = TensorType.FLOAT32


@dataclass(frozen=True)
class NearestConv2DOptions(Conv2DOptions):
    """The options if float images, or their pixels, are quantized as by XNNPACK (``RowKind.NEAREST``).

    No file says so, as the schema's table has no field for it: a mode selects them (``dynamic_range.py``).
    """


def windows(options: Conv2DOptions, x: Shape, filter_: Shape) -> tuple[window.Window, window.Window]:
    """Return the windows along height and width, for an input [n, h, w, c] and a filter [out, h, w, c / groups]."""
    o = options
    return (
        window.fit(o.padding, x[1], filter_[1], o.stride_h, o.dilation_h_factor),
        window.fit(o.padding, x[2], filter_[2], o.stride_w, o.dilation_w_factor),
    )


def _infer(options: Conv2DOptions, inputs: Specs) -> list[TensorSpec]:
    x, filter_ = require.present(inputs, 2)
    require.types(x, (*types.FLOAT, *rescale.INTEGERS))
    require.factors(x, filter_, hybrid.WEIGHTS)
    require.rank(x, exactly=4)
    require.rank(filter_, exactly=4)
    channels, (outputs, *_, depth) = x.static_shape[3], filter_.static_shape
    if depth < 1 or channels % depth or outputs % (channels // depth):
        raise ShapeError(
            "expected input channels that are a multiple of the filter's channels, and filters that are a multiple of "
            "the groups, "
            f"got {channels} channels and filters {list(filter_.static_shape)}"
        )
    require.bias(inputs, 2, outputs)
    height, width = windows(options, x.static_shape, filter_.static_shape)
    return [TensorSpec(x.type, (x.static_shape[0], height.output, width.output, outputs))]


def _run(options: Conv2DOptions, inputs: Inputs) -> list[Array]:
    x, filter_ = require.arrays(inputs, 2)
    return [activation.finish(correlate(options, x, filter_), inputs, 2, options.fused_activation_function)]


def correlate(options: Conv2DOptions, x: Array, filter_: Array) -> Array:
    """Return the sums over the taps, [n, height, width, outputs], in the type of the operands."""
    groups = x.shape[3] // filter_.shape[3]
    sizes = windows(options, x.shape, filter_.shape)
    return _by_group(x, [matrix.__rmatmul__ for matrix in matrices(filter_, groups)], sizes)


def matrices(filter_: Array, groups: int) -> list[Array]:
    """Return the filters of each group as a matrix [taps * channels, outputs]."""
    return [bank.reshape(len(bank), -1).T for bank in np.split(filter_, groups)]


def _by_group(
    x: Array, multiply: Sequence[Callable[[Array], Array]], sizes: Sequence[window.Window], border: int = 0
) -> Array:
    """Apply each group's function to the patches of its channels, and join the results."""
    if len(multiply) == 1:
        return window.convolve(x, multiply[0], sizes, border)
    parts = np.split(x, len(multiply), axis=3)
    results = [window.convolve(part, group, sizes, border) for part, group in zip(parts, multiply, strict=True)]
    return np.concatenate(results, axis=3)


def _bind(options: Conv2DOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    x, filter_ = require.present(inputs, 2)
    if x.type in rescale.INTEGERS:
        return _integer(options, inputs, outputs[0])
    return _hybrid(options, x, filter_) if hybrid.applies(x, filter_) else None


def image_rows(options: Conv2DOptions, filter_: TensorSpec) -> int:
    """Return the ``RowKind`` of float images: with filters of different scales they always have a zero point."""
    if isinstance(options, NearestConv2DOptions):
        return hybrid.RowKind.NEAREST
    scales = hybrid.scales_of(filter_)
    return hybrid.RowKind.ASYMMETRIC if (scales != scales[0]).any() else hybrid.RowKind.SYMMETRIC


def is_by_pixel(options: Conv2DOptions, x: Shape, filter_: TensorSpec) -> bool:
    """Return whether each float pixel, not each image, is quantized by its own range, as XNNPACK multiplies rows."""
    steps = (options.stride_h, options.stride_w)
    plain = filter_.static_shape[1:] == (1, 1, x[3]) and steps == (1, 1)
    return isinstance(options, NearestConv2DOptions) and plain and filter_.type == TensorType.INT8


def _integer(options: Conv2DOptions, inputs: Specs, output: TensorSpec) -> Run:
    x, filter_ = require.present(inputs, 2)
    bias = require.optional(inputs, 2)
    scaling = weighted.convolution_scaling(
        options.fused_activation_function, [x, filter_, bias], output, declared=options.quantized_bias_type
    )

    def prepare(groups: int, values: Array, bias: Array | None) -> list[Weighted]:
        count = len(values) // groups
        banks = matrices(values, groups)
        return [scaling.weighted(m, bias, slice(i * count, (i + 1) * count)) for i, m in enumerate(banks)]

    geometry = cache(partial(windows, options))
    # The number of groups depends on the input's shape, which may be known only at run time.
    ready = cache(lambda groups: exact.once([filter_, bias], partial(prepare, groups)))
    if x.shape is not None and filter_.data is not None:
        ready(x.shape[3] // filter_.static_shape[3])

    def run(options: Conv2DOptions, inputs: Inputs) -> list[Array]:
        x, filter_ = require.arrays(inputs, 2)
        multiply = ready(x.shape[3] // filter_.shape[3])(filter_, require.optional(inputs, 2))
        return [_by_group(x, multiply, geometry(x.shape, filter_.shape), scaling.zero_point)]

    return run


def _hybrid(options: Conv2DOptions, x: TensorSpec, filter_: TensorSpec) -> Run:
    scales, rows, filter_spec = hybrid.scales_of(filter_), image_rows(options, filter_), filter_
    geometry = cache(partial(windows, options))

    def prepare(groups: int, values: Array) -> list[Product]:
        return [hybrid.transposed(bank.reshape(len(bank), -1)) for bank in np.split(values, groups)]

    ready = cache(lambda groups: exact.once([filter_], partial(prepare, groups)))
    if x.shape is not None and filter_.data is not None:
        ready(x.shape[3] // filter_.static_shape[3])

    def run(options: Conv2DOptions, inputs: Inputs) -> list[Array]:
        x, filter_ = require.arrays(inputs, 2)
        by_pixel = is_by_pixel(options, x.shape, filter_spec)
        integers, scale = hybrid.quantize(x, rows, leading=3 if by_pixel else 1)
        multiply = ready(x.shape[3] // filter_.shape[3])(filter_)
        sums = _by_group(integers, multiply, geometry(x.shape, filter_.shape))
        result = sums.astype(np.float32) * (scale * scales)
        return [activation.finish(result, inputs, 2, options.fused_activation_function)]

    return run


CONV_2D = halves.also(
    Op(
        "CONV_2D",
        versions=range(1, 9),
        options=Conv2DOptions,
        infer=_infer,
        run=_run,
        bind=_bind,
        integers=Integers(weights={1: 0}, bias=2),
        lowest=lowest.most(lowest.hybrid(5), lowest.integers(3, 4)),
    ),
    loose=(2,),
)
