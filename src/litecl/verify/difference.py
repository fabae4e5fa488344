"""Measures the difference of two arrays, relative to their magnitude and in units in the last place."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.graph import Array


@dataclass(frozen=True)
class Difference:
    """relative: largest difference, over the largest expected magnitude. ulp: largest, in units in the last place.

    wrong: a mismatch that isn't a number (another shape or type, an unexpected NaN), with its place.
    """

    relative: float = 0.0
    ulp: float = 0.0
    wrong: str = ""

    def exceeds(self, bound: float) -> bool:
        """Return whether the difference exceeds a relative bound."""
        return bool(self.wrong) or not self.relative <= bound


def difference(got: Array, expected: Array) -> Difference:
    """Compare two arrays. Infinities and NaN must match."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return Difference(wrong=f"{_kind(got)} instead of {_kind(expected)}")
    if got.dtype.kind not in "fciub":
        same = bool(np.array_equal(got, expected))
        return Difference() if same else Difference(np.inf, np.inf, "other elements")
    if got.size == 0:
        return Difference()
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), expected.astype(wide)
    finite = np.isfinite(b)
    wrong = ~finite & ~((a == b) | (np.isnan(a) & np.isnan(b))) | finite & ~np.isfinite(a)
    if wrong.any():
        return Difference(np.inf, np.inf, _first(wrong, got, expected))
    apart = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0))
    largest = float(np.max(np.abs(b[finite]), initial=0.0))
    worst = float(apart.max())
    return Difference(worst / largest if largest else (np.inf if worst else 0.0), _ulp(apart, expected))


def worst(found: Sequence[Difference]) -> Difference:
    """Return the worst of several differences, field by field."""
    return Difference(
        max((d.relative for d in found), default=0.0),
        max((d.ulp for d in found), default=0.0),
        next((d.wrong for d in found if d.wrong), ""),
    )


def same_bits(a: Array, b: Array) -> bool:
    """Return whether two arrays are bit-identical, treating all NaN as equal."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "f":
        return bool(((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))).all())
    return bool(np.array_equal(a, b))


def _ulp(apart: Array, expected: Array) -> float:
    if expected.dtype.kind != "f":
        return float(apart.max())
    step = np.spacing(np.abs(np.where(np.isfinite(expected), expected, 0))).astype(np.float64)
    return float((apart / step).max())


def _first(wrong: Array, got: Array, expected: Array) -> str:
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{got[place]} instead of {expected[place]} at {list(place)}"


def _kind(x: Array) -> str:
    return f"{x.dtype.name} {list(x.shape)}"
