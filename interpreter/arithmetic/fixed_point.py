"""TensorFlow Lite's fixed-point arithmetic on whole arrays: real factors as a 31-bit multiplier and a shift.

The formulas are those of ``kernels/internal/common.cc`` and ``quantization_util.cc`` in LiteRT's published packages,
whose build rounds twice. Inputs are int64 arrays (any integer array will do), and results are int64.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from litecl.interpreter.errors import ModelError, UnsupportedOp
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.kit import types
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_INT32 = np.iinfo(np.int32)
HALF = {4: np.asarray(np.nextafter(np.float32(0.5), np.float32(0))), 8: np.asarray(np.nextafter(0.5, 0.0))}
"""Slightly less than a half, by the size of a float: values just below a half must not round up."""

# Bounds of the activations that integer kernels may fuse, as real numbers.
_BOUNDS: dict[ActivationFunctionType, tuple[float | None, float | None]] = {
    ActivationFunctionType.NONE: (None, None),
    ActivationFunctionType.RELU: (0.0, None),
    ActivationFunctionType.RELU6: (0.0, 6.0),
    ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
}


class Multiplier(NamedTuple):
    """``value * 2**(shift - 31)``, where ``value`` is 0 or in [2**30, 2**31): scalars, or one element per channel."""

    value: Array
    shift: Array


def quantize_multiplier(factor: npt.ArrayLike) -> Multiplier:
    """Return fixed-point factors, each rounded to 31 bits (QuantizeMultiplier); 0 for infinite ones, as on x86."""
    factor = np.asarray(factor, np.float64)
    is_finite = np.isfinite(factor)
    mantissa, shift = np.frexp(np.where(is_finite, factor, 0))
    value = round_half_away(mantissa * 2.0**31).astype(np.int64)
    carried = value == 1 << 31
    shift = shift.astype(np.int64) + carried
    value = np.where(carried, value >> 1, value)
    lost = (shift < -31) | ~is_finite
    return Multiplier(np.where(lost, 0, value), np.where(lost, 0, shift))


def multiply_by_quantized_multiplier(x: Array, multiplier: Multiplier) -> Array:
    """Return ``x`` times the factor for 32-bit ``x``, rounded once to 32 bits and once more by the right shift.

    Shifts to the left count modulo 32, as in OpenCL C and in the reference kernels on x86.
    """
    left, right = np.maximum(multiplier.shift, 0) % 32, np.maximum(-multiplier.shift, 0)
    x = x.astype(np.int64)
    if left.any():
        x = wrapped(x << left)
    return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(x, multiplier.value), right)


def multiply_wide_by_quantized_multiplier(x: Array, multiplier: Multiplier) -> Array:
    """Return ``x`` times 15 bits of the factor, for 48-bit ``x``: the sums of 16-bit activations.

    Shifts count modulo 64, as on x86, where a factor of 2**15 or more makes them negative.
    """
    total = 15 - multiplier.shift
    half = np.int64(1) << ((total - 1) & 63)
    return wrapped((x.astype(np.int64) * reduced(multiplier) + half) >> (total & 63))


def wrapped(x: Array) -> Array:
    """Return the lower 32 bits of whole numbers, as int64, which TensorFlow Lite's int32 keeps."""
    return x.astype(np.int64).astype(np.int32).astype(np.int64)


def reduced(multiplier: Multiplier) -> Array:
    """Return the 15 bits of a multiplier's value that multiply 64-bit sums."""
    return np.where(multiplier.value < 0x7FFF0000, (multiplier.value + (1 << 15)) >> 16, 0x7FFF)


def saturating_rounding_doubling_high_mul(a: Array, b: npt.ArrayLike, bits: int = 32) -> Array:
    """Return the upper half of ``2 * a * b``, halves rounded up, for operands of ``bits`` bits (gemmlowp)."""
    product = np.asarray(np.multiply(a, b, dtype=np.int64))
    product += 1 << (bits - 2)
    product >>= bits - 1
    result: Array = np.minimum(product, (1 << (bits - 1)) - 1)
    return result


def rounding_divide_by_pot(x: Array, exponent: npt.ArrayLike) -> Array:
    """Return ``x / 2**exponent``, halves rounded away from zero (gemmlowp)."""
    power = np.asarray(exponent, np.int64)
    half = (np.int64(1) << power) >> 1
    x = np.asarray(x, np.int64)
    # The sign bits are -1 where x is negative, which must not count if nothing is divided.
    result: Array = (x + np.maximum(half + (x >> 63), 0)) >> power
    return result


def saturating_multiply_by_pot(x: Array, exponent: int, bits: int = 32) -> Array:
    """Return ``x * 2**exponent``, saturated to ``bits`` bits; a negative exponent rounds halves away from zero."""
    if exponent < 0:
        return rounding_divide_by_pot(x, -exponent)
    limit = 1 << (bits - 1)
    result: Array = np.minimum(np.maximum(x << exponent, -limit), limit - 1)
    return result


def round_half_away(x: Array) -> Array:
    """Return the nearest integers, halves away from zero, like ``std::round``; in the type of ``x``."""
    result = np.asarray(np.copysign(HALF[x.dtype.itemsize], x))
    result += x
    np.trunc(result, out=result)
    return result


def affine(spec: TensorSpec) -> Quantization:
    """Return a tensor's quantization. Raises ModelError if it has none."""
    if spec.quantization is None or not spec.quantization.scale.size:
        raise ModelError(f"expected quantization parameters of {spec.name!r} ({spec.type.name}), got none")
    return spec.quantization


def scale_of(spec: TensorSpec) -> np.float64:
    """Return the scale of a tensor that has only one."""
    return np.float64(np.asarray(affine(spec).scale, np.float32).reshape(-1)[0])


def scales_of(spec: TensorSpec) -> Array:
    """Return the scales of a tensor as float64, [1] or one per channel."""
    return np.asarray(affine(spec).scale, np.float32).reshape(-1).astype(np.float64)


def zero_point_of(spec: TensorSpec) -> int:
    """Return the zero point of a tensor that has only one."""
    zero_point = affine(spec).zero_point
    return int(zero_point.reshape(-1)[0]) if zero_point.size else 0


def activation_range(function: ActivationFunctionType, output: TensorSpec) -> tuple[int, int]:
    """Return the integers of the output that a fused activation allows (CalculateActivationRangeQuantized).

    Raises UnsupportedOp for an activation that does not clamp, which TensorFlow Lite leaves out silently.
    """
    if function not in _BOUNDS:
        raise UnsupportedOp(f"no kernel for fused {getattr(function, 'name', function)} of {output.type.name}")
    if output.type not in (TensorType.INT8, TensorType.UINT8, TensorType.INT16):
        raise UnsupportedOp(f"expected an output of type INT8, UINT8 or INT16, got {output.type.name}")
    low, high = types.integer_limits(output.type)
    least, most = _BOUNDS[function]
    if least is not None:
        low = max(low, _quantized(least, output))
    if most is not None:
        high = min(high, _quantized(most, output))
    return low, high


def _quantized(value: float, output: TensorSpec) -> int:
    steps = round_half_away(np.asarray(np.float32(value) / np.float32(scale_of(output))))
    return zero_point_of(output) + int(np.clip(steps, _INT32.min, _INT32.max))
