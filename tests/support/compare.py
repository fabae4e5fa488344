"""When two arrays count as equal: the tolerances of the cases."""

import numpy as np

from litecl.cases.tolerances import DEVICE as DEVICE
from litecl.cases.tolerances import INTERPRETER as INTERPRETER
from litecl.comparison import difference, distances
from litecl.interpreter.graph import Array


def assert_close(got: Array, expected: Array, tolerance: float) -> None:
    """Equal shape and type, equal infinities, NaN where NaN is expected, and values within the relative tolerance."""
    apart = difference(got, expected)
    assert not apart.wrong
    allowed = tolerance * apart.magnitude
    assert apart.absolute <= allowed, f"largest difference {apart.absolute:.3g}, allowed {allowed:.3g}"


def is_close(got: Array, expected: Array, tolerance: float) -> bool:
    """Return whether shapes, types and values are equal: floats within the tolerance of themselves or the largest."""
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return False
    if expected.dtype.kind not in "fc":
        return not distances(got, expected).any()
    finite = np.where(np.isfinite(expected), np.abs(expected).astype(np.float64), 0)
    return bool((distances(got, expected) <= tolerance * (finite + finite.max(initial=1))).all())
