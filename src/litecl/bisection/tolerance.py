"""Compares results with the reference's, within a tolerance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array
from litecl.verify.difference import difference

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
        if dtype.kind not in "iub":
            return self.relative
        return self.steps if dtype.kind in "iu" and dtype.itemsize <= _QUANTIZED_BYTES else 0


@dataclass(frozen=True)
class Error:
    """The worst element of a result. output: the tensor's position. size: relative error, or steps for integers.

    said: a mismatch that isn't a number, such as another shape.
    """

    output: int
    size: float
    place: tuple[int, ...] = ()
    got: object = None
    expected: object = None
    said: str = ""

    @property
    def text(self) -> str:
        """The error in a few words."""
        if self.said:
            return self.said
        return f"{self.got} instead of {self.expected} at {list(self.place)}"


def size_of(got: Array, expected: Array) -> float:
    """Return a tensor's error: relative to the largest magnitude for floats, in steps for integers, and infinite if
    more than values differ.
    """
    found = difference(got, expected)
    if found.wrong:
        return np.inf
    return found.ulp if expected.dtype.kind in "iub" else found.relative


def worst(got: Sequence[Array], expected: Sequence[Array], tolerance: Tolerance) -> Error | None:
    """Return the worst element of all results beyond the tolerance, if any."""
    errors = [
        _error(position, a, b)
        for position, (a, b) in enumerate(zip(got, expected, strict=True))
        if size_of(a, b) > tolerance.of(b.dtype)
    ]
    return max(errors, key=lambda error: error.size, default=None)


def _error(position: int, got: Array, expected: Array) -> Error:
    size = size_of(got, expected)
    if got.shape != expected.shape or got.dtype != expected.dtype or got.dtype.kind not in "fciub":
        return Error(position, size, said=difference(got, expected).wrong)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), expected.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.nan_to_num(np.abs(a - b), nan=np.inf))
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), got.shape))
    return Error(position, size, place, got[place].item(), expected[place].item())
