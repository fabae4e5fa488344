"""Feeds damaged models to a runtime: each must run or be refused with a typed error.

``python -m tools.fuzz FILES_OR_FOLDERS`` (without any: the cases of every operator and random graphs) cuts small files
at every byte, then changes files at random: bytes and blocks of them, offsets, lengths and vtables, decoded numbers and
texts, and whole tables. ``--on`` names runtimes: litecl's ``interpreter``, ``planned`` (a delegate's work without the
compilation), ``device``, and ``litert`` or ``litert-reference``, whose crashes are only counted. Each mutant runs with
``memory_limit`` and ``time_limit``, in processes that are watched; one that ends a process, raises anything else, or
takes more than the limits and their slack is saved, so that it can be tried again. ``--record`` keeps the counts of
every round, and skips the rounds that a file has already.
"""

import argparse
import faulthandler
import gc
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any

import numpy as np
from rich.console import Console

from litecl.perf.peers import litert
from litecl.perf.resident import resident_bytes
from tools.fuzz_record import Record, Round, table
from tools.fuzz_runtimes import LIMITS, RUNTIMES, Limits, Tried
from tools.mutation import seeds
from tools.mutation.plan import Plan

_PATIENCE = 20  # times what a mutant may take, after which its worker counts as hung: others may need the machine
_ENDS = ("timeout", "crash")
_NO_MEMORY = ("bad_alloc", "Cannot allocate", "out of memory", "std::length_error")


@dataclass
class Result:
    """Outcomes, how often each was seen, and what failed: name, content, what happened."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, bytes, str]] = field(default_factory=list)


def _measured(content: bytes, tried: Tried, limits: Limits) -> tuple[str, str]:
    """Return how a mutant ended, and what is wrong with that."""
    Path("/proc/self/clear_refs").write_text("5")  # begins a new peak
    before, start_s = resident_bytes(), time.process_time()
    try:
        with np.errstate(all="ignore"):
            outcome = tried.attempt(content, limits)
    except Exception:  # any other exception is what this search looks for
        return "failed", traceback.format_exc()
    grown, took_s = resident_bytes("VmHWM") - before, time.process_time() - start_s  # not what other processes take
    if grown > limits.most_bytes:
        return "over memory", f"{outcome}: took {grown} bytes, expected at most {limits.most_bytes}"
    if took_s > limits.most_s:
        return "over time", f"{outcome}: took {took_s:.1f} s, expected at most {limits.most_s:.1f} s"
    return outcome, ""


def _work(plan: Plan, tried: Tried, limits: Limits, numbers: range, pipe: Connection, errors: IO[bytes]) -> None:
    """Try models and report how each ended. What a library prints goes to ``errors``, the last model's only."""
    faulthandler.disable()
    gc.freeze()  # what the workers share need not be looked through again for each model
    os.dup2(errors.fileno(), 2)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = used + limits.most_bytes + tried.library_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)
        signal.setitimer(signal.ITIMER_PROF, 2 * limits.most_s)  # ends this process: of its own time, not the machine's
        outcome, trace = _measured(plan[number][1], tried, limits)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send((number, outcome, trace))
    pipe.close()


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    errors: IO[bytes]
    number: int  # of the current model
    heard_s: float


@dataclass
class _Search:
    """The models of a plan, by numbers, for one runtime, and what has been found so far."""

    plan: Plan
    tried: Tried
    limits: Limits
    workers: int
    end: int
    step: int
    result: Result = field(default_factory=Result)

    def begin(self, number: int) -> list[_Worker]:
        """Return a process that tries every so manieth model from one on; none where there is none left."""
        if number >= self.end:
            return []
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed with its worker)
        numbers = range(number, self.end, self.workers * self.step)
        given = self.plan, self.tried, self.limits, numbers, sender, errors
        process = context.Process(target=_work, args=given, daemon=True)
        process.start()
        sender.close()
        return [_Worker(process, receiver, errors, number, time.monotonic())]

    def hear(self, worker: _Worker, *, ready: bool) -> str | None:
        """Take a worker's message, or note that it is silent for too long or has ended; None while it is at work."""
        silent_s = time.monotonic() - worker.heard_s
        if not ready and silent_s < _PATIENCE * self.limits.most_s:
            return None
        try:
            _, outcome, trace = worker.pipe.recv() if ready else (0, "timeout", f"no answer in {silent_s:.0f} s")
        except EOFError:
            worker.process.join()
            outcome = _death(worker)
            trace = f"the process ended with {worker.process.exitcode}"
        self.result.counts[outcome] += 1
        if trace and self.tried.ours:
            failure = f"mutant {worker.number}: {outcome}: {trace}"
            self.result.failures.append((*self.plan[worker.number], failure))
        return str(outcome)


