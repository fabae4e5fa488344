"""Comparing arrays, against exact arithmetic, element by element."""

import cmath
from fractions import Fraction
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from litecl.comparison import Difference, difference, distances, same_bits

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)
STRANGE = (np.nan, np.inf, -np.inf)
TYPES = (*INTEGERS, *FLOATS, np.complex64, np.complex128, np.bool_, np.object_)


def _elements(dtype: Any) -> list[Any]:
    if dtype in INTEGERS:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        return [low, low + 1, 0, 1, 2, 3, high - 1, high]
    if dtype is np.bool_:
        return [False, True]
    if dtype is np.object_:
        return [b"", b"a", b"b", "a"]
    floats = [0.0, 1.0, -1.0, 1.0 + 2**-7, -3.0, 1e-5, 6e4, *STRANGE]
    return floats if dtype in FLOATS else [*floats, 1j, 1 + 1j, complex(np.inf, 1), complex(1, np.nan)]


def _distance(a: Any, b: Any) -> float:
    """What `distances` should return for two elements, computed from Python's numbers."""
    if isinstance(a, bytes | str):
        return 0.0 if a == b else np.inf
    if isinstance(a, int):
        return float(abs(a - b))
    if a == b or (cmath.isnan(a) and cmath.isnan(b)):
        return 0.0
    if not (cmath.isfinite(a) and cmath.isfinite(b)):
        return np.inf
    return abs(a - b) if isinstance(a, complex) else float(abs(Fraction(a) - Fraction(b)))


@pytest.mark.parametrize("dtype", TYPES)
def test_distances_are_exact(dtype: Any) -> None:
    a, b = (np.array(values, dtype) for values in zip(*product(_elements(dtype), repeat=2), strict=True))
    expected = [_distance(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_allclose(distances(a, b), expected, rtol=1e-15)
    assert [d == 0 for d in distances(a, b)] == [e == 0 for e in expected]
    for x, y, apart in zip(a, b, expected, strict=True):
        one, other = (np.array([v], dtype).reshape(()) for v in (x, y))
        assert (difference(one, other) == Difference()) == (apart == 0)
        assert difference(one, other).absolute == pytest.approx(apart, rel=1e-15)


@pytest.mark.parametrize("dtype", TYPES)
def test_nothing_broadcasts(dtype: Any) -> None:
    x = np.array(_elements(dtype)[:1], dtype)
    shapes = [(), (1,), (2,), (1, 1), (1, 2), (2, 1), (0,), (0, 1)]
    for a, b in product([np.resize(x, shape).astype(dtype) for shape in shapes], repeat=2):
        same = a.shape == b.shape
        assert bool(difference(a, b).wrong) == difference(a, b).exceeds(np.inf) == (not same)
        assert same_bits(a, b) == same
        if not same:
            with pytest.raises(ValueError, match="expected"):
                distances(a, b)


def test_types_must_be_equal() -> None:
    for a, b in product([np.zeros(2, dtype) for dtype in TYPES], repeat=2):
        same = a.dtype == b.dtype
        assert bool(difference(a, b).wrong) == (not same)
        assert same_bits(a, b) == same


def test_types_of_numbers_may_differ_if_asked() -> None:
    assert difference(np.float32([1, 2]), np.array([1, 4], np.int8), any_type=True).relative == 0.5
    assert not difference(np.array(b"a"), np.array(b"a", object), any_type=True).wrong
    assert difference(np.array(b"a"), np.array(b"b", object), any_type=True).wrong
    for one, other in product(([True, False], [b"1", b"0"], [1 + 0j, 0j], [1.0, 0.0]), repeat=2):
        is_refused = bool(difference(np.array(one), np.array(other), any_type=True).wrong)
        assert is_refused == (type(one[0]) is not type(other[0]))


@pytest.mark.parametrize("dtype", (*FLOATS, np.complex64, np.complex128))
@pytest.mark.parametrize(("got", "expected"), [p for p in product((*STRANGE, 1.0), repeat=2) if p != (1.0, 1.0)])
def test_infinities_and_nan_must_match(dtype: Any, got: float, expected: float) -> None:
    a, b = np.array([3, got], dtype), np.array([3, expected], dtype)
    if got == expected or (np.isnan(got) and np.isnan(expected)):
        assert difference(a, b) == Difference()
    else:
        found = difference(a, b)
        assert (found.absolute, found.relative, found.ulp, found.index) == (np.inf, np.inf, np.inf, (1,))
        assert found.wrong == f"{a[1]} instead of {b[1]} at [1]"
        assert found.exceeds(np.inf)


@pytest.mark.parametrize(
    ("got", "expected", "relative", "ulp", "wrong"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0, 0.0, ""),
        ([1.0, 2.0 + 2**-22], [1.0, 2.0], 2**-23, 1.0, ""),
        ([np.nan, np.inf, 0.0], [np.nan, np.inf, 0.0], 0.0, 0.0, ""),
        ([1.0, np.nan], [1.0, 2.0], np.inf, np.inf, "nan instead of 2.0 at [1]"),
        ([1.0, 2.0], [1.0, np.inf], np.inf, np.inf, "2.0 instead of inf at [1]"),
        ([1e-40], [0.0], np.inf, 71362.0, ""),
        ([1.0], [1.0, 2.0], 0.0, 0.0, "float32 [1] instead of float32 [2]"),
    ],
)
def test_differences(got: list[float], expected: list[float], relative: float, ulp: float, wrong: str) -> None:
    found = difference(np.array(got, np.float32), np.array(expected, np.float32))
    assert (found.relative, found.wrong) == (pytest.approx(relative), wrong)
    assert found.ulp == pytest.approx(ulp, rel=0.01)
    assert found.exceeds(1e-4) == bool(wrong or relative > 1e-4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_units_in_the_last_place(dtype: Any) -> None:
    step = float(ml_dtypes.finfo(dtype).eps)
    expected = np.array([0.0, 8.0], dtype)
    found = difference(expected + np.array([0, 24 * step], dtype), expected)
    assert (found.ulp, found.absolute, found.magnitude, found.index) == (3.0, 24 * step, 8.0, (1,))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_steps_of_integers(dtype: Any) -> None:
    info = np.iinfo(dtype)
    got, expected = np.array([[0, info.max]], dtype), np.array([[0, info.min]], dtype)
    found = difference(got, expected)
    assert found.absolute == found.ulp == float(int(info.max) - int(info.min))
    assert found.index == (0, 1)
    step = np.array([[0, 1]], dtype)
    assert difference(got - step, got) == Difference(1.0, float(info.max), 1.0, index=(0, 1))
    assert difference(got, got) == Difference()


def test_only_zeros_are_expected() -> None:
    found = difference(np.float32([0, 3]), np.float32([0, 0]))
    assert (found.absolute, found.magnitude, found.relative) == (3.0, 0.0, np.inf)


def test_the_same_bits() -> None:
    assert same_bits(np.float32([0.0, np.nan]), np.float32([0.0, np.nan]))
    assert not same_bits(np.float32([0.0]), np.float64([0.0]))
    assert not same_bits(np.int64([2**62]), np.int64([2**62 + 1]))
    for dtype in (*FLOATS, np.complex64, np.complex128):
        assert same_bits(np.array([0.0, np.nan], dtype), np.array([0.0, np.nan], dtype))
        assert not same_bits(np.array([0.0], dtype), np.array([-0.0], dtype))
        assert not same_bits(np.array([1.0], dtype), np.array([np.nan], dtype))
