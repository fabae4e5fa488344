"""Functions of one quantized input, bit for bit as TFLite's reference kernels (activations.cc, elementwise.cc, neg.cc).

Each takes the operator's options and the specs of input and output, and returns the kernel.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import fixed_math, fixed_point, lookup
from litecl.interpreter.arithmetic.fixed_point import Multiplier, scale_of, zero_point_of
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Run
from litecl.interpreter.schema import TensorType

Bound = Callable[[Any, TensorSpec, TensorSpec], Run]
Ratio = Callable[..., Multiplier]
"""``real_ratio`` or ``exact_ratio``."""

QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
BYTES = (TensorType.INT8, TensorType.UINT8)
SIGNED = (TensorType.INT8, TensorType.INT16)


def real_ratio(x: TensorSpec, output: TensorSpec, factor: float = 1.0) -> Multiplier:
    """Return ``scale of x * factor / scale of the output``, rounded to float32 as in TFLite's float arithmetic."""
    scale = np.float32(scale_of(x)) * np.float32(factor)
    return fixed_point.quantize_multiplier(np.float32(scale / np.float32(scale_of(output))))


def exact_ratio(x: TensorSpec, output: TensorSpec, factor: float = 1.0) -> Multiplier:
    """Return the same in float64, as tflite-micro does."""
    return fixed_point.quantize_multiplier(scale_of(x) * np.float64(np.float32(factor)) / scale_of(output))


def symmetric(*specs: TensorSpec) -> None:
    """Raise ModelError if a 16-bit tensor has a zero point."""
    for spec in specs:
        if spec.type == TensorType.INT16 and zero_point_of(spec):
            raise ModelError(f"expected zero point 0 of {spec.name!r} (INT16), got {zero_point_of(spec)}")


