"""Compares what a program computed on two runtimes."""

from pathlib import Path

import numpy as np


def verdict(ours: Path, theirs: Path) -> str:
    """Return "same", "same to 3e-07", or why not. A difference is relative to the largest value of its array."""
    with np.load(ours) as a, np.load(theirs) as b:
        if not a["__made__"]:
            return "litecl did not run"
        names = set(a.files) - {"__made__"}
        if not names or names != set(b.files) - {"__made__"}:
            return f"other results: {sorted(set(a.files) ^ set(b.files))[:4]}"
        worst = max((difference(a[name], b[name]), name) for name in names)
    if worst[0] > 1e-3:
        return f"differs by {worst[0]:.1e} in {worst[1]}"
    return f"same to {worst[0]:.0e}" if worst[0] else "same"


def difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.dtype.kind not in "fc" or not a.size:
        return 0.0 if np.array_equal(a, b) else np.inf
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    a, b = a[np.isfinite(a)].astype(float), b[np.isfinite(b)].astype(float)
    largest = np.abs(b).max(initial=0.0)
    return float(np.abs(a - b).max(initial=0.0) / largest) if largest else float(np.abs(a).max(initial=0.0))
