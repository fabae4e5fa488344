"""From sums of products to stored integers: a factor, a zero point and the range of the fused activation.

TensorFlow Lite has three ways to apply the factor: sums of 32 bits are multiplied in fixed point and rounded twice,
sums of 64 bits (16-bit activations) in coarser fixed point and rounded once, and FULLY_CONNECTED's in float64.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import exact, fixed_point
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

Factor = Callable[[Array], Array]
"""Multiplies whole numbers, of an integer or a floating-point type, and returns new whole numbers."""

FactorOf = Callable[[Array, float], Factor]
"""Makes a factor from real ones, one or one per channel, and the largest magnitude of its operands."""

Rescale = Callable[[Array], Array]
"""Maps sums [..., outputs] to stored integers."""

INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
"""Types of quantized activations."""


@dataclass(frozen=True, eq=False)
class Floor:
    """``floor(x * scale + 1/2 + nudge)``, where the nudge has the sign of ``x``: fixed point in exact float64.

    Rounding ``x * m`` to a whole number, halves up, dividing that by ``2**r`` and rounding halves away from zero equals
    rounding once after a nudge of ``2**-(r + 1)``, since floor(floor(a) / n) = floor(a / n). Products have at most 53
    bits, up to ``fraction_bits`` of them after the point.
    """

    scale: Array
    nudge: Array
    fraction_bits: int

    def __call__(self, sums: Array) -> Array:
        """Return whole numbers as float64."""
        x = np.asarray(sums.astype(np.float64))
        x *= self.scale
        x += np.copysign(self.nudge, x)
        x += 0.5
        return np.floor(x, out=x)


@dataclass(frozen=True, eq=False)
class Nearest:
    """``x * scale`` in float64, rounded once, halves away from zero."""

    scale: Array

    def __call__(self, sums: Array) -> Array:
        """Return whole numbers as float64."""
        return fixed_point.round_half_away(np.asarray(np.multiply(sums, self.scale, dtype=np.float64)))


@dataclass(frozen=True, eq=False)
class Stored:
    """The form of stored results: zero point, the range that the activation leaves, and type."""

    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]


def bounded(factor_of: FactorOf, factors: Array, low: Array, high: Array, stored: Stored) -> Rescale:
    """Return the last step for sums between ``low`` and ``high``, one bound for all outputs or one for each.

    An output that is the same for all its sums, as with weights of zeros, needs no arithmetic. Its factor or bias is
    often so extreme that it would force all others to be rescaled with integers.
    """
    largest = np.maximum(np.abs(low), np.abs(high))
    factor = factor_of(factors, float(largest.max(initial=0)))
    exactly = rescale(factor, stored)
    if isinstance(factor, Floor | Nearest) or largest.max(initial=0) >= 2**31:
        return exactly
    bottom, top = exactly(np.stack([low, high]))
    # A result beyond int32 wraps, so that equal ends say nothing of the sums between.
    same = (bottom == top) & ((low == high) | (largest * factors < 2.0**30))
    others = np.broadcast_to(largest, same.shape)[~same]
    factor = factor_of(np.where(same, 0.5, factors), float(others.max(initial=0)))
    if not isinstance(factor, Floor):
        return exactly
    known = slice(None) if same.all() else np.flatnonzero(same)
    quickly, values = rescale(factor, stored), bottom[same]

    def run(sums: Array) -> Array:
        result = quickly(sums)
        result[..., known] = values
        return result

    return run


def rescale(factor: Factor, stored: Stored) -> Rescale:
    """Return the last step of an integer kernel, from sums [..., outputs] to stored values."""
    if isinstance(factor, Floor) and factor.fraction_bits + 8 * stored.dtype.itemsize <= 53:
        return _floored(factor, stored)
    if isinstance(factor, Nearest):
        return _nearest(factor, stored)
    zero_point, low, high = stored.zero_point, stored.low, stored.high

    def run(sums: Array) -> Array:
        result = factor(sums)
        result += zero_point
        np.maximum(result, low, out=result)
        np.minimum(result, high, out=result)
        return result.astype(stored.dtype)

    return run


def _floored(factor: Floor, stored: Stored) -> Rescale:
    # Shifted so that all results are positive, the cast rounds down; the sign bit shifts them back.
    base = -int(np.iinfo(stored.dtype).min)
    bits, sign = np.dtype(f"u{stored.dtype.itemsize}"), base
    low, high = exact.row(stored.low + base), exact.row(stored.high + base)
    # If negative sums are clamped away, their rounding does not matter.
    nonnegative = stored.low >= stored.zero_point
    nudge = None if nonnegative or not factor.nudge.any() else exact.row(factor.nudge)
    added = exact.row(stored.zero_point + base + 0.5 + (factor.nudge if nonnegative else 0.0))
    scale = exact.row(factor.scale)

    def run(sums: Array) -> Array:
        x = sums.astype(np.float64)
        x *= scale
        if nudge is not None:
            x += np.copysign(nudge, x)
        x += added
        x.clip(low, high, out=x)
        result = x.astype(bits)
        if sign:
            result ^= bits.type(sign)
        return result.view(stored.dtype)

    return run


def _nearest(factor: Nearest, stored: Stored) -> Rescale:
    low, high = exact.row(stored.low - stored.zero_point), exact.row(stored.high - stored.zero_point)
    nonnegative = stored.low >= stored.zero_point
    half, scale = fixed_point.HALF[8], exact.row(factor.scale)
    zero_point = np.array(stored.zero_point, np.int32)

    def run(sums: Array) -> Array:
        x = sums.astype(np.float64)
        x *= scale
        x += half if nonnegative else np.copysign(half, x)
        x.clip(low, high, out=x)
        result = x.astype(np.int32)  # rounds towards zero
        result += zero_point
        return result.astype(stored.dtype)

    return run


def twice_rounded(factor: Array, largest: float = np.inf) -> Factor:
    """Return the factor of 32-bit sums."""
    multiplier = fixed_point.quantize_multiplier(factor)
    left, right = np.maximum(multiplier.shift, 0), np.maximum(-multiplier.shift, 0)
    if largest >= 2.0**31:
        return lambda sums: fixed_point.multiply_by_quantized_multiplier(fixed_point.wrapped(sums), multiplier)
    # 22 bits times a 31-bit multiplier fit a float64, and so do 51-bit fractions with the constants added to them.
    if (largest * 2.0**left >= 2.0**22).any() or right.max() > 20:
        return lambda sums: fixed_point.multiply_by_quantized_multiplier(sums, multiplier)
    nudge = np.where(right > 0, 2.0 ** -(right + 1.0), 0.0)
    return Floor(multiplier.value * 2.0 ** (left - right - 31), nudge, 31 + int(right.max()))


def wide(factor: Array, largest: float = np.inf) -> Factor:
    """Return the factor of 64-bit sums."""
    multiplier = fixed_point.quantize_multiplier(factor)
    # 38 bits times 15 fit a float64, and so do 51-bit fractions with the constants added to them; results have 32 bits.
    extreme = multiplier.shift.min() < -36 or multiplier.shift.max() > 14
    if largest >= 2.0**38 or np.max(largest * factor) >= 2.0**31 or extreme:
        return lambda sums: fixed_point.multiply_wide_by_quantized_multiplier(sums, multiplier)
    reduced = fixed_point.reduced(multiplier)
    fraction_bits = 15 - int(multiplier.shift.min())
    return Floor(reduced * 2.0 ** (multiplier.shift - 15.0), np.zeros_like(reduced, np.float64), fraction_bits)


def real(factor: Array, largest: float = np.inf) -> Factor:
    """Return the factor of 64-bit sums that are scaled in float64 and rounded once."""
    return Nearest(factor)


def real_of_32_bits(factor: Array, largest: float = np.inf) -> Factor:
    """Return the same for 32-bit sums."""
    scale = Nearest(factor)
    return scale if largest < 2.0**31 else lambda sums: scale(fixed_point.wrapped(sums))
