"""Compares what a program computed on two runtimes."""

from pathlib import Path

import numpy as np

from litecl import comparison


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
    apart = comparison.difference(a, b)
    if apart.wrong or (apart.absolute and a.dtype.kind not in "fc"):
        return np.inf
    return apart.absolute / (apart.magnitude or 1.0)
