"""Functions of two quantized inputs, bit for bit as TFLite's reference kernels (add.cc, mul.h, div.h, comparisons.cc).

Each takes the operator's options and the specs of inputs and output, and returns the kernel.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import fixed_math, fixed_point
from litecl.interpreter.arithmetic.fixed_point import Multiplier, scale_of, zero_point_of
from litecl.interpreter.arithmetic.quantized_unary import BYTES, QUANTIZED, symmetric
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Run
from litecl.interpreter.schema import ActivationFunctionType, TensorType

Bound = Callable[[Any, TensorSpec, TensorSpec, TensorSpec], Run]

__all__ = [
    "BYTES",
    "QUANTIZED",
    "Bound",
    "add",
    "compare",
    "divide",
    "multiply",
    "powers_of_two",
    "squared_difference",
    "subtract",
]

# The least number of elements for which a table of all 65536 pairs of bytes pays.
_MANY = 1 << 14

_multiplied = fixed_point.multiply_by_quantized_multiplier


def _kernel(
    options: Any,
    specs: tuple[TensorSpec, TensorSpec],
    output: TensorSpec,
    function: Callable[[Array, Array], Array],
    total: bool = True,
) -> Run:
    """Return a kernel: ``function`` of the elements minus their zero points, plus the output's, clamped to its range.

    total: whether the function accepts all pairs of elements; large arrays of bytes then go through a table of them.
    """
    activation = getattr(options, "fused_activation_function", ActivationFunctionType.NONE)
    low, high = fixed_point.activation_range(activation, output)
    a_zero, b_zero = (zero_point_of(spec) for spec in specs)
    zero = zero_point_of(output)

    def compute(a: Array, b: Array) -> Array:
        result = function(a.astype(np.int64) - a_zero, b.astype(np.int64) - b_zero) + zero
        return np.asarray(np.clip(result, low, high), output.dtype)

    @cache
    def pairs() -> Array:
        every = [np.arange(256).astype(np.uint8).view(spec.dtype) for spec in specs]
        return compute(every[0][:, None], every[1]).reshape(-1)

    bytes_only = total and all(spec.dtype.itemsize == 1 for spec in specs)

    def run(options: object, inputs: Inputs) -> list[Array]:
        a, b = require.arrays(inputs, 2)
        if bytes_only and max(a.size, b.size) >= _MANY:
            return [pairs()[a.view(np.uint8).astype(np.intp) * 256 + b.view(np.uint8)]]
        return [compute(a, b)]

    return run


def _linear(sign: int) -> Bound:
    """Return the sum or the difference, on a common scale of both inputs."""

    def bound(options: Any, a: TensorSpec, b: TensorSpec, output: TensorSpec) -> Run:
        symmetric(a, b, output)
        powers = powers_of_two(a, b, output)
        if a.type == TensorType.INT16 and options.pot_scale_int16 and powers is not None:
            return _shifted(options, (a, b), output, powers, sign)
        bits = 15 if a.type == TensorType.INT16 else 20
        largest = 2 * max(scale_of(a), scale_of(b))
        factors = [fixed_point.quantize_multiplier(scale_of(spec) / largest) for spec in (a, b)]
        last = fixed_point.quantize_multiplier(largest / (float(1 << bits) * scale_of(output)))

        def function(x: Array, y: Array) -> Array:
            left, right = (_multiplied(v << bits, f) for v, f in zip((x, y), factors, strict=True))
            return _multiplied(left + sign * right, last)

        return _kernel(options, (a, b), output, function)

    return bound


def powers_of_two(*specs: TensorSpec) -> list[int] | None:
    """Return the binary logarithms of the scales, if all of them are whole (CheckedLog2)."""
    logs = [math.log2(scale_of(spec)) for spec in specs]
    near = all(abs(log - round(log)) < 1e-3 for log in logs)
    return [round(log) for log in logs] if near else None


def _shifted(
    options: Any, specs: tuple[TensorSpec, TensorSpec], output: TensorSpec, powers: list[int], sign: int
) -> Run:
    """Return the kernel for 16-bit inputs: one has the output's scale, the other a smaller power of two."""
    shifts = [powers[2] - powers[0], powers[2] - powers[1]]
    if min(shifts) != 0:
        raise ModelError("expected one INT16 input with the output's scale and none with a larger one")
    limits = np.iinfo(np.int16)

    def function(x: Array, y: Array) -> Array:
        left, right = (fixed_point.rounding_divide_by_pot(v, s) for v, s in zip((x, y), shifts, strict=True))
        return np.asarray(np.clip(left + sign * right, limits.min, limits.max))

    return _kernel(options, specs, output, function)


