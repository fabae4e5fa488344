"""From sums of products to stored integers: a factor, a zero point and the range of the fused activation.

TensorFlow Lite has three ways to apply the factor. Sums of 32 bits are multiplied in fixed point and rounded twice,
sums of 64 bits (16-bit activations) in coarser fixed point, and FULLY_CONNECTED's in float64.
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

INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
"""Types of quantized activations."""

# Below this magnitude a sum times a 31-bit multiplier fits the 53 bits of a float64.
_EXACT = 2.0**22


@dataclass(frozen=True, eq=False)
class Rescale:
    """The last step of an integer kernel."""

    factor: Factor
    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]

    def __call__(self, sums: Array) -> Array:
        """The stored integers for sums [..., outputs]."""
        result = self.factor(sums)
        result += self.zero_point
        np.maximum(result, self.low, out=result)
        np.minimum(result, self.high, out=result)
        return result.astype(self.dtype)


def twice_rounded(factor: Array, largest: float = np.inf) -> Factor:
    """The factor of 32-bit sums that are at most ``largest`` in magnitude."""
    multiplier = fixed_point.quantize_multiplier(factor)
    left, right = np.maximum(multiplier.shift, 0), np.maximum(-multiplier.shift, 0)
    if (largest * 2.0**left >= _EXACT).any():
        return lambda sums: fixed_point.multiply_by_quantized_multiplier(sums, multiplier)
    first, second = multiplier.value * 2.0 ** (left - 31), 2.0**-right

    def scale(sums: Array) -> Array:
        """What ``multiply_by_quantized_multiplier`` computes, in float64."""
        x = np.asarray(np.multiply(sums, first, dtype=np.float64))
        x += 0.5
        np.floor(x, out=x)
        x *= second
        return fixed_point.round_half_away(x)

    return scale


def wide(factor: Array, largest: float = np.inf) -> Factor:
    """The factor of 64-bit sums."""
    multiplier = fixed_point.quantize_multiplier(factor)
    return lambda sums: fixed_point.multiply_wide_by_quantized_multiplier(sums, multiplier)


def real(factor: Array, largest: float = np.inf) -> Factor:
    """The factor of sums that are scaled in float64 and rounded once."""
    return lambda sums: fixed_point.round_half_away(np.asarray(np.multiply(sums, factor, dtype=np.float64)))
