"""A comparison of litecl with LiteRT on every model file of a folder, with one thread.

``python -m tools.every_model FOLDER FILE.csv`` times both as ``tools.peers`` does, in turns of some milliseconds:
a single invoke of a small model takes as long as reading the clock. It leaves out models that one of the two does not
run, or whose nodes the device does not run all. It writes a line for each model, the slowest against LiteRT first, and
prints how the ratios are distributed.
"""

import csv
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from litecl.interpreter.errors import LiteclError
from litecl.perf.isolated import isolated
from tools.peer_page import Result
from tools.peers import Peer, measure

_ROUNDS = 10


def figures(path: Path) -> Result | None:
    """Return a model's times; None where it is left out."""
    try:
        result = measure(Peer(path.name, path.read_bytes, 0.0, 0.0), 1, _ROUNDS, 1.0)
    except (LiteclError, ValueError, RuntimeError):  # the latter two are LiteRT's
        return None
    claimed, nodes = result.claimed.split()[0].split("/")
    return result if claimed == nodes else None


def summary(results: Sequence[Result]) -> str:
    """Return how the ratios of medians and of minima are distributed."""
    lines = []
    for name, ratios in (("medians", [r.ratio for r in results]), ("minima", [r.best_ratio for r in results])):
        median, tenth = np.percentile(ratios, (50, 10))
        below = sum(ratio < 1 for ratio in ratios)
        lines.append(f"{name}: {len(ratios)} models, median {median:.2f}, tenth {tenth:.2f}, {below} below 1")
    return "\n".join(lines)


def main(folder: Path, file: Path) -> None:
    """Measure a folder, and write the table."""
    paths = sorted(folder.rglob("*.tflite"))
    found = [result for result in isolated(partial(figures, path) for path in paths) if result is not None]
    with file.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(("model", "litecl_us", "litert_us", "ratio", "low", "high", "best_ratio", "difference"))
        for r in sorted(found, key=lambda r: r.ratio):
            numbers = (r.litecl_ms * 1e3, r.litert_ms * 1e3, r.ratio, r.low, r.high, r.best_ratio, r.difference)
            table.writerow((r.name, *(f"{number:.4g}" for number in numbers)))
    print(summary(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
