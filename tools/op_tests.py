"""TensorFlow Lite's own operator tests: TensorFlow, TFLiteConverter with LiteRT, and litecl, side by side.

    PYTHONPATH=tests python -m tools.op_tests FOLDER [NAME ...] [--most 24] [--json FILE [--resume]] [--again FILE]

FOLDER is a copy of ``tflite/testing/op_tests`` from LiteRT's sources, or of ``tensorflow/lite/testing/op_tests`` from
TensorFlow's, which is not part of litecl. Of each test at most ``--most`` sets of parameters are drawn, with a fixed
seed, and run in processes that are ended at ``--limit`` seconds. ``--again`` runs those that an earlier ``--json`` has
as failures, ``--resume`` those that ``--json`` lacks because its run, of the same options, was cut off.

In LiteRT a file passes if the reference kernels, or else the optimised ones, compute what TensorFlow does: a few
operators have no reference kernel, or a wrong one. So pass TFLiteConverter's files and litecl's, which must pass in
litecl's interpreter too, and there alone if they have operators of litecl's own. The exit code is 1 if the peer passes
a test that litecl does not, 2 if there is no test to run.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import tensorflow as tf
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tools.op_test_folder import OpTest, op_tests
from tools.op_test_run import Result, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for every test and the failures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only tests of these names")
    parser.add_argument("--most", type=int, default=24, help="sets of parameters of a test (24)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a set of parameters (60)")
    parser.add_argument("--json", type=Path, help="write the results there, a line for each")
    parser.add_argument("--resume", action="store_true", help="keep what --json has already, and run the rest")
    parser.add_argument("--again", type=Path, help="only the failures of this earlier --json")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.worker:
        return _work(args.folder)
    if args.resume and args.json is None:
        parser.error("--resume needs --json, the file of the run that it goes on with")
    tests, faults = op_tests(args.folder)
    for fault in faults:
        print(f"cannot be read: {fault}", file=sys.stderr)
    if lack := _lack(tests, faults, args):
        print(lack, file=sys.stderr)
        return 2
    labels = {i: tests[i].label for i in _chosen(tests, args)}
    past = {r.label: r for r in _read(args.json)} if args.resume and args.json.exists() else {}
    with (args.json or Path(os.devnull)).open("a" if args.resume else "w") as lines:
        new = _spread({i: label for i, label in labels.items() if label not in past}, args, lines)
    results = {i: new[i] if i in new else past[label] for i, label in sorted(labels.items())}
    console = Console(width=200)
    console.print(_table(tests, results))
    failures = [r for r in results.values() if r.peer == "ok" and not _passes(r)]
    for result in failures:
        console.print(f"{result.label}\n    {result.ours} | LiteRT: {result.litert}", highlight=False, markup=False)
    computed = [r for r in results.values() if r.tensorflow == "ok"]
    console.print(
        f"{len(results)} sets of parameters, {len(computed)} that TensorFlow computes: TFLiteConverter passes "
        f"{sum(r.peer == 'ok' for r in computed)}, litecl {sum(map(_passes, computed))}; "
        f"{len(failures)} that the peer passes and litecl does not"
        + (f"; {len(faults)} files or tests that cannot be read" if faults else "")
    )
    return int(bool(failures))


def _passes(result: Result) -> bool:
    return result.ours == "ok" and result.litert in ("ok", "")


def _lack(tests: Sequence[OpTest], faults: Sequence[str], args: argparse.Namespace) -> str | None:
    """Return why there is nothing to run."""
    if not tests:
        files = len([*args.folder.glob("*.py")])
        return f"{args.folder}: expected LiteRT's op_tests, found none in {files} files ({len(faults)} cannot be read)"
    unknown = sorted({*args.names} - {test.name for test in tests})
    return f"{args.folder}: no test is called {', '.join(unknown)}" if unknown else None


def _read(path: Path) -> list[Result]:
    """Return the results of an earlier run."""
    return [Result(**json.loads(line)) for line in path.read_text().splitlines()]


def _chosen(tests: Sequence[OpTest], args: argparse.Namespace) -> list[int]:
    """Return the numbers of the tests that are run."""
    if args.again is not None:
        failed = {r.label for r in _read(args.again) if r.tensorflow in ("ok", "") and not _passes(r)}
        return [i for i, test in enumerate(tests) if test.label in failed]
    by_name: dict[str, list[int]] = defaultdict(list)
    for i, test in enumerate(tests):
        if not args.names or test.name in args.names:
            by_name[test.name].append(i)
    draw = random.Random(args.seed)
    chosen = [i for numbers in by_name.values() for i in draw.sample(numbers, min(args.most, len(numbers)))]
    return draw.sample(chosen, len(chosen))


def _work(folder: Path) -> int:
    """Run the tests whose numbers come in; write a line of JSON for each, and nothing that others print."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tests, _ = op_tests(folder)
    for line in sys.stdin:
        print(json.dumps(asdict(run(tests[int(line)]))), file=answers, flush=True)
    return 0


def _spread(labels: Mapping[int, str], args: argparse.Namespace, lines: TextIO) -> dict[int, Result]:
    """Run tests in several processes; those that take too long, or end their process, have no answer."""
    results: dict[int, Result] = {}
    waiting = iter(track(labels, console=Console(file=sys.stderr)))
    lock = threading.Lock()

    def serve() -> None:
        worker = _Worker(args.folder)
        while True:
            with lock:
                number = next(waiting, None)
            if number is None:
                return worker.end()
            answer = worker.ask(number, args.limit)
            if answer is None:
                worker.end()
                worker = _Worker(args.folder)
            results[number] = Result(**answer) if answer else Result(labels[number], "", "", "no answer")
            with lock:
                print(json.dumps(asdict(results[number])), file=lines, flush=True)

    threads = [threading.Thread(target=serve) for _ in range(args.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class _Worker:
    """A process that runs tests by number."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tools.op_tests", str(folder), "--worker"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._begun = False

    def ask(self, number: int, limit_s: float) -> dict[str, Any] | None:
        """Return a test's result, None where the process ended or took too long (longer for the first: it imports)."""
        assert self._process.stdin is not None and self._process.stdout is not None
        timer = threading.Timer(limit_s if self._begun else limit_s + 120, self._process.kill)
        timer.start()
        try:
            print(number, file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        timer.cancel()
        self._begun = True
        answer: dict[str, Any] | None = json.loads(line) if line.strip() else None
        return answer

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def _table(tests: Sequence[OpTest], results: dict[int, Result]) -> Table:
    columns = ("test", "parameters", "TensorFlow", "TFLiteConverter", "litecl", "peer's alone")
    table = Table(*columns, caption="Files pass in LiteRT if its reference or its optimised kernels are right.")
    by_name: dict[str, list[Result]] = defaultdict(list)
    for number, result in results.items():
        by_name[tests[number].name].append(result)
    for name, rows in by_name.items():
        table.add_row(name, *map(str, _counts(rows)))
    return table


def _counts(rows: Iterable[Result]) -> list[int]:
    rows = list(rows)
    computed = [r for r in rows if r.tensorflow == "ok"]
    passed = [r for r in computed if r.peer == "ok"]
    ours = [r for r in computed if _passes(r)]
    return [len(rows), len(computed), len(passed), len(ours), sum(not _passes(r) for r in passed)]


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    sys.exit(main())
