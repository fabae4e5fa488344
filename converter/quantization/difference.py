"""Measures the difference between expected and actual numbers."""

import math
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.graph import Array


@dataclass
class Difference:
    """Sums over the elements of array pairs, without those expected to be infinite or NaN."""

    signal: float = 0.0
    noise: float = 0.0
    count: int = 0

    def add(self, expected: Array, got: Array) -> None:
        """Add the elements of expected and actual arrays."""
        known = np.isfinite(expected)
        wanted = expected[known].astype(np.float64)
        self.signal += float(np.square(wanted).sum())
        self.noise += float(np.square(wanted - got[known]).sum())
        self.count += wanted.size

    @property
    def error(self) -> float:
        """The root mean square difference."""
        return math.sqrt(self.noise / self.count) if self.count else 0.0

    @property
    def sqnr_db(self) -> float:
        """The signal-to-noise ratio in decibels; infinite without a difference."""
        if self.noise == 0:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf
