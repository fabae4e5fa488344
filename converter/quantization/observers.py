"""Observers collect statistics of a tensor's values and derive its range."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from litecl.converter.quantization.options import Quantization
from litecl.interpreter.graph import Array


class Range(NamedTuple):
    """The values from ``low`` to ``high``."""

    low: float
    high: float

    def __or__(self, other: "Range") -> "Range":
        """Return the smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def holds(self, other: "Range") -> bool:
        """Return whether this range contains another one."""
        return self.low <= other.low and other.high <= self.high


def range_of(values: Array) -> Range | None:
    """Return the range of the finite values of an array, or None if there are none."""
    if not values.size:
        return None
    low, high = values.min(), values.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        finite = values[np.isfinite(values)]
        return range_of(finite) if finite.size else None
    return Range(float(low), float(high))


class Observer(Protocol):
    """Collects statistics of a tensor's values."""

    def see(self, values: Array) -> None:
        """Add the values of one run."""

    def range(self) -> Range | None:
        """Return the range of the values; None if there were none."""


@dataclass
class MinMax:
    """Tracks the smallest and the largest value."""

    known: Range | None = None

    def see(self, values: Array) -> None:
        """Widen the range."""
        new = range_of(values)
        if new is not None:
            self.known = new if self.known is None else self.known | new

    def range(self) -> Range | None:
        """Return the range."""
        return self.known


@dataclass
class MovingAverage:
    """Tracks the exponential moving averages of the smallest and the largest value per run."""

    momentum: float
    known: Range | None = None

    def see(self, values: Array) -> None:
        """Move the range towards that of the values."""
        new = range_of(values)
        if new is None:
            return
        old = self.known or new
        kept = self.momentum
        self.known = Range(*(kept * a + (1 - kept) * b for a, b in zip(old, new, strict=True)))

    def range(self) -> Range | None:
        """Return the range."""
        return self.known


_BINS = 4096  # on either side of zero


@dataclass
class Histogram:
    """Counts values in 8192 bins around zero, whose width doubles when a value lies outside."""

    choose: Callable[[Array, Array, Range], Range]
    reach: float = 0.0
    counts: Array = field(default_factory=lambda: np.zeros(2 * _BINS))
    whole: MinMax = field(default_factory=MinMax)

    def see(self, values: Array) -> None:
        """Count the values."""
        new = range_of(values)
        if new is None:
            return
        self.whole.see(values)
        self._widen(max(abs(new.low), abs(new.high)))
        finite = values[np.isfinite(values)]
        places = ((finite.astype(np.float64) / self.reach + 1) * _BINS).astype(np.int64)
        self.counts += np.bincount(np.minimum(places, 2 * _BINS - 1).reshape(-1), minlength=2 * _BINS)

    def _widen(self, largest: float) -> None:
        if self.reach == 0.0:
            self.reach = largest or 1.0
        while self.reach < largest:
            pairs = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.pad(pairs, _BINS // 2)
            self.reach *= 2

    def range(self) -> Range | None:
        """Return the chosen range, clipped to that of the values."""
        whole = self.whole.known
        if whole is None:
            return None
        width = self.reach / _BINS
        middles = (np.arange(2 * _BINS) - _BINS + 0.5) * width
        chosen = self.choose(self.counts, middles, whole)
        return Range(max(chosen.low, whole.low), min(chosen.high, whole.high))


def percentiles(percentile: float) -> Callable[[Array, Array, Range], Range]:
    """Return a chooser that cuts off ``100 - percentile`` percent of the values at either end."""

    def choose(counts: Array, middles: Array, whole: Range) -> Range:
        if percentile == 100:
            return whole
        share = np.cumsum(counts) / counts.sum()
        half = (middles[1] - middles[0]) / 2
        first = int(np.searchsorted(share, 1 - percentile / 100, side="right"))
        last = int(np.searchsorted(share, percentile / 100))
        return Range(float(middles[first] - half), float(middles[last] + half))

    return choose


_TRIED: list[float] = np.linspace(1.0, 0.2, 33).tolist()


def least_squares(levels: int, symmetric: bool) -> Callable[[Array, Array, Range], Range]:
    """Return a chooser of the range that rounds values to ``levels`` with the smallest squared error.

    It tries the ends one after the other, at fractions of the full range.
    """

    def choose(counts: Array, middles: Array, whole: Range) -> Range:
        used = counts > 0
        weights, values = counts[used], middles[used]

        def error(low: float, high: float) -> float:
            step = max((high - low) / (levels - 1), float(np.finfo(np.float32).tiny))
            outside: Array = np.maximum(low - values, 0) + np.maximum(values - high, 0)
            # Within the range, rounding errors are uniform: their mean square is step**2 / 12.
            return float(weights @ (outside**2 + np.where(outside > 0, 0.0, step**2 / 12)))

        low, high = min(whole.low, 0.0), max(whole.high, 0.0)
        if symmetric:
            largest = max(-low, high)
            best = min((part * largest for part in _TRIED), key=lambda top: error(-top, top))
            return Range(-best, best)
        for _ in range(2):
            high = min((part * max(whole.high, 0.0) for part in _TRIED), key=lambda top: error(low, top))
            low = min((part * min(whole.low, 0.0) for part in _TRIED), key=lambda bottom: error(bottom, high))
        return Range(low, high)

    return choose


def observer(how: Quantization) -> Callable[[], Observer]:
    """Return a factory of observers for the method."""
    wide = how.activations == "int16"
    least = least_squares(1 << 16 if wide else 1 << 8, symmetric=wide)
    makers: dict[str, Callable[[], Observer]] = {
        "minmax": MinMax,
        "moving_average": lambda: MovingAverage(how.momentum),
        "percentile": lambda: Histogram(percentiles(how.percentile)),
        "mse": lambda: Histogram(least),
    }
    return makers[how.method]
