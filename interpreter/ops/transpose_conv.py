"""TRANSPOSE_CONV, and MediaPipe's custom Convolution2DTransposeBias: each input element scatters a filter."""

import math
import struct
from collections.abc import Sequence

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import exact, halves, hybrid, rescale, weighted
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import Integers
from litecl.interpreter.kit import activation, lowest, require, types, window
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.options import CustomOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType


@dataclass(frozen=True)
class TransposeConvOptions:
    padding: Padding = Padding.SAME
    stride_w: int = 0
    stride_h: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    quantized_bias_type: TensorType = TensorType.FLOAT32


def offset(options: TransposeConvOptions, output: Shape, filter_: Shape) -> tuple[int, int]:
    """Return the rows and columns cropped before the output: the padding of the convolution that it transposes."""
    o = options
    return (
        window.fit(o.padding, output[1], filter_[1], o.stride_h).before,
        window.fit(o.padding, output[2], filter_[2], o.stride_w).before,
    )


def scatter(
    x: Array, taps: Array, strides: Shape, offsets: Shape, output: Shape, dilations: Shape | None = None
) -> Array:
    """Add ``x[n, y, ...] @ taps[i, ...]`` at ``y * stride + i * dilation - offset``, along every spatial dimension.

    x: [n, *spatial, channels]. taps: [*kernel, channels, outputs]. output: the shape of the result.
    """
    spatial, kernel = x.shape[1:-1], taps.shape[:-2]
    apart = (1,) * len(kernel) if dilations is None else dilations
    reach = [(length - 1) * stride + 1 for length, stride in zip(spatial, strides, strict=True)]
    bounds = [
        max(last + (size - 1) * dilation, offset + length)
        for last, size, dilation, offset, length in zip(reach, kernel, apart, offsets, output[1:-1], strict=True)
    ]
    shape = (len(x), *bounds, taps.shape[-1])
    of_a_tap = (*x.shape[:-1], taps.shape[-1])
    limits.temporary("an output before it is cut", (math.prod(shape) + 2 * math.prod(of_a_tap),), x.dtype.itemsize)
    result = np.zeros(shape, x.dtype)
    for tap in np.ndindex(*kernel):
        limits.tick()
        starts = [i * dilation for i, dilation in zip(tap, apart, strict=True)]
        where = (slice(i, i + n, stride) for i, n, stride in zip(starts, reach, strides, strict=True))
        result[(slice(None), *where)] += x @ taps[tap]
    cut = tuple(slice(offset, offset + n) for offset, n in zip(offsets, output[1:-1], strict=True))
    return result[(slice(None), *cut)]


def _check(x: TensorSpec, filter_: TensorSpec, inputs: Specs, bias: int) -> None:
    require.factors(x, filter_, hybrid.WEIGHTS)
    require.rank(x, exactly=4)
    require.filled(x, (1, 2))
    require.rank(filter_, exactly=4)
    if x.static_shape[3] != filter_.static_shape[3]:
        raise ShapeError(f"expected filters of {x.static_shape[3]} channels, got {list(filter_.static_shape)}")
    require.bias(inputs, bias, filter_.static_shape[0])


def _infer(options: TransposeConvOptions, inputs: Specs) -> list[TensorSpec]:
    size, filter_, x = require.present(inputs, 3)
    require.rank(size, exactly=1)
    require.types(x, (*types.FLOAT, *rescale.INTEGERS))
    _check(x, filter_, inputs, 3)
    if size.data is None:
        return [TensorSpec(x.type, None)]
    output = tuple(int(n) for n in size.data)
    if len(output) != 4 or (output[0], output[3]) != (x.static_shape[0], filter_.static_shape[0]):
        raise ShapeError(
            f"expected an output shape [{x.static_shape[0]}, h, w, {filter_.static_shape[0]}], got {list(output)}"
        )
    offset(options, output, filter_.static_shape)
    return [TensorSpec(x.type, output)]


def _run(options: TransposeConvOptions, inputs: Inputs) -> list[Array]:
    size, filter_, x = require.arrays(inputs, 3)
    return [activation.finish(_transposed(options, size, filter_, x), inputs, 3, options.fused_activation_function)]


def _transposed(options: TransposeConvOptions, size: Array, filter_: Array, x: Array) -> Array:
    output = tuple(int(n) for n in size)
    strides = (options.stride_h, options.stride_w)
    return scatter(x, filter_.transpose(1, 2, 3, 0), strides, offset(options, output, filter_.shape), output)


