"""When two arrays count as equal: the tolerances of the cases."""

import numpy as np

from litecl.cases.tolerances import DEVICE as DEVICE
from litecl.cases.tolerances import INTERPRETER as INTERPRETER
from litecl.interpreter.graph import Array


def assert_close(got: Array, expected: Array, tolerance: float) -> None:
    """Equal shape and type, equal infinities, NaN where NaN is expected, and values within the relative tolerance."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    if not tolerance:
        np.testing.assert_array_equal(got, expected)
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, expected = got.astype(wide), expected.astype(wide)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    allowed = tolerance * np.max(np.abs(expected[finite]), initial=0.0)
    worst = np.max(np.abs(got[finite] - expected[finite]), initial=0.0)
    assert worst <= allowed, f"largest difference {worst:.3g}, allowed {allowed:.3g}"


def is_close(got: Array, expected: Array, tolerance: float) -> bool:
    """Return whether shapes, types and values are equal: floats within the tolerance of themselves or the largest."""
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return False
    if expected.dtype.kind not in "fc":
        return bool((got == expected).all())
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=1))
    return np.allclose(got, expected, tolerance, tolerance * largest, equal_nan=True)
