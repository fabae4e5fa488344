"""The speed of every model file of a folder against LiteRT's.

``python -m tools.every_model FOLDER --threads 1 2 --json FILE`` times each file that both run and
of which the device runs every node, in turns as ``peers`` does, each in a process of its own. The slowest come first.
A ratio is LiteRT's time over litecl's, of the shortest turns.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from tools.peers import Peer, Result, kernels, machine, measure

_ROUNDS = 9
_GOAL, _AIM = 1.0, 1.3  # of a model, and of the median


@dataclass(frozen=True)
class LeftOut:
    """A model that is not timed, and why."""

    name: str
    reason: str


def timed(path: Path, name: str, threads: int) -> Result | LeftOut:
    """Return the figures of one file."""
    content = path.read_bytes()
    try:
        interpreter = Interpreter(model_content=content, delegates=[CLDelegate(num_threads=threads)])
        interpreter.allocate_tensors()
        report = interpreter.delegation_report()
        left = [row for row in report.nodes if not row.claimed]
        if left or not report.nodes:
            return LeftOut(name, f"CPU: {left[0].op}: {left[0].reason}" if left else "no nodes")
        return measure(Peer(name, lambda: content, _GOAL, _AIM), threads, _ROUNDS, 1.0)
    except LiteclError as error:
        return LeftOut(name, f"litecl: {error}")
    except (RuntimeError, ValueError) as error:
        return LeftOut(name, f"LiteRT: {error}")


def _each(paths: Sequence[Path], folder: Path, threads: int) -> list[Result | LeftOut]:
    """Return the figures of all files; a process that dies costs only its own."""
    found: list[Result | LeftOut] = []
    for path in track(paths, f"{threads} threads", console=Console(stderr=True)):
        name = str(path.relative_to(folder))
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                found.append(pool.submit(timed, path, name, threads).result())
            except BrokenExecutor:
                found.append(LeftOut(name, "the process died"))
    return found


def table(results: Sequence[Result]) -> Table:
    """Return the slowest first."""
    view = Table("model", "litecl ms", "LiteRT ms", "of minima", "of medians")
    for r in sorted(results, key=lambda r: r.best_ratio):
        view.add_row(r.name, f"{r.litecl_ms:.4f}", f"{r.litert_ms:.4f}", f"{r.best_ratio:.2f}", f"{r.ratio:.2f}")
    return view


def summary(results: Sequence[Result], left_out: Sequence[LeftOut], threads: int) -> str:
    """Return a sentence of what came out."""
    ratios = np.array([r.best_ratio for r in results])
    if not ratios.size:
        return f"{threads} threads: none of {len(left_out)} models is timed"
    median, tenth, below = np.median(ratios), np.percentile(ratios, 10), int((ratios < _GOAL).sum())
    return (
        f"{threads} threads: {len(ratios)} models, median {median:.2f}, lowest tenth below {tenth:.2f}, {below} below "
        f"{_GOAL}; {len(left_out)} not timed"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Time everything."""
    parser = argparse.ArgumentParser(prog="python -m tools.every_model", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1], metavar="N", help="(default: 1)")
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--json", type=Path, help="where to write the results")
    args = parser.parse_args(arguments)
    paths = [path for path in sorted(args.folder.rglob("*.tflite")) if args.only in str(path)]
    data = {}
    for threads in args.threads:
        found = _each(paths, args.folder, threads)
        results = [each for each in found if isinstance(each, Result)]
        left_out = [each for each in found if isinstance(each, LeftOut)]
        Console(width=150).print(table(results))
        print(*(f"not timed: {each.name}: {each.reason}"[:200] for each in left_out), sep="\n")
        print(summary(results, left_out, threads))
        data[str(threads)] = {
            "results": [asdict(each) for each in results],
            "left_out": [asdict(each) for each in left_out],
        }
    print(f"{machine()}; {kernels()}")
    if args.json:
        args.json.write_text(json.dumps({"machine": f"{machine()}; {kernels()}", **data}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
