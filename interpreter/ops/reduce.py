"""Reductions over any set of axes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import fixed_point, halves
from litecl.interpreter.arithmetic.fixed_point import Multiplier
from litecl.interpreter.arithmetic.quantized_unary import QUANTIZED, symmetric
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import PLAIN, REPLACED, SHARING, InFloat, Integers
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.kit.types import limits
from litecl.interpreter.op import Inputs, Lowest, Op, Run, Specs
from litecl.interpreter.schema import TensorType

Axes = tuple[int, ...]
Function = Callable[[Array, Axes, bool], Any]
Bound = Callable[[TensorSpec, TensorSpec], Function]


@dataclass(frozen=True)
class ReducerOptions:
    keep_dims: bool = False


def axes_of(values: list[int], rank: int) -> Axes:
    """Return the axes to reduce, each once, in order; a scalar has none, whatever is requested."""
    return tuple(sorted({require.axis(value, rank) for value in values})) if rank else ()


def reduced_shape(shape: Shape, axes: Axes, keep_dims: bool) -> Shape:
    """Return the shape after a reduction."""
    if keep_dims:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def kernel(function: Function) -> Run:
    """Return the kernel that applies ``function(x, axes, keep_dims)``."""

    def run(options: ReducerOptions, inputs: Inputs) -> list[Array]:
        x, axes = require.arrays(inputs, 2)
        resolved = axes_of(axes.ravel().tolist(), x.ndim)
        with np.errstate(all="ignore"):
            return [np.asarray(function(x, resolved, options.keep_dims), x.dtype)]

    return run


def _reducer(
    name: str,
    function: Callable[[Array, Axes, bool], Any],
    allowed: Collection[TensorType],
    versions: range = range(1, 2),
    stored: Collection[TensorType] = (),
    bound: Bound | None = None,
    lowest: Lowest | None = None,
    integers: Integers | InFloat | None = None,
) -> Op:
    """Return the operator that applies ``function(x, axes, keep_dims)``. bound: makes that of quantized inputs."""

    def infer(options: ReducerOptions, inputs: Specs) -> list[TensorSpec]:
        x, axes = require.present(inputs, 2)
        require.types_or_quantized(x, allowed, stored)
        values = require.integers(axes)
        if values is None:
            return [TensorSpec(x.type, None)]
        resolved = axes_of(values, len(x.static_shape))
        return [TensorSpec(x.type, reduced_shape(x.static_shape, resolved, options.keep_dims))]

    def bind(options: ReducerOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
        x, _ = require.present(inputs, 2)
        return kernel(bound(x, outputs[0])) if bound and require.is_quantized(x) else None

    op = Op(name, options=ReducerOptions, infer=infer, run=kernel(function), bind=bind, versions=versions)
    op = replace(op, lowest=lowest, integers=integers)
    return halves.also(op) if TensorType.FLOAT32 in allowed else op


def _sum(x: Array, axes: Axes, keep: bool) -> Any:
    return np.sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _mean(x: Array, axes: Axes, keep: bool) -> Any:
    count = np.prod([x.shape[axis] for axis in axes], dtype=np.int64)
    if x.dtype.kind == "f":
        return _sum(x, axes, keep) / x.dtype.type(count)
    total = np.sum(x, axis=axes, keepdims=keep, dtype=np.int64)
    return np.sign(total) * (np.abs(total) // count)  # C's division truncates


def _product(x: Array, axes: Axes, keep: bool) -> Any:
    return np.prod(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _extreme(ufunc: Any, x: Array, axes: Axes, keep: bool, start: Any) -> Any:
    """Reduce from the type's finite limit, ignoring NaN; without axes return the input unchanged."""
    return ufunc.reduce(x, axis=axes, keepdims=keep, initial=start) if axes else x


def _max(x: Array, axes: Axes, keep: bool) -> Any:
    return _extreme(np.fmax, x, axes, keep, limits(x.dtype)[0])


def _min(x: Array, axes: Axes, keep: bool) -> Any:
    return _extreme(np.fmin, x, axes, keep, limits(x.dtype)[1])


def _any(x: Array, axes: Axes, keep: bool) -> Any:
    return np.any(x, axis=axes, keepdims=keep)


def _all(x: Array, axes: Axes, keep: bool) -> Any:
    return np.all(x, axis=axes, keepdims=keep)


def _count(x: Array, axes: Axes) -> int:
    return int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))


