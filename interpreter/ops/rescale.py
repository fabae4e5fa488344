"""From sums of products to stored integers: a factor, a zero point and the range of the fused activation.

TensorFlow Lite has three ways to apply the factor. Sums of 32 bits are multiplied in fixed point and rounded twice,
sums of 64 bits (16-bit activations) in coarser fixed point and rounded once, and FULLY_CONNECTED's in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array
from litecl.interpreter.ops import fixed_point
from litecl.interpreter.schema import TensorType

Factor = Callable[[Array], Array]
"""Multiplies whole numbers, of an integer or a floating-point type, and returns new whole numbers."""

FactorOf = Callable[[Array, float], Factor]
"""A factor from real ones, one or one a channel, and the largest magnitude of what it multiplies."""

INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
"""Types of quantized activations."""


@dataclass(frozen=True, eq=False)
class Floor:
    """``floor(x * scale + 1/2 + nudge)``, where the nudge has the sign of ``x``: fixed point in exact float64.

    Rounding ``x * m`` to a whole number, halves up, and that divided by ``2**r``, halves away from zero, is rounding
    once after a nudge of ``2**-(r + 1)``, since floor(floor(a) / n) = floor(a / n). Products have at most 53 bits, of
    which up to ``fraction_bits`` are behind the point.
    """

    scale: Array
    nudge: Array
    fraction_bits: int

    def __call__(self, sums: Array) -> Array:
        """Whole numbers as float64."""
        x = self.before(sums, 0.5, nonnegative=False)
        return np.floor(x, out=x)

    def before(self, sums: Array, added: float, nonnegative: bool) -> Array:
        """What is left to be rounded down, with ``added``; ``nonnegative``: no matter what becomes of negative sums."""
        x = np.asarray(sums.astype(np.float64))
        x *= self.scale
        if nonnegative:
            x += self.nudge + added
            return x
        if self.nudge.any():
            x += np.copysign(self.nudge, x)
        x += added
        return x


@dataclass(frozen=True, eq=False)
class Rescale:
    """The last step of an integer kernel: factor, zero point, range of the activation, type."""

    factor: Factor
    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]

    def __call__(self, sums: Array) -> Array:
        """The stored integers for sums [..., outputs]."""
        if isinstance(self.factor, Floor):
            return self._floored(self.factor, sums)
        result = self.factor(sums)
        result += self.zero_point
        np.maximum(result, self.low, out=result)
        np.minimum(result, self.high, out=result)
        return result.astype(self.dtype)

    def _floored(self, factor: Floor, sums: Array) -> Array:
        # Moved to where all results are positive, the cast rounds down; the sign bit moves them back.
        base = -int(np.iinfo(self.dtype).min)
        added = self.zero_point + base
        if factor.fraction_bits + 8 * self.dtype.itemsize <= 53:
            x = factor.before(sums, added + 0.5, nonnegative=self.low >= self.zero_point)
        else:
            x = factor(sums)
            x += added
        np.clip(x, self.low + base, self.high + base, out=x)
        bits = x.astype(f"u{self.dtype.itemsize}")
        bits ^= bits.dtype.type(base)
        return bits.view(self.dtype)


def twice_rounded(factor: Array, largest: float = np.inf) -> Factor:
    """The factor of 32-bit sums."""
    multiplier = fixed_point.quantize_multiplier(factor)
    left, right = np.maximum(multiplier.shift, 0), np.maximum(-multiplier.shift, 0)
    # 22 bits times a 31-bit multiplier fit a float64, and so do fractions of 51 bits with what is added to them.
    if (largest * 2.0**left >= 2.0**22).any() or right.max() > 20:
        return lambda sums: fixed_point.multiply_by_quantized_multiplier(sums, multiplier)
    nudge = np.where(right > 0, 2.0 ** -(right + 1.0), 0.0)
    return Floor(multiplier.value * 2.0 ** (left - right - 31), nudge, 31 + int(right.max()))


def wide(factor: Array, largest: float = np.inf) -> Factor:
    """The factor of 64-bit sums."""
    multiplier = fixed_point.quantize_multiplier(factor)
    # 38 bits times 15 fit a float64, and so do fractions of 51 bits with what is added to them.
    if largest >= 2.0**38 or multiplier.shift.min() < -36:
        return lambda sums: fixed_point.multiply_wide_by_quantized_multiplier(sums, multiplier)
    reduced = fixed_point.reduced(multiplier)
    fraction_bits = 15 - int(multiplier.shift.min())
    return Floor(reduced * 2.0 ** (multiplier.shift - 15.0), np.zeros_like(reduced, np.float64), fraction_bits)


def real(factor: Array, largest: float = np.inf) -> Factor:
    """The factor of sums that are scaled in float64 and rounded once."""
    return lambda sums: fixed_point.round_half_away(np.asarray(np.multiply(sums, factor, dtype=np.float64)))