def _death(worker: _Worker) -> str:
    """Return how a process ended, with the signal."""
    code = worker.process.exitcode
    if code == -signal.SIGPROF:
        return "timeout"
    worker.errors.seek(0)
    said = worker.errors.read().decode(errors="replace")
    if any(words in said for words in _NO_MEMORY):
        return "crash: out of memory"
    return f"crash: {signal.Signals(-code).name}" if code < 0 else "crash"


def fuzz(
    plan: Plan,
    workers: int = 1,
    limits: Limits = LIMITS,
    tried: Tried = RUNTIMES["interpreter"],
    numbers: range | None = None,
    progress: Callable[[Result], None] = lambda result: None,
) -> Result:
    """Tries models of a plan, all or those of some numbers, in processes side by side. A process that ends or hangs is
    a failure of ours. progress: called now and then with what has been found so far. An interrupt ends the search.
    """
    numbers = range(len(plan)) if numbers is None else numbers
    if not tried.ours:
        litert.module()  # before processes are forked
    limits = replace(limits, slack_bytes=limits.slack_bytes * tried.slack, slack_s=limits.slack_s * tried.slack)
    search = _Search(plan, tried, limits, workers, min(numbers.stop, len(plan)), numbers.step)
    firsts = numbers[:workers]
    running = [worker for first in firsts for worker in search.begin(first)]
    with suppress(KeyboardInterrupt):
        _listen(running, search, progress)
    for worker in running:
        worker.process.kill()
    return search.result


def _listen(running: list[_Worker], search: _Search, progress: Callable[[Result], None]) -> None:
    """Listen to the workers until none is left."""
    while running:
        ready = wait([worker.pipe for worker in running], timeout=1.0)
        for worker in list(running):
            outcome = search.hear(worker, ready=worker.pipe in ready)
            if outcome is None:
                continue
            worker.number += search.workers * search.step
            worker.heard_s = time.monotonic()
            if outcome.startswith(_ENDS) or worker.number >= search.end:
                worker.process.kill()
                worker.process.join()
                worker.pipe.close()
                worker.errors.close()
                running.remove(worker)
                running += search.begin(worker.number)
        progress(search.result)


def _rounds(args: argparse.Namespace, plan: Plan) -> list[Round]:
    """Return what to run: some mutants on every runtime, then the next on every one."""
    found = []
    for first in range(args.start, len(plan), args.round):
        for given in args.on:
            name, _, every = given.partition(":")
            found.append(Round(name, args.seed, first, min(first + args.round, len(plan)), int(every or 1)))
    return found


def _runtime(text: str) -> str:
    name, _, every = text.partition(":")
    if name not in RUNTIMES or (every and not every.isdigit()):
        raise argparse.ArgumentTypeError(f"expected NAME or NAME:EVERY, with a name of {list(RUNTIMES)}, got {text!r}")
    return text


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, help="models, or folders of them (default: litecl's own)")
    parser.add_argument(
        "--on",
        nargs="+",
        default=["interpreter"],
        type=_runtime,
        metavar="NAME[:EVERY]",
        help=f"of {', '.join(RUNTIMES)}; EVERY tries one mutant of so many (default: interpreter)",
    )
    parser.add_argument("--mutants", type=int, default=20000, metavar="N", help="default: 20000")
    parser.add_argument("--models", type=int, metavar="N", help="how many of the models to start from (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the random changes (default: 0)")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="the number of the first mutant (default: 0)")
    parser.add_argument("--round", type=int, default=10000, metavar="N", help="mutants that are recorded together")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the counts there, and resume from them")
    parser.add_argument("--memory-limit", type=int, default=256, metavar="MIB", help="of a mutant (default: 256)")
    parser.add_argument("--time-limit", type=float, default=2.0, metavar="S", help="of a call (default: 2)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="worker processes (default: 1)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep a device's programs there (default: none)")
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"), metavar="DIR", help="where failures go")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if something failed."""
    args = _arguments().parse_args(argv)
    own = [] if args.paths else [*seeds.of_cases(4), *seeds.of_graphs(200)]
    plan = Plan(own or seeds.of_files(args.paths, args.models), args.mutants, args.seed)
    limits = Limits(args.memory_limit << 20, args.time_limit, cache_dir=args.cache)
    record, console = Record(args.record), Console()
    failed = 0
    for each in _rounds(args, plan):
        if each in record:
            continue
        start_s, numbers = time.monotonic(), range(each.first, each.end, each.every)
        with console.status(f"{each.runtime}, mutants {each.first} to {each.end}"):
            result = fuzz(plan, args.jobs, limits, RUNTIMES[each.runtime], numbers)
        names = [name for name, _, _ in result.failures]
        record.add(replace(each, counts=dict(result.counts), failures=names, seconds=time.monotonic() - start_s))
        for name, content, trace in result.failures:
            path = args.save / f"{each.runtime}-{args.seed}-{trace.split(':')[0].split()[-1]}.tflite"
            args.save.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            console.print(f"{path}: {name}\n{trace}", markup=False, highlight=False)
        failed += len(result.failures)
    console.print(table(record.rounds))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
