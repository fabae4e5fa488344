"""Compares arrays with expected ones: the distance of every element, and the largest of them.

Nothing broadcasts. Infinities and NaN must match; then they are equal. Integers are subtracted exactly: no int8 wraps
around, and no int64 is rounded to a float first.
"""

from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.feeding import OF_ML_DTYPES
from litecl.interpreter.graph import Array


@dataclass(frozen=True)
class Difference:
    """The largest difference of an array from the expected one. Infinite if elements differ that can't be subtracted:
    an infinity or NaN that the other array doesn't have, or strings.

    absolute: of two elements; of quantized integers in steps. magnitude: of the largest finite expected element, 0 for
    equal arrays. ulp: in units in the last place; of integers in steps. wrong: a mismatch that isn't a number; the
    numbers are 0 if it is another shape or type. index: of the element that differs most.
    """

    absolute: float = 0.0
    magnitude: float = 0.0
    ulp: float = 0.0
    wrong: str = ""
    index: tuple[int, ...] = ()

    @property
    def relative(self) -> float:
        """The largest difference over the magnitude; infinite if only zeros are expected."""
        if not self.absolute:
            return 0.0
        return self.absolute / self.magnitude if self.magnitude else np.inf

    def exceeds(self, bound: float) -> bool:
        """Return whether the difference exceeds a relative bound."""
        return bool(self.wrong) or not self.relative <= bound


def difference(got: Array, expected: Array, *, any_type: bool = False) -> Difference:
    """Compare two arrays of one shape and type. any_type: real numbers, or strings, may be of different types."""
    if any_type and got.dtype != expected.dtype:
        got, expected = _widest(got), _widest(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return Difference(wrong=f"{_kind(got)} instead of {_kind(expected)}")
    apart = distances(got, expected)
    if not apart.any():
        return Difference()
    index = tuple(int(i) for i in np.unravel_index(np.argmax(apart), apart.shape))
    largest = float(apart[index])
    if np.isinf(largest):
        numeric = _is_number(got.dtype)
        wrong = f"{got[index]} instead of {expected[index]} at {list(index)}" if numeric else "other elements"
        return Difference(np.inf, 0.0, np.inf, wrong, index)
    magnitude = float(np.abs(_finite(_wide(expected))).max())
    return Difference(largest, magnitude, _ulp(apart, expected), "", index)


def distances(got: Array, expected: Array) -> Array:
    """Return the distance of every element from the expected one as float64: 0 exactly where they are equal.

    Raises ValueError unless shapes and types are equal.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise ValueError(f"expected {_kind(expected)}, got {_kind(got)}")
    if got.dtype.kind in "iu":
        larger, smaller = (f(got, expected).astype(np.uint64) for f in (np.maximum, np.minimum))
        return np.asarray(np.subtract(larger, smaller), np.float64)  # modulo 2**64, so exact for int64 too
    if got.dtype.kind == "b":
        return np.asarray(got != expected, np.float64)
    if not _is_number(got.dtype):
        return np.where(np.asarray(got != expected, np.bool_), np.inf, 0.0)
    a, b = _wide(got), _wide(expected)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), apart, np.inf))


def same_bits(a: Array, b: Array) -> bool:
    """Return whether two arrays are bit-identical, treating all NaN as equal."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if is_float(a.dtype) and not ((np.signbit(a) == np.signbit(b)) | np.isnan(a)).all():
        return False
    return not distances(a, b).any()


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a type is one of real floats: numpy's, or ml_dtypes', whose kinds numpy doesn't know."""
    return dtype.kind == "f" or dtype.name in OF_ML_DTYPES.values()


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iuc" or is_float(dtype)


def _widest(x: Array) -> Array:
    """Return numbers and strings in the widest type of their kind, others as they are."""
    if x.dtype.kind in "SU":
        return x.astype(np.object_)
    return _wide(x) if _is_number(x.dtype) else x


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _finite(x: Array) -> Array:
    return np.where(np.isfinite(x), x, 0)


def _ulp(apart: Array, expected: Array) -> float:
    if not is_float(expected.dtype):
        return float(apart.max())
    size = np.abs(_finite(expected)).astype(expected.dtype)
    with np.errstate(over="ignore"):
        up, down = np.spacing(size), size - np.nextafter(size, np.zeros((), size.dtype))  # nothing is above the largest
        steps = np.where(np.isfinite(up), up, down).astype(np.float64)
        return float((apart / steps).max())


def _kind(x: Array) -> str:
    return f"{x.dtype.name} {list(x.shape)}"
