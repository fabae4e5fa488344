"""FLOAT8: a sign, 4 or 5 bits of exponent, 3 or 2 of mantissa, in a byte. Arrays hold the bits as uint8.

E4M3FN has no infinities and one NaN of each sign; E5M2 is the upper byte of a float16. Conversions are those of
ml_dtypes: numbers are rounded to the nearest, ties to even, and too large ones become NaN or infinite.
"""

from collections.abc import Mapping

import numpy as np

from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

_E4M3FN, _E5M2 = TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2
_NAN = {_E4M3FN: 0x7F, _E5M2: 0x7E}


def _magnitudes(mantissa_bits: int, bias: int) -> Array:
    """Return the 128 numbers of sign 0, as if none were infinite or NaN."""
    exponent, fraction = np.divmod(np.arange(128), 1 << mantissa_bits)
    steps = np.where(exponent > 0, fraction + (1 << mantissa_bits), fraction)
    return np.asarray(np.ldexp(steps, np.maximum(exponent, 1) - bias - mantissa_bits), np.float32)


_MAGNITUDES: Mapping[TensorType, Array] = {_E4M3FN: _magnitudes(3, 7), _E5M2: _magnitudes(2, 15)}
_LAST = {_E4M3FN: 0x7F, _E5M2: 0x7C}  # the code of what exceeds the largest number: NaN, infinity


def _values(type_: TensorType) -> Array:
    """Return the numbers of all codes."""
    values = _MAGNITUDES[type_].copy()
    values[_LAST[type_] :] = np.nan
    if type_ is _E5M2:
        values[_LAST[type_]] = np.inf
    return np.concatenate([values, -values])


_VALUES = {type_: _values(type_) for type_ in _MAGNITUDES}
TYPES = tuple(_VALUES)


def widen(x: Array, type_: TensorType) -> Array:
    """Return the same values as float32."""
    return np.asarray(_VALUES[type_][x])


def narrow(x: Array, type_: TensorType) -> Array:
    """Return the nearest values, ties to even. As in LiteRT's source, numbers are rounded to float32 first."""
    with np.errstate(over="ignore"):
        wide = np.asarray(x, np.float32)
    values, size = _MAGNITUDES[type_][: _LAST[type_] + 1], np.abs(wide)
    between = (values[1:] + values[:-1]) / 2
    low, high = (np.searchsorted(between, size, side) for side in ("left", "right"))
    code = np.where(low % 2 == 0, low, high)  # they differ where a number lies halfway
    code = np.where(np.isnan(wide), _NAN[type_], code)
    return np.asarray(code | np.signbit(wide) << 7, np.uint8)
