"""Feeds damaged models to the reader and the interpreter: each must run or be refused with a typed error.

``python -m tools.fuzz FILES_OR_FOLDERS`` cuts small files at every byte, then changes files at random:
bytes, words that may be offsets, and the decoded numbers (enumerations, shapes, indices, scales). Each mutant runs with
``memory_limit`` and ``time_limit``, in worker processes that are watched; one that ends a process, raises anything
else, or takes more than the limits and their slack is saved, so that it can be tried again.
"""

import argparse
import multiprocessing
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import read
from litecl.perf.feeds import random_inputs
from litecl.perf.resident import resident_bytes
from tools.mutants import Plan, seeds

_SLACK_BYTES = 1 << 26
_SLACK_S = 4
_LIBRARY_BYTES = 1 << 30  # of address space: threads' stacks, heaps
_DEVICE_BYTES = 1 << 34
_PATIENCE = 3  # times what a mutant may take, after which its worker counts as hung
_ENDS = ("timeout", "crash")
_MOST_FED_BYTES = 1 << 24


@dataclass
class Result:
    """Outcomes, how often each was seen, and what failed: name, content, what happened."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, bytes, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Limits:
    """Limits of a mutant. delegate: run it on the device too. Slack is memory that is not counted, or not
    immediately.
    """

    memory_bytes: int = 1 << 28
    time_s: float = 2.0
    delegate: bool = False

    @property
    def most_bytes(self) -> int:
        """The most by which a worker may grow: the limit, what libraries take in addition, and an eighth."""
        return self.memory_bytes + self.memory_bytes // 8 + (_SLACK_BYTES << (2 if self.delegate else 0))

    @property
    def most_s(self) -> float:
        """The longest that a mutant may take: two calls, and what cannot be interrupted."""
        return 2 * self.time_s + (_SLACK_S << (2 if self.delegate else 0))


def attempt(content: bytes, limits: Limits) -> str:
    """Read, prepare and run a model: "ran", or the name of the typed error that refuses it."""
    delegates = [CLDelegate(num_threads=1, cache_dir=None)] if limits.delegate else []
    try:
        interpreter = Interpreter(
            read(content), delegates=delegates, memory_limit=limits.memory_bytes, time_limit=limits.time_s
        )
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        sizes = [float(np.prod(d["shape"], dtype=np.float64)) * np.dtype(d["dtype"]).itemsize for d in details]
        if sum(sizes) > _MOST_FED_BYTES:
            return "prepared"
        for detail, value in zip(details, random_inputs(details, 0).values(), strict=False):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            interpreter.get_tensor(detail["index"])
    except LiteclError as error:
        return type(error).__name__
    return "ran"


def _measured(content: bytes, limits: Limits) -> tuple[str, str]:
    """Return how a mutant ended, and what is wrong with that."""
    Path("/proc/self/clear_refs").write_text("5")  # begins a new peak
    before, start_s = resident_bytes(), time.process_time()
    try:
        with np.errstate(all="ignore"):
            outcome = attempt(content, limits)
    except Exception:  # any other exception is what this search looks for
        return "failed", traceback.format_exc()
    grown, took_s = resident_bytes("VmHWM") - before, time.process_time() - start_s  # not what other processes take
    if grown > limits.most_bytes:
        return "over memory", f"{outcome}: took {grown} bytes, expected at most {limits.most_bytes}"
    if took_s > limits.most_s:
        return "over time", f"{outcome}: took {took_s:.1f} s, expected at most {limits.most_s:.1f} s"
    return outcome, ""


def _work(plan: Plan, limits: Limits, start: int, step: int, pipe: Connection) -> None:
    """Try every ``step``-th model from ``start`` on and report how each ended."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = used + limits.most_bytes + (_DEVICE_BYTES if limits.delegate else _LIBRARY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(start, len(plan), step):
        outcome, trace = _measured(plan[number][1], limits)
        pipe.send((number, outcome, trace))
    pipe.close()


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    number: int  # of the current model
    heard_s: float