add = _linear(1)
subtract = _linear(-1)


def multiply(options: Any, a: TensorSpec, b: TensorSpec, output: TensorSpec) -> Run:
    """Return the product, rescaled by one factor."""
    x_scale, y_scale, scale = (np.float32(scale_of(spec)) for spec in (a, b, output))
    return multiply_by_factor(options, a, b, output, float(x_scale * y_scale / scale))  # in float32, as in TFLite


def multiply_by_factor(options: Any, a: TensorSpec, b: TensorSpec, output: TensorSpec, real: float) -> Run:
    """Return the product times a real factor."""
    if output.type == TensorType.INT32:
        return _products(a, b)
    symmetric(a, b, output)
    factor = fixed_point.quantize_multiplier(real)
    return _kernel(options, (a, b), output, lambda x, y: _multiplied(x * y, factor))


def _products(a: TensorSpec, b: TensorSpec) -> Run:
    zeros = zero_point_of(a), zero_point_of(b)

    def run(options: object, inputs: Inputs) -> list[Array]:
        x, y = require.arrays(inputs, 2)
        return [np.asarray((x.astype(np.int64) - zeros[0]) * (y.astype(np.int64) - zeros[1]), np.int32)]

    return run


def divide(options: Any, a: TensorSpec, b: TensorSpec, output: TensorSpec) -> Run:
    """Return the quotient, by a reciprocal in fixed point."""
    x_scale, y_scale, scale = (np.float32(scale_of(spec)) for spec in (a, b, output))
    return divide_by_factor(options, a, b, output, float(x_scale / (y_scale * scale)))  # in float32, as in TFLite


def divide_by_factor(options: Any, a: TensorSpec, b: TensorSpec, output: TensorSpec, real: float) -> Run:
    """Return the quotient times a real factor."""
    symmetric(a, b, output)
    factor = fixed_point.quantize_multiplier(real)

    def function(x: Array, y: Array) -> Array:
        if not np.all(y):
            raise ModelError("division by 0")
        x, y = np.where(y < 0, -x, x), np.abs(y)
        inverse, bits = fixed_math.reciprocal(y, 31)
        headroom = fixed_math.leading_zeros(np.where(x < 0, ~x, x)) - 1
        quotient = fixed_point.saturating_rounding_doubling_high_mul(x << headroom, inverse)
        scaled = fixed_point.saturating_rounding_doubling_high_mul(quotient, factor.value)
        return _shifted_right(scaled, bits + headroom - factor.shift)

    return _kernel(options, (a, b), output, function, total=False)


def _shifted_right(x: Array, exponent: Array) -> Array:
    """Return ``x / 2**exponent``; beyond 0 to 31 bits as TFLite's builds do, whose processor shifts modulo 32."""
    far = (x >> (exponent & 31)) + (x >= 0)
    within = np.minimum(np.maximum(exponent, 0), 31)
    return np.where(within == exponent, fixed_point.rounding_divide_by_pot(x, within), far)


def squared_difference(options: Any, a: TensorSpec, b: TensorSpec, output: TensorSpec) -> Run:
    """Return the squared difference: as SUB, with inputs shifted up by 7 bits, and squared."""
    largest = 2 * max(scale_of(a), scale_of(b))
    factors = [fixed_point.quantize_multiplier(scale_of(spec) / largest) for spec in (a, b)]
    last = fixed_point.quantize_multiplier(largest * largest / ((1 << 14) * scale_of(output)))

    def function(x: Array, y: Array) -> Array:
        left, right = (_multiplied(v << 7, f) for v, f in zip((x, y), factors, strict=True))
        return _multiplied((left - right) ** 2, last)

    return _kernel(options, (a, b), output, function)


def compare(ufunc: Callable[[Array, Array], Any]) -> Bound:
    """Return a comparison of the real numbers, each in fixed point on its own scale."""

    def bound(options: Any, a: TensorSpec, b: TensorSpec, output: TensorSpec) -> Run:
        factors: list[Multiplier] = [fixed_point.quantize_multiplier(scale_of(spec)) for spec in (a, b)]
        zeros = [zero_point_of(spec) for spec in (a, b)]

        def run(options: object, inputs: Inputs) -> list[Array]:
            left, right = (
                _multiplied((x.astype(np.int64) - zero) << 8, factor)
                for x, zero, factor in zip(require.arrays(inputs, 2), zeros, factors, strict=True)
            )
            return [np.asarray(ufunc(left, right), np.bool_)]

        return run

    return bound
