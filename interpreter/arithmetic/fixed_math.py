"""Elementary functions in fixed point, bit for bit as in TFLite (kernels/internal/common.h).

A number with ``m`` integer bits is an int32 ``raw`` that represents ``raw * 2**(m - 31)``. Arrays are int64, so that
sums may be formed before they wrap.
"""

import numpy as np

from litecl.interpreter.arithmetic.fixed_point import rounding_divide_by_pot, saturating_multiply_by_pot
from litecl.interpreter.arithmetic.fixed_point import saturating_rounding_doubling_high_mul as high_mul
from litecl.interpreter.arithmetic.gemmlowp import one_over_one_plus
from litecl.interpreter.graph import Array
from litecl.interpreter.kit.types import limits

_LOW, _HIGH = (int(limit) for limit in limits(np.dtype(np.int32)))
_LOG_2, _SQRT_HALF, _SQRT_SQRT_HALF = 1488522236, 1518500250, 1805811301


def rescale(x: Array, integer_bits: int, to: int) -> Array:
    """Return ``x`` with ``to`` integer bits instead of ``integer_bits``: rounded, or saturated."""
    return saturating_multiply_by_pot(x, integer_bits - to)


def leading_zeros(x: Array) -> Array:
    """Count the zero bits before the first one of non-negative int32; 32 for zero."""
    return 32 - np.frexp(x.astype(np.float64))[1]


def reciprocal(x: Array, integer_bits: int) -> tuple[Array, Array]:
    """Return ``1 / x`` as a number without integer bits, and the bits that ``x`` has over one."""
    headroom = leading_zeros(x)  # negative where x has more than 32 bits, whose lowest are dropped
    fraction = ((x << np.maximum(headroom, 0)) >> np.maximum(-headroom, 0)) - (1 << 31)
    return one_over_one_plus(fraction), integer_bits - headroom


def inverse_sqrt(x: Array) -> tuple[Array, Array]:
    """Return ``1 / sqrt(x)`` of positive integers, as a multiplier and a shift to the right."""
    big = np.maximum(x, 2)
    shift = np.full_like(big, 11)
    pairs = (leading_zeros(big) - 1) // 2 - 1
    shift = shift - pairs
    scaled = big << np.maximum(2 * pairs, 0)
    y = _newton_inverse_sqrt(scaled >> 1)
    y = high_mul(y, _SQRT_HALF)
    y, shift = np.where(shift < 0, y << np.maximum(-shift, 0), y), np.maximum(shift, 0)
    return np.where(x <= 1, _HIGH, y), np.where(x <= 1, 0, shift)


def _newton_inverse_sqrt(x: Array) -> Array:
    """Take five Newton steps from one, with three integer bits."""
    half = rounding_divide_by_pot(x, 1)
    three_halves = (1 << 28) + (1 << 27)
    y = np.full_like(x, 1 << 28)
    for _ in range(5):
        cube = rescale(high_mul(high_mul(y, y), y), 9, 3)
        y = rescale(high_mul(y, three_halves) - high_mul(half, cube), 6, 3)
    return y


def log_of_one_or_more(x: Array, integer_bits: int, to: int) -> Array:
    """Return ``log(x)`` of ``x >= 1`` with ``to`` integer bits (log_x_for_x_greater_than_or_equal_to_1)."""
    wide = to + 1
    quarter = rescale(np.array(1 << 29), 0, wide)
    headroom = leading_zeros(x)
    scaled = _times_power_of_two(x, headroom - 1)
    first = _times_power_of_two(high_mul(scaled, _SQRT_HALF), 1)
    first_power = np.clip(_times_power_of_two(integer_bits - headroom, 31 - wide) + quarter, _LOW, _HIGH)
    halved = high_mul(x, _SQRT_HALF)
    halved_headroom = leading_zeros(halved) - 1
    second = _times_power_of_two(x, halved_headroom)
    second_power = np.clip(_times_power_of_two(integer_bits - halved_headroom, 31 - wide) - quarter, _LOW, _HIGH)
    power = np.maximum(first_power, second_power)
    fraction = _log_of_fraction(np.minimum(first, second), wide)
    return rescale(high_mul(power, _LOG_2) + fraction, wide, to)


def _log_of_fraction(r: Array, wide: int) -> Array:
    """Return a rational approximation of the logarithm around the fourth root of one half."""
    total = r + _SQRT_SQRT_HALF
    p = (total + np.where(total >= 0, 1, -1)) // 2
    q = 2 * (r - _SQRT_SQRT_HALF)
    square = high_mul(q, q)
    cubic = high_mul(high_mul(q, square), 117049297)
    numerator = high_mul(q, r) + cubic
    inner = 1057819769 + q + high_mul(square, 127690142)
    denominator = high_mul(p, inner) + high_mul(q, 638450708)
    return high_mul(rescale(numerator, 0, wide), one_over_one_plus(denominator))


def _times_power_of_two(x: Array, exponent: Array | int) -> Array:
    """Return ``x * 2**exponent``, saturated at both ends as in SaturatingRoundingMultiplyByPOTParam."""
    threshold = (np.int64(1) << (31 - np.asarray(exponent, np.int64))) - 1
    shifted = np.asarray(x) << exponent
    return np.where(x > threshold, _HIGH, np.where(x < -threshold, _LOW, shifted))


# Where TFLite's table of the logistic function is rounded up (common.cc: sigmoid_table_uint16).
_ROUNDED_UP = (
    4,
    8,
    12,
    14,
    15,
    16,
    17,
    19,
    20,
    21,
    22,
    25,
    27,
    28,
    29,
    30,
    31,
    33,
    34,
    35,
    37,
    39,
    40,
    41,
    43,
    44,
    45,
    46,
    49,
    50,
    54,
    62,
    63,
    64,
    66,
    82,
    86,
    93,
    100,
    103,
    112,
    116,
    135,
    255,
)
_LOGISTIC = np.round(65536 / (1 + np.exp(np.arange(256) / -24))).astype(np.int64)
_LOGISTIC[list(_ROUNDED_UP)] += 1


def logistic16(x: Array) -> Array:
    """Return the logistic function of ``x / 12288`` in units of 2**-15, by interpolation (integer_ops/logistic.h)."""
    size = np.abs(x)
    index = np.minimum(size >> 9, 254)
    between = (_LOGISTIC[index] << 9) + (size & 511) * (_LOGISTIC[index + 1] - _LOGISTIC[index])
    between = np.where(size >> 9 >= 255, 0x7FFF << 10, between)
    return np.where(x >= 0, between + (1 << 9), (1 << 25) - between + (1 << 9) - 1) >> 10


def tanh16(x: Array) -> Array:
    """Return the hyperbolic tangent of ``x / 12288`` in units of 2**-15, by interpolation (integer_ops/tanh.h)."""
    size = np.abs(x)
    index = np.minimum(size >> 8, 254)
    between = (_LOGISTIC[index] << 8) + (size & 255) * (_LOGISTIC[index + 1] - _LOGISTIC[index])
    between = np.where(size >> 8 >= 255, 0xFFFF << 8, between)
    half, rounding = 1 << 23, 1 << 7
    return np.where(x >= 0, between - half + rounding, -between + half + rounding - 1) >> 8


def bit_length(x: Array) -> Array:
    """Count the bits of non-negative integers below 2**53, from the first that is set; 0 for zero."""
    return np.frexp(x.astype(np.float64))[1]
