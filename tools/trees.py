"""This checkout against another one: the times of invokes, or of the first answers with empty caches.

``python -m tools.trees OTHER MODEL_OR_FOLDER... --threads 1`` runs each model in two processes, one for
each checkout, in turns; ``--first`` prepares it in new processes, with caches that are empty. A ratio is the other's
time over this one's, of the shortest turns and of the medians; with ``--first`` of CPU seconds, children's included.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

_HERE = Path(__file__).resolve().parents[1]
_CODE = """
import json, os, sys, time
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
try:
    from litecl.perf.feeds import prepare, random_inputs
except ModuleNotFoundError:  # of a checkout that has it elsewhere
    from litecl.perf.measure.feeds import prepare, random_inputs
imported_cpu_s = time.process_time()

def opened(path, threads):
    options = {} if threads is None else {"num_threads": threads}
    made = Interpreter(path, delegates=[CLDelegate(cache_dir=sys.argv[1], **options)])
    prepare(made, random_inputs(made.get_input_details(), seed=0))
    made.invoke()
    return made

def turn(seconds):
    took, end = [], time.perf_counter() + seconds
    while len(took) < 3 or time.perf_counter() < end:
        before = time.perf_counter()
        made.invoke()
        took.append(time.perf_counter() - before)
    return {"least_s": min(took), "median_s": sorted(took)[len(took) // 2]}

for line in sys.stdin:
    asked, start_s = json.loads(line), time.perf_counter()
    if "path" in asked:
        made = None
        made = opened(asked["path"], asked["threads"])
        report, used = made.delegation_report(), os.times()
        told = {"device": report.device, "claimed": report.claimed, "nodes": len(report.nodes)}
        told |= {"cpu_s": sum(used[:4]) - imported_cpu_s, "wall_s": time.perf_counter() - start_s}
    else:
        told = turn(asked["seconds"])
    print(json.dumps(told), flush=True)
"""


@dataclass(frozen=True)
class Row:
    """A model's times in seconds, of the other checkout and of this one. wall: of first answers, else of medians."""

    model: str
    least: tuple[float, float]
    wall: tuple[float, float]
    devices: tuple[str, str]
    claimed: tuple[int, int]

    @property
    def ratios(self) -> tuple[float, float]:
        """Return the ratios of ``least`` and of ``wall``."""
        return self.least[0] / self.least[1], self.wall[0] / self.wall[1]


class Process:
    """A process of a checkout. cache: its folder of compiled programs."""

    def __init__(self, tree: Path, cache: Path) -> None:
        path = os.pathsep.join([str(tree / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])  # as_cpu.sh's too
        environment = {**os.environ, "PYTHONPATH": path, "POCL_CACHE_DIR": str(cache / "pocl")}
        command = [sys.executable, "-c", _CODE, str(cache)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment, cwd=tree, stdin=pipe, stdout=pipe, text=True)

    def ask(self, **question: Any) -> dict[str, Any]:
        """Return the answer. Raises RuntimeError if the process ends."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended with {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


@contextmanager
def processes(other: Path) -> Iterator[list[Process]]:
    """Start one for each checkout, with an empty cache each."""
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        found = [Process(tree, folder) for tree, folder in zip((other, _HERE), folders, strict=True)]
        for process in found:
            stack.callback(process.end)
        yield found


def invokes(both: Sequence[Process], model: Path, threads: int | None, turns: int, seconds: float) -> Row:
    """Time a model's invokes in turns."""
    told = [process.ask(path=str(model), threads=threads) for process in both]
    times: list[list[dict[str, float]]] = [[], []]
    for _ in range(turns):
        for process, taken in zip(both, times, strict=True):
            taken.append(process.ask(seconds=seconds))
    least = [min(turn["least_s"] for turn in taken) for taken in times]
    typical = [median(turn["median_s"] for turn in taken) for taken in times]
    return _row(model, told, least, typical)


def first(other: Path, model: Path, threads: int | None) -> Row:
    """Measure a model's first answer."""
    with processes(other) as both:
        told = [process.ask(path=str(model), threads=threads) for process in both]
    return _row(model, told, [answer["cpu_s"] for answer in told], [answer["wall_s"] for answer in told])


def measured(args: argparse.Namespace, files: Sequence[Path]) -> Iterator[Row]:
    """Yield the rows of models; where a process ends the model is told of, and left out."""
    left = list(files)
    while left:
        with processes(args.other) as both:
            while left:
                file = left.pop(0)
                try:
                    if args.first:
                        yield first(args.other, file, args.threads)
                    else:
                        yield invokes(both, file, args.threads, args.turns, args.seconds)
                except RuntimeError as error:
                    print(f"{file}: {error}", file=sys.stderr)
                    break


def _row(model: Path, told: Sequence[dict[str, Any]], least: Sequence[float], wall: Sequence[float]) -> Row:
    devices, claimed = [answer["device"] for answer in told], [answer["claimed"] for answer in told]
    return Row(model.name, (least[0], least[1]), (wall[0], wall[1]), (devices[0], devices[1]), (claimed[0], claimed[1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the models that are named and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.trees", description=__doc__)
    parser.add_argument("other", type=Path, help="another checkout")
    parser.add_argument("models", nargs="+", type=Path, help="model files or folders")
    parser.add_argument("--threads", type=int, help="default: chosen")
    parser.add_argument("--first", action="store_true", help="first answers in place of invokes")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a turn")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args(arguments)
    files = [file for given in args.models for file in (sorted(given.rglob("*.tflite")) if given.is_dir() else [given])]
    console = Console(stderr=True)
    found = measured(args, [file.resolve() for file in files])
    rows = list(track(found, "models", len(files), console=console, disable=not console.is_terminal))
    table = Table("model", "other", "this", "ratio", "ratio of walls" if args.first else "ratio of medians", "nodes")
    for row in sorted(rows, key=lambda row: row.ratios[0]):
        ms = (f"{1e3 * value:.4g} ms" for value in row.least)
        table.add_row(row.model, *ms, *(f"{ratio:.2f}" for ratio in row.ratios), "/".join(map(str, row.claimed)))
    Console().print(table)
    if rows:
        ratios = sorted(row.ratios[0] for row in rows), sorted(row.ratios[1] for row in rows)
        print(" and ".join(f"median {median(of):.3f}, least {of[0]:.3f}" for of in ratios), f"of {len(rows)} models")
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