def mean_factor(x: TensorSpec, output: TensorSpec, count: int) -> Multiplier:
    """Return the factor from the sum of ``count`` elements to their mean on the output's scale (QuantizedMeanOrSum)."""
    value, shift = fixed_point.quantize_multiplier(fixed_point.scale_of(x) / fixed_point.scale_of(output))
    bits = min(count.bit_length() - 1, 32, 31 + int(shift))
    return Multiplier((value << bits) // count, shift - bits)


def quantized_sum(mean: bool) -> Bound:
    """Return the sum or the mean on the output's scale (QuantizedMeanOrSum)."""

    def bound(x: TensorSpec, output: TensorSpec) -> Function:
        symmetric(x, output)
        x_zero, zero = fixed_point.zero_point_of(x), fixed_point.zero_point_of(output)
        low, high = limits(output.dtype)

        def function(values: Array, axes: Axes, keep: bool) -> Array:
            count = _count(values, axes)
            total = np.asarray(np.sum(values, axis=axes, keepdims=keep, dtype=np.int64) - x_zero * count)
            if not values.size:
                return np.zeros_like(total)
            factor = mean_factor(x, output, count if mean else 1)
            return np.asarray(np.clip(fixed_point.multiply_by_quantized_multiplier(total, factor) + zero, low, high))

        return function

    return bound


def _signed_sum(x: TensorSpec, output: TensorSpec) -> Function:
    """Sum UINT8 like TFLite's reference kernel, which lacks signed integers: these sum in float32, as in the other."""
    if output.type == TensorType.UINT8:
        return quantized_sum(mean=False)(x, output)
    symmetric(x, output)
    scale = np.float32(fixed_point.scale_of(x)) / np.float32(fixed_point.scale_of(output))
    bias = np.float32(-fixed_point.zero_point_of(x)) * scale
    zero = np.float32(fixed_point.zero_point_of(output))
    low, high = limits(output.dtype)

    def function(x: Array, axes: Axes, keep: bool) -> Array:
        total = np.asarray(np.sum(x, axis=axes, keepdims=keep, dtype=np.int64)).astype(np.float32)
        steps = fixed_point.round_half_away(total * scale + bias * np.float32(_count(x, axes))) + zero
        return np.asarray(np.clip(steps, low, high)) if x.size else np.zeros_like(total)

    return function


def _quantized_product(x: TensorSpec, output: TensorSpec) -> Function:
    """Return the product, rescaled at every step by a root of the output's scale (QuantizedReduceProd)."""
    symmetric(x, output)
    x_zero, zero = fixed_point.zero_point_of(x), fixed_point.zero_point_of(output)
    x_scale, scale = fixed_point.scale_of(x), fixed_point.scale_of(output)
    low, high = limits(output.dtype)

    def function(x: Array, axes: Axes, keep: bool) -> Array:
        count = _count(x, axes)
        shape = reduced_shape(x.shape, axes, keep)
        if not x.size:
            return np.zeros(shape, np.int64)
        factor = fixed_point.quantize_multiplier(x_scale / scale ** (1.0 / count))
        rest = tuple(axis for axis in range(x.ndim) if axis not in axes)
        terms = x.transpose(*axes, *rest).reshape(count, -1).astype(np.int64) - x_zero
        product = terms[0]
        for term in (*terms[1:], 1):
            scaled = fixed_point.multiply_wide_by_quantized_multiplier(product * term, factor)
            product = scaled.astype(np.int32).astype(np.int64)  # wraps, as TFLite's 32-bit result does
        return np.asarray(np.clip(product + zero, low, high)).reshape(shape)

    return function


def _quantized_extreme(function: Function) -> Bound:
    """Require one scale for input and output, so that the integers compare like the numbers."""

    def bound(x: TensorSpec, output: TensorSpec) -> Function:
        same = fixed_point.scale_of(x) == fixed_point.scale_of(output)
        if not same or fixed_point.zero_point_of(x) != fixed_point.zero_point_of(output):
            raise ModelError(f"expected the quantization of {x.name!r} for the output {output.name!r}")
        return function

    return bound


_INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_SUMMED = (*types.NUMBER, TensorType.BOOL)
_EXTREMES = (*_SUMMED, *_INTEGERS)
_SIGNED = (TensorType.INT8, TensorType.INT16)

SUM = _reducer("SUM", _sum, _SUMMED, range(1, 3), QUANTIZED, _signed_sum, integers=REPLACED, lowest=lowest.integers(2))
MEAN = _reducer(
    "MEAN",
    _mean,
    types.NUMBER,
    range(1, 4),
    QUANTIZED,
    quantized_sum(mean=True),
    integers=PLAIN,
    lowest=lowest.integers(2, 3),
)
REDUCE_PROD = _reducer(
    "REDUCE_PROD",
    _product,
    _EXTREMES,
    range(1, 3),
    _SIGNED,
    _quantized_product,
    integers=PLAIN,
    lowest=lowest.integers(2, 2),
)
REDUCE_MAX = _reducer(
    "REDUCE_MAX",
    _max,
    _EXTREMES,
    range(1, 4),
    QUANTIZED,
    _quantized_extreme(_max),
    integers=SHARING,
    lowest=lowest.integers(2, 3),
)
REDUCE_MIN = _reducer(
    "REDUCE_MIN",
    _min,
    _EXTREMES,
    range(1, 4),
    QUANTIZED,
    _quantized_extreme(_min),
    integers=SHARING,
    lowest=lowest.integers(2, 3),
)
REDUCE_ANY = _reducer("REDUCE_ANY", _any, types.BOOL)
REDUCE_ALL = _reducer("REDUCE_ALL", _all, types.BOOL)
