"""Estimates confidence intervals for ratios of medians by resampling parts of a run."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_PARTS = 12  # blocks of consecutive rounds: disturbances of the machine last for many
_DRAWN = 1000
_MOST = 2000  # rounds to draw from; longer runs are thinned to every n-th
_PERCENT = (2.5, 97.5)


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians with its 95 % interval."""

    value: float
    low: float
    high: float


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Return the ratio of the medians of times measured in turns, round by round.

    The interval comes from a block bootstrap with a fixed seed, which draws blocks of consecutive rounds (Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, section 8.6). It always contains the ratio itself.
    """
    both = np.array([above, below], np.float64)
    value, kept = _of_medians(both), both[:, :: -(-both.shape[1] // _MOST)]
    parts = np.array_split(np.arange(kept.shape[1]), min(_PARTS, kept.shape[1]))
    drawn = np.random.default_rng(0).integers(0, len(parts), (_DRAWN, len(parts)))
    ratios = [_of_medians(kept[:, np.concatenate([parts[i] for i in row])]) for row in drawn]
    low, high = np.percentile(ratios, _PERCENT)
    return Ratio(value, min(value, float(low)), max(value, float(high)))


def _of_medians(both: Array) -> float:
    above, below = np.median(both, axis=1)
    return float(above / below)
