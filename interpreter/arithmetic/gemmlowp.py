"""gemmlowp's elementary functions in fixed point (fixedpoint/fixedpoint.h), on int64 arrays of raw values.

A raw value of ``bits`` bits with ``integer`` integer bits represents ``raw / 2**(bits - 1 - integer)``. Results have no
integer bits: they represent numbers of [-1, 1).
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from litecl.interpreter.arithmetic.fixed_point import (
    Multiplier,
    rounding_divide_by_pot,
    saturating_multiply_by_pot,
    saturating_rounding_doubling_high_mul,
)
from litecl.interpreter.graph import Array

# exp(-2**k) for k from -2 to 4, as 32-bit raw values.
_EXP_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def exp_on_negative_values(x: Array, integer: int, bits: int = 32) -> Array:
    """Return ``exp(x)`` for ``x <= 0``."""
    fractional = bits - 1 - integer
    quarter = 1 << (fractional - 2)
    part = (x & (quarter - 1)) - quarter
    result = _exp_of_last_quarter(saturating_multiply_by_pot(part, integer, bits), bits)
    remainder = part - x
    for power, raw in enumerate(_EXP_POWERS, start=-2):
        if integer > power:
            factor = _constant(raw, bits)
            chosen = (remainder & (1 << (fractional + power))) != 0
            result = np.where(chosen, saturating_rounding_doubling_high_mul(result, factor, bits), result)
    if integer > 5:
        result = np.where(x < -(32 << fractional), 0, result)
    return np.where(x == 0, _one(bits), result)


def logistic(x: Array, integer: int, bits: int = 32) -> Array:
    """Return ``1 / (1 + exp(-x))``."""
    magnitude = _wrap(np.where(x > 0, x, -x), bits)
    positive = one_over_one_plus(exp_on_negative_values(_wrap(-magnitude, bits), integer, bits), bits)
    return np.where(x == 0, 1 << (bits - 2), np.where(x > 0, positive, _one(bits) - positive))


def tanh(x: Array, integer: int, bits: int = 32) -> Array:
    """Return ``tanh(x)``."""
    negative = _wrap(np.where(x < 0, x, -x), bits)
    result = _one_minus_over_one_plus(exp_on_negative_values(negative, integer + 1, bits), bits)
    return np.where(x == 0, 0, np.where(x < 0, -result, result))


def one_over_one_plus(x: Array, bits: int = 32) -> Array:
    """Return ``1 / (1 + x)`` for ``x`` of [0, 1), which has no integer bits."""
    return saturating_multiply_by_pot(_newton(x, bits), 1, bits)


def inverse_sqrt(x: Array) -> Multiplier:
    """Return ``1 / sqrt(x)`` of integers as multipliers (GetInvSqrtQuantizedMultiplierExp of TFLite's common.h)."""
    bits = np.frexp(x.astype(np.float64))[1].astype(np.int64)
    down = np.maximum(bits - 28, 0) // 2
    x = x >> (2 * down)
    up = np.maximum(31 - (bits - 2 * down), 0) // 2 - 1
    part = (x << (2 * np.maximum(up, 0))) >> 1
    half = rounding_divide_by_pot(part, 1)
    root = np.full_like(x, 1 << 28)
    for _ in range(5):
        cube = saturating_multiply_by_pot(_times(_times(root, root), root), 6)
        root = saturating_multiply_by_pot(_times(root, (1 << 28) + (1 << 27)) - _times(half, cube), 3)
    value, shift = _times(root, 1518500250), 11 + down - up
    value = np.where(shift < 0, value << np.maximum(-shift, 0), value)
    small = bits <= 1  # 0 counts as 1
    return Multiplier(np.where(small, _one(32), value), np.where(small, 0, -np.maximum(shift, 0)))


@cache
def table(function: Callable[[Array, int, int], Array], integer: int) -> Array:
    """Return ``logistic`` or ``tanh`` of every 16-bit raw value, by the value modulo 2**16."""
    raw = np.arange(1 << 16).astype(np.int16).astype(np.int64)
    return function(raw, integer, 16)


def _times(a: Array, b: Array | int) -> Array:
    return saturating_rounding_doubling_high_mul(a, b)


def _exp_of_last_quarter(x: Array, bits: int) -> Array:
    """Return ``exp(x)`` for ``x`` of [-1/4, 0), by its Taylor series around -1/8."""

    def times(a: Array, b: Array | int) -> Array:
        return saturating_rounding_doubling_high_mul(a, b, bits)

    x = x + (1 << (bits - 4))
    x2 = times(x, x)
    x3, x4 = times(x2, x), times(x2, x2)
    tail = times(rounding_divide_by_pot(x4, 2) + x3, _constant(715827883, bits)) + x2
    series = x + rounding_divide_by_pot(tail, 1)
    constant = _constant(1895147668, bits)
    result: Array = np.minimum(constant + times(series, constant), _one(bits))
    return result


def _newton(x: Array, bits: int) -> Array:
    """Return ``2 / (1 + x)`` with two integer bits, by three Newton-Raphson steps.

    The starting value is so close that nothing saturates.
    """

    rounding, shift = np.array(1 << (bits - 2)), np.array(bits - 1)

    def times(a: Array, b: Array | int) -> Array:
        return np.asarray((a * b + rounding) >> shift)

    half = (x + _one(bits) + 1) >> 1  # the sum is positive, so this rounds a half up
    result = _constant(1515870810, bits) + times(half, _constant(-1010580540, bits))
    for _ in range(3):
        error = (1 << (bits - 3)) - times(half, result)
        result = result + (times(result, error) << 2)
    return result


def _one_minus_over_one_plus(x: Array, bits: int) -> Array:
    return saturating_multiply_by_pot(_newton(x, bits) - (1 << (bits - 3)), 2, bits)


def _constant(raw: int, bits: int) -> int:
    """Return a 32-bit raw constant, rounded to ``bits`` bits."""
    return raw if bits == 32 else int(rounding_divide_by_pot(np.asarray(raw), 32 - bits))


def _one(bits: int) -> int:
    return (1 << (bits - 1)) - 1


def _wrap(x: Array, bits: int) -> Array:
    """Wrap the negated lowest value back to itself."""
    return np.where(x == 1 << (bits - 1), -x, x)
