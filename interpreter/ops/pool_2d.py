"""AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D: each window of an image reduced to one element per channel."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from litecl.interpreter.arithmetic import fixed_point, halves, rescale
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import SHARING, Integers
from litecl.interpreter.kit import activation, lowest, require, types, window
from litecl.interpreter.op import Inputs, Lowest, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType

Windows = tuple[window.Window, window.Window]


@dataclass(frozen=True)
class Pool2DOptions:
    padding: Padding = Padding.SAME
    stride_w: int = 0
    stride_h: int = 0
    filter_width: int = 0
    filter_height: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE


def windows(options: Pool2DOptions, x: Shape) -> Windows:
    """Return the windows along height and width of an input [n, h, w, c]."""
    o = options
    return (
        window.fit(o.padding, x[1], o.filter_height, o.stride_h),
        window.fit(o.padding, x[2], o.filter_width, o.stride_w),
    )


def mean(x: Array, sizes: Windows) -> Array:
    """Return the mean of each window, over the elements that are not padding."""
    return window.reduce(x, sizes, np.add, 0.0) / window.counts(sizes, x.shape[1:3])


def _maximum(x: Array, sizes: Windows) -> Array:
    """Return the largest numbers, ignoring NaN as TFLite does."""
    return np.fmax(window.reduce(x, sizes, np.fmax, -np.inf), np.float32(-np.inf))


def _largest_integer(x: Array, sizes: Windows) -> Array:
    return window.reduce(x, sizes, np.maximum, np.iinfo(x.dtype).min)


def _root_mean_square(x: Array, sizes: Windows) -> Array:
    return np.sqrt(mean(np.square(x), sizes))


def _rounded_mean(x: Array, sizes: Windows) -> Array:
    """Return the mean of stored integers, halves away from zero; the zero points of input and output are the same."""
    count = window.counts(sizes, x.shape[1:3])
    sums = window.reduce(x.astype(np.int32), sizes, np.add, 0)
    return np.asarray(np.trunc((sums + np.copysign(count // 2, sums)) / count.astype(np.float64)))


Kernel = Callable[[Array, Windows], Array]


def _pool(
    name: str,
    kernel: Kernel,
    last_version: int,
    integer: Kernel | None = None,
    lowest: Lowest | None = None,
    integers: Integers | None = None,
) -> Op:
    def infer(options: Pool2DOptions, inputs: Specs) -> list[TensorSpec]:
        (x,) = require.present(inputs, 1)
        require.types(x, types.FLOAT if integer is None else (*types.FLOAT, *rescale.INTEGERS))
        require.rank(x, exactly=4)
        height, width = windows(options, x.static_shape)
        return [TensorSpec(x.type, (x.static_shape[0], height.output, width.output, x.static_shape[3]))]

    def run(options: Pool2DOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        result = kernel(x, windows(options, x.shape))
        return [activation.apply(options.fused_activation_function, result)]

    def bind(options: Pool2DOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
        (x,) = require.present(inputs, 1)
        return None if integer is None or x.type == TensorType.FLOAT32 else _clamped(integer, options, outputs[0])

    op = Op(name, versions=range(1, last_version + 1), options=Pool2DOptions, infer=infer, run=run, bind=bind)
    return halves.also(replace(op, lowest=lowest, integers=integers))


def _clamped(kernel: Kernel, options: Pool2DOptions, output: TensorSpec) -> Run:
    low, high = fixed_point.activation_range(options.fused_activation_function, output)
    geometry = cache(partial(windows, options))

    def run(options: Pool2DOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        return [kernel(x, geometry(x.shape)).clip(low, high).astype(x.dtype)]

    return run


AVERAGE_POOL_2D = _pool("AVERAGE_POOL_2D", mean, 3, _rounded_mean, integers=SHARING, lowest=lowest.integers(2, 3))
MAX_POOL_2D = _pool("MAX_POOL_2D", _maximum, 3, _largest_integer, integers=SHARING, lowest=lowest.integers(2, 3))
L2_POOL_2D = _pool("L2_POOL_2D", _root_mean_square, 1)
