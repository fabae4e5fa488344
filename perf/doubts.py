"""Warnings that cast doubt on measured times: a busy machine, outliers, drift."""

import os
from collections.abc import Sequence

import numpy as np

from litecl.delegate.native.processors import processors
from litecl.perf.timing import Stats

_BUSY = 0.25  # of the cores, by the load average before measuring
_MANY_OUTLIERS = 0.1
_DRIFT = 0.15
_LEAST_RUNS = 12  # fewer show no drift
_FENCE = 3.0  # interquartile ranges above the upper quartile


def load() -> float | None:
    """Return the load average of the last minute, None if the system doesn't provide it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def busy(load_before: float | None) -> tuple[str, ...]:
    """Return a warning if other processes kept the machine busy before measuring."""
    if load_before is None or load_before <= _BUSY * processors():
        return ()
    return (f"load was already {load_before:.1f} on {processors()} cores",)


def outliers(times_ms: Sequence[float]) -> int:
    """Count runs more than three interquartile ranges above the upper quartile."""
    lower, upper = np.percentile(times_ms, (25, 75))
    return int(np.count_nonzero(np.asarray(times_ms) > upper + _FENCE * (upper - lower)))


def doubts(stats: Stats) -> tuple[str, ...]:
    """Return warnings about many outliers and drifting times."""
    times, count = np.asarray(stats.times_ms), outliers(stats.times_ms)
    reasons = []
    if count > _MANY_OUTLIERS * len(times):
        reasons.append(f"{count} of {len(times)} runs are outliers")
    if len(times) >= _LEAST_RUNS:
        third = len(times) // 3
        first, last = (float(np.median(part)) for part in (times[:third], times[-third:]))
        if abs(last / first - 1) > _DRIFT:
            reasons.append(f"times {'rose' if last > first else 'fell'} during the run: {first:.3g} to {last:.3g} ms")
    return tuple(reasons)
