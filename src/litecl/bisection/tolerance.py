"""Compares results with the reference's, within a tolerance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.comparison import Difference, difference
from litecl.interpreter.graph import Array

_QUANTIZED_BYTES = 2


@dataclass(frozen=True)
class Tolerance:
    """relative: for floats, relative to the largest magnitude in the tensor. steps: for 8- and 16-bit integers, which
    hold quantized values; wider ones, such as indices, and booleans must be exact.
    """

    relative: float = 1e-4
    steps: int = 0

    def of(self, dtype: np.dtype[Any]) -> float:
        """Return a type's largest allowed error: relative for floats, else in steps."""
        if dtype.kind in "fc":
            return self.relative
        return self.steps if dtype.kind in "iu" and dtype.itemsize <= _QUANTIZED_BYTES else 0


@dataclass(frozen=True)
class Error:
    """The worst element of a result, or a mismatch such as another shape, in a few words.

    output: the tensor's position. size: relative error, or steps for integers.
    """

    output: int
    size: float
    text: str


def size_of(got: Array, expected: Array) -> float:
    """Return a tensor's error: relative to the largest magnitude for floats, in steps for integers, and infinite if
    more than values differ.
    """
    return _size(difference(got, expected), expected.dtype)


def worst(got: Sequence[Array], expected: Sequence[Array], tolerance: Tolerance) -> Error | None:
    """Return the worst element of all results beyond the tolerance, if any."""
    errors = []
    for output, (a, b) in enumerate(zip(got, expected, strict=True)):
        apart = difference(a, b)
        if (size := _size(apart, b.dtype)) > tolerance.of(b.dtype):
            errors.append(Error(output, size, _text(apart, a, b)))
    return max(errors, key=lambda error: error.size, default=None)


def _size(apart: Difference, dtype: np.dtype[Any]) -> float:
    if apart.wrong:
        return np.inf
    return apart.absolute if dtype.kind in "iub" else apart.relative


def _text(apart: Difference, got: Array, expected: Array) -> str:
    if got.shape != expected.shape or got.dtype != expected.dtype or got.dtype.kind in "OSU":
        return apart.wrong
    return f"{got[apart.index].item()} instead of {expected[apart.index].item()} at {list(apart.index)}"