def fuzz(
    plan: Plan,
    workers: int = 1,
    limits: Limits = Limits(),
    start: int = 0,
    progress: Callable[[Result], None] = lambda result: None,
) -> Result:
    """Tries every model of a plan from ``start`` on in ``workers`` processes. A process that ends or hangs is a
    failure. progress: called now and then with what has been found so far. An interrupt ends the search.
    """
    result = Result()
    context = multiprocessing.get_context("fork")

    def begin(number: int) -> list[_Worker]:
        if number >= len(plan):
            return []
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(plan, limits, number, workers, sender), daemon=True)
        process.start()
        sender.close()
        return [_Worker(process, receiver, number, time.monotonic())]

    running = [worker for first in range(workers) for worker in begin(start + first)]
    with suppress(KeyboardInterrupt):
        _search(running, begin, plan, workers, limits, result, progress)
    for worker in running:
        worker.process.kill()
    return result


def _search(
    running: list[_Worker],
    begin: Callable[[int], list[_Worker]],
    plan: Plan,
    workers: int,
    limits: Limits,
    result: Result,
    progress: Callable[[Result], None],
) -> None:
    """Listen to the workers until none is left."""
    while running:
        ready = wait([worker.pipe for worker in running], timeout=1.0)
        for worker in list(running):
            outcome = _heard(worker, worker.pipe in ready, plan, limits, result)
            if outcome is None:
                continue
            worker.number += workers
            worker.heard_s = time.monotonic()
            if outcome in _ENDS or worker.number >= len(plan):
                worker.process.kill()
                worker.process.join()
                running.remove(worker)
                running += begin(worker.number)
        progress(result)


def _heard(worker: _Worker, ready: bool, plan: Plan, limits: Limits, result: Result) -> str | None:
    """Take a worker's message, or note that it is silent for too long or has ended; None while it is at work."""
    silent_s = time.monotonic() - worker.heard_s
    if not ready and silent_s < _PATIENCE * limits.most_s:
        return None
    try:
        _, outcome, trace = worker.pipe.recv() if ready else (0, "timeout", f"no answer in {silent_s:.0f} s")
    except EOFError:
        worker.process.join()
        outcome, trace = "crash", f"the process ended with {worker.process.exitcode}"
    result.counts[outcome] += 1
    if trace:
        result.failures.append((*plan[worker.number], f"mutant {worker.number}: {outcome}: {trace}"))
    return str(outcome)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, help="models, or folders of them, to start from")
    parser.add_argument("--mutants", type=int, default=20000, metavar="N", help="default: 20000")
    parser.add_argument("--models", type=int, metavar="N", help="how many of the models to start from (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the random changes (default: 0)")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="the number of the first mutant (default: 0)")
    parser.add_argument("--memory-limit", type=int, default=256, metavar="MIB", help="of a mutant (default: 256)")
    parser.add_argument("--time-limit", type=float, default=2.0, metavar="S", help="of a call (default: 2)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="worker processes (default: 1)")
    parser.add_argument("--delegate", action="store_true", help="run the mutants on an OpenCL device")
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"), metavar="DIR", help="where failures go")
    args = parser.parse_args(argv)
    plan = Plan(seeds(args.paths, args.models), args.mutants, args.seed)
    limits = Limits(args.memory_limit << 20, args.time_limit, args.delegate)
    console, start_s = Console(), time.monotonic()
    with console.status("") as status:
        result = fuzz(plan, args.jobs, limits, args.start, lambda found: status.update(_so_far(found, start_s)))
    table = Table("outcome", "models", title=f"{_so_far(result, start_s)}, of {len(plan.seeds)} files")
    for outcome, count in result.counts.most_common():
        table.add_row(outcome, str(count))
    console.print(table)
    for i, (name, content, trace) in enumerate(result.failures):
        args.save.mkdir(parents=True, exist_ok=True)
        (args.save / f"{i}.tflite").write_bytes(content)
        console.print(f"{args.save / f'{i}.tflite'}: {name} (--seed {args.seed})\n{trace}", markup=False)
    return 1 if result.failures else 0


def _so_far(result: Result, start_s: float) -> str:
    return f"{result.counts.total()} mutants, {len(result.failures)} failures, {time.monotonic() - start_s:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