def elementwise(function: Callable[[Array], Array], output: TensorSpec) -> Run:
    """Return a kernel that applies ``function`` to int64 elements and clips the results to the output's type."""
    low, high = types.limits(output.dtype)

    def run(options: object, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        return [np.asarray(np.clip(function(x.astype(np.int64)), low, high), output.dtype)]

    return run


def table(function: Callable[[Any, Array], Array]) -> Bound:
    """Return a kernel that looks up a function of the options and of real numbers."""

    def bound(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
        symmetric(x, output)
        return lookup.bind(lambda values: function(options, values), x, output)

    return bound


def relu(low: float, high: float, ratio: Ratio = real_ratio) -> Bound:
    """Return a clamp between real numbers."""

    def bound(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
        symmetric(x, output)
        multiplier = ratio(x, output)
        x_zero, zero = zero_point_of(x), zero_point_of(output)
        scale = np.float32(scale_of(output))
        ends = np.array([low, high], np.float32) / scale
        least, most = (end if np.isinf(end) else zero + int(fixed_point.round_half_away(end)) for end in ends)
        return elementwise(
            lambda q: np.clip(zero + fixed_point.multiply_by_quantized_multiplier(q - x_zero, multiplier), least, most),
            output,
        )

    return bound


def leaky_relu(options: Any, x: TensorSpec, output: TensorSpec, ratio: Ratio = real_ratio) -> Run:
    """Return the kernel: one factor per sign; a negative slope negates after rounding (QuantizeLeakyRelu)."""
    symmetric(x, output)
    positive, negative = ratio(x, output), ratio(x, output, abs(options.alpha))
    sign = -1 if options.alpha < 0 else 1
    x_zero, zero = zero_point_of(x), zero_point_of(output)

    def function(q: Array) -> Array:
        value = q - x_zero
        return zero + np.where(
            value >= 0,
            fixed_point.multiply_by_quantized_multiplier(value, positive),
            sign * fixed_point.multiply_by_quantized_multiplier(value, negative),
        )

    return elementwise(function, output)


def hard_swish(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
    """Return the kernel, in 16-bit arithmetic throughout (reference/hard_swish.h)."""
    fine = np.float32(1 / 128) * np.float32(scale_of(x))
    out_value, out_shift = _multiplier16(float(fine / np.float32(scale_of(output))))
    value, shift = _multiplier16(float(fine / np.float32(3 / 32768)))
    if out_shift > 0:
        raise ModelError("expected an output scale of at least 1/128 of the input's scale")
    x_zero, zero = zero_point_of(x), zero_point_of(output)
    low, high = types.limits(np.dtype(np.int16))
    high_mul = fixed_point.saturating_rounding_doubling_high_mul

    def function(q: Array) -> Array:
        wide = (q - x_zero) << 7
        scaled = high_mul(wide, out_value, 16)
        gate = np.clip(wide << max(shift - 1, 0), low, high)
        gate = high_mul(gate, value, 16)
        gate = np.clip(gate << 1, low, high) if shift > 0 else _divided_16(gate, -shift)
        product = ((gate + (1 << 15)) >> 1) * scaled
        product = np.sign(product) * (np.abs(product) >> 15)
        return _divided_16(product, -out_shift) + zero

    return elementwise(function, output)


def _divided_16(x: Array, exponent: int) -> Array:
    """Return 16-bit ``x / 2**exponent``; beyond 15 bits gemmlowp's mask of the remainder overflows, to -1."""
    return fixed_point.rounding_divide_by_pot(x, exponent) if exponent < 16 else np.where(x < 0, -1, 1)


def _multiplier16(factor: float) -> tuple[int, int]:
    """Return a 16-bit multiplier (DownScaleInt32ToInt16Multiplier) and its shift."""
    multiplier = fixed_point.quantize_multiplier(np.float32(factor))
    value = int(multiplier.value)
    return (0x7FFF if value >= 0x7FFF8000 else (value + (1 << 15)) >> 16), int(multiplier.shift)


def logistic(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
    """Return the kernel: a table for 8 bits, interpolation for 16."""
    _fixed_scale(output, 1 / (256 if x.type in BYTES else 32768))
    if x.type in BYTES:
        return lookup.bind(lambda v: np.float32(1) / (np.float32(1) + lookup.exp(-v)), x, output)
    return _interpolated(fixed_math.logistic16, x, output, (0,))


def tanh(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
    """Return the kernel: a table for 8 bits, interpolation for 16."""
    if x.type in BYTES:
        return lookup.bind(lookup.in_double(np.tanh), x, output)
    _fixed_scale(output, 1 / 32768)
    return _interpolated(fixed_math.tanh16, x, output, (0, 1))


def _fixed_scale(output: TensorSpec, expected: float) -> None:
    if scale_of(output) != expected:
        raise ModelError(f"expected an output scale of 1/{1 / expected:.0f}, got {scale_of(output):g}")


def _interpolated(function: Callable[[Array], Array], x: TensorSpec, output: TensorSpec, exact: tuple[int, ...]) -> Run:
    """Bring inputs to units of 1/12288, without rounding if their scale is 2**(e - 12) for an e of ``exact``."""
    symmetric(x, output)
    scale = float(scale_of(x))
    power = round(math.log2(scale)) if scale > 0 else 0
    if abs(math.log2(scale) - power) < 1e-3 and 12 + power in exact:
        return elementwise(lambda q: function(q * (3 << (12 + power))), output)
    multiplier, shift = scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier, shift = multiplier * 2.0, shift + 1
    rounding = 1 << shift >> 1
    return elementwise(lambda q: function(fixed_point.wrapped(q * int(multiplier) + rounding) >> shift), output)


def absolute(options: Any, x: TensorSpec, output: TensorSpec, ratio: Ratio = real_ratio) -> Run:
    """Return the kernel, which rescales if the scales differ."""
    symmetric(x, output)
    x_zero, zero = zero_point_of(x), zero_point_of(output)
    if scale_of(x) == scale_of(output):
        return elementwise(lambda q: np.abs(q - x_zero) + zero, output)
    multiplier = ratio(x, output)
    return elementwise(
        lambda q: fixed_point.multiply_by_quantized_multiplier(np.abs(q - x_zero), multiplier) + zero, output
    )


def sqrt(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
    """Return the kernel, which computes in float32 and rounds down."""
    symmetric(x, output)
    x_zero, zero = zero_point_of(x), zero_point_of(output)
    x_scale, scale = np.float32(scale_of(x)), np.float32(scale_of(output))

    def function(q: Array) -> Array:
        value = _not_negative(q - x_zero)
        return np.asarray(np.floor(np.sqrt(value.astype(np.float32) * x_scale) / scale) + zero)

    return elementwise(function, output)


def rsqrt(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
    """Return the kernel: Newton's iteration for 8 bits, a table for 16."""
    symmetric(x, output)
    if x.type == TensorType.INT16:
        largest = np.float32(32767) * np.float32(scale_of(output))
        return lookup.bind(lambda v: np.where(v <= 0, largest, 1 / np.sqrt(v)), x, output)
    root = np.sqrt(np.float32(scale_of(x))) * np.float32(scale_of(output))
    return newton_rsqrt(x, output, 1.0 / float(root))


def newton_rsqrt(x: TensorSpec, output: TensorSpec, factor: float) -> Run:
    """Return the kernel of Newton's iteration, by the factor from it to steps of the output."""
    multiplier = fixed_point.quantize_multiplier(factor)
    x_zero, zero = zero_point_of(x), zero_point_of(output)
    most = types.limits(output.dtype)[1]

    def function(q: Array) -> Array:
        value = _not_negative(q - x_zero)
        inverse, shift = fixed_math.inverse_sqrt(np.maximum(value, 1))
        data = fixed_point.multiply_by_quantized_multiplier(np.ones_like(value), Multiplier(inverse, 20 - shift))
        scaled = fixed_point.multiply_by_quantized_multiplier(data, Multiplier(multiplier.value, multiplier.shift - 20))
        return np.where(value == 0, most, scaled + zero)

    return elementwise(function, output)


def _not_negative(value: Array) -> Array:
    if np.any(value < 0):
        raise ModelError(f"expected elements of at least 0, got {int(value.min())} steps below")
    return value


def log(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
    """Return a table; the logarithm of a number that is not positive is the smallest output."""
    symmetric(x, output)
    least = types.limits(output.dtype)[0] - zero_point_of(output)
    bottom = np.float32(least) * np.float32(scale_of(output))
    logarithm = lookup.in_double(np.log)
    return lookup.bind(lambda v: np.where(v <= 0, bottom, logarithm(np.maximum(v, 1e-38))), x, output)