def _bind(options: TransposeConvOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    _, filter_, x = require.present(inputs, 3)
    if x.type in rescale.INTEGERS:
        return integer(options, inputs, outputs[0])
    return _hybrid(hybrid.scales_of(filter_)) if hybrid.applies(x, filter_) else None


def integer(options: TransposeConvOptions, inputs: Specs, output: TensorSpec) -> Run:
    """Return the kernel of integers."""
    _, filter_, x = require.present(inputs, 3)
    bias = require.optional(inputs, 3)
    scaling = weighted.convolution_scaling(
        options.fused_activation_function,
        [x, filter_, bias],
        output,
        declared=options.quantized_bias_type,
    )

    ready = exact.once([filter_, bias], lambda taps, bias: scaling.spread(taps, bias, axis=0))

    def run(options: TransposeConvOptions, inputs: Inputs) -> list[Array]:
        size, filter_, x = require.arrays(inputs, 3)
        taps, added, last = ready(filter_, require.optional(inputs, 3))
        sums = _transposed(options, size, taps, x.astype(taps.dtype) - scaling.zero_point)
        sums += added
        return [last(sums)]

    return run


def _hybrid(scales: Array) -> Run:
    def run(options: TransposeConvOptions, inputs: Inputs) -> list[Array]:
        size, filter_, x = require.arrays(inputs, 3)
        integers, scale = hybrid.quantize(x, hybrid.RowKind.ASYMMETRIC)
        sums = _transposed(options, size, hybrid.summable(filter_, filter_[0].size), integers)
        result = sums.astype(np.float32) * (scale * scales)
        if not np.isfinite(scale).all():  # it must not affect outputs that no pixel reaches
            size = np.array([1, *size[1:3], 1])
            reached = _transposed(options, size, np.ones((1, *filter_.shape[1:3], 1)), np.ones((1, *x.shape[1:3], 1)))
            result = np.where(reached > 0, result, np.float32(0))
        return [activation.finish(result, inputs, 3, options.fused_activation_function)]

    return run


def _lowest(options: object, inputs: Specs) -> int:
    return 3 if len(inputs) == 4 else 1  # with a bias


TRANSPOSE_CONV = halves.also(
    Op(
        "TRANSPOSE_CONV",
        versions=range(1, 6),
        options=TransposeConvOptions,
        infer=_infer,
        run=_run,
        bind=_bind,
        integers=Integers(weights={1: 0}, bias=3),
        lowest=lowest.most(_lowest, lowest.integers(2)),
    ),
    x=2,
    loose=(1, 3),
)


@dataclass(frozen=True)
class _Geometry:
    strides: tuple[int, int]
    offsets: tuple[int, int]
    output: Shape


def geometry(options: CustomOptions, x: Shape, filter_: Shape) -> _Geometry:
    """Return strides, crops and output shape (mediapipe/util/tflite/operations/transpose_conv_bias.cc).

    The custom options are the bytes of a TfLiteTransposeConvParams, whose padding is 1 for SAME and 2 for VALID.
    """
    if len(options.data) < 12:
        raise ModelError(f"expected 12 bytes of options, got {len(options.data)}")
    padding, stride_w, stride_h = struct.unpack("<3i", options.data[:12])
    strides = (stride_h, stride_w)
    if min(strides) < 1:
        raise ShapeError(f"expected strides of at least 1, got {strides}")
    cut = [
        max(0, size - (length - 1) % stride - 1) if padding == 1 else 0
        for size, length, stride in zip(filter_[1:3], x[1:3], strides, strict=True)
    ]
    height, width = (
        stride * (length - 1) + size - less
        for size, length, stride, less in zip(filter_[1:3], x[1:3], strides, cut, strict=True)
    )
    return _Geometry(strides, (cut[0] // 2, cut[1] // 2), (x[0], height, width, filter_[0]))


def _infer_bias(options: CustomOptions, inputs: Specs) -> list[TensorSpec]:
    x, filter_, _ = require.present(inputs, 3)
    require.types(x, types.FLOAT)
    _check(x, filter_, inputs, 2)
    return [TensorSpec(x.type, geometry(options, x.static_shape, filter_.static_shape).output)]


def _run_bias(options: CustomOptions, inputs: Inputs) -> list[Array]:
    x, filter_, _ = require.arrays(inputs, 3)
    shape = geometry(options, x.shape, filter_.shape)
    result = scatter(x, filter_.transpose(1, 2, 3, 0), shape.strides, shape.offsets, shape.output)
    return [activation.finish(result, inputs, 2, ActivationFunctionType.NONE)]


CONVOLUTION_2D_TRANSPOSE_BIAS = Op(
    "Convolution2DTransposeBias", options=CustomOptions, infer=_infer_bias, run=_run_bias, custom=True
)
