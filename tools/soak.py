"""Many interpreters in many threads, for a long time. ``python -m tools.soak MODEL... --threads 8
--invokes 100000`` is one that takes minutes. Every thread has interpreters of its own, made of the models that are
named, one after another, and invokes them in turn on inputs that change from one invoke to the next. Each result is
compared, bit by bit, with what one interpreter alone in one thread has made of the same inputs. With ``--made``
interpreters are made, invoked once and dropped, and what the process has grown by is told (Linux).
"""

import argparse
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

from litecl.comparison import same_bits
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.perf.feeds import prepare, random_inputs
from litecl.perf.resident import resident_bytes

MODES: dict[str, dict[str, Any]] = {
    "one": {"device": "native", "num_threads": 1},
    "two": {"device": "native", "num_threads": 2},
    "queued": {"device": "native", "num_threads": 1, "queue_loops": True},
    "profile": {"device": "native", "num_threads": 1, "profile": True},
    "basic": {"device": "basic"},
    "pthread": {"device": "pthread"},
    "queued on pthread": {"device": "pthread", "queue_loops": True},
}
_FEEDS = 3


@dataclass(frozen=True)
class Subject:
    """A model with inputs, invoke by invoke, and the expected results when they are fed one after another."""

    path: str
    feeds: tuple[dict[str, Array], ...]
    expected: tuple[tuple[Array, ...], ...]


@dataclass
class Outcome:
    """The outcome of one run over all of its threads. Seconds are those from the first invoke to the last."""

    right: int = 0
    wrong: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    hung: int = 0

    @property
    def passed(self) -> bool:
        """Return whether every result was right and every thread ended."""
        return not (self.wrong or self.errors or self.hung)


def subject(path: str, options: dict[str, Any]) -> Subject:
    """Return a model, and its results in a thread of its own."""
    interpreter = opened(path, options)
    details = interpreter.get_input_details()
    feeds = tuple(random_inputs(details, seed) for seed in range(_FEEDS))
    interpreter.reset_all_variables()
    expected = tuple(run(interpreter, feed) for feed in feeds)
    interpreter.reset_all_variables()
    again = tuple(run(interpreter, feed) for feed in feeds)
    if not all(same(a, b) for a, b in zip(expected, again, strict=True)):
        raise ModelError(f"{path}: has resources that no reset restores, so its results cannot be predicted")
    return Subject(path, feeds, expected)


def same(got: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Return whether all bits are equal; NaN equals NaN."""
    return all(same_bits(a, b) for a, b in zip(got, expected, strict=True))


def opened(path: str, options: dict[str, Any]) -> Interpreter:
    """Return an interpreter with a delegate, ready to be invoked."""
    interpreter = Interpreter(path, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, feed: dict[str, Array]) -> tuple[Array, ...]:
    """Return the outputs of an invoke."""
    prepare(interpreter, feed)
    interpreter.invoke()
    return tuple(interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details())


def soak(
    subjects: Sequence[Subject], options: dict[str, Any], threads: int, each: int, invokes: int, timeout_s: float
) -> Outcome:
    """Run threads with interpreters of their own, each thread so many invokes in all."""
    outcome, lock, start = Outcome(), threading.Lock(), threading.Barrier(threads + 1)
    workers = [
        threading.Thread(target=_worker, args=(i, subjects, options, each, invokes, outcome, lock, start), daemon=True)
        for i in range(threads)
    ]
    for worker in workers:
        worker.start()
    start.wait()
    start_s = time.perf_counter()
    for worker in workers:
        worker.join(max(0.1, timeout_s - (time.perf_counter() - start_s)))
    outcome.seconds = time.perf_counter() - start_s
    outcome.hung = sum(worker.is_alive() for worker in workers)
    return outcome


def _worker(
    number: int,
    subjects: Sequence[Subject],
    options: dict[str, Any],
    each: int,
    invokes: int,
    outcome: Outcome,
    lock: Any,
    start: threading.Barrier,
) -> None:
    right = wrong = 0
    try:
        mine = [subjects[(number + i) % len(subjects)] for i in range(each)]
        interpreters = [opened(s.path, options) for s in mine]
        calls = [_Calls(i, s) for i, s in zip(interpreters, mine, strict=True)]
    except BaseException as error:
        with lock:
            outcome.errors.append(repr(error))
        start.wait()
        return
    start.wait()
    try:
        for n in range(invokes):
            if calls[n % each].next():
                right += 1
            else:
                wrong += 1
    except BaseException as error:
        with lock:
            outcome.errors.append(repr(error))
    with lock:
        outcome.right += right
        outcome.wrong += wrong


class _Calls:
    """One interpreter, invoked on one feed after another; states are reset before the first."""

    def __init__(self, interpreter: Interpreter, subject: Subject) -> None:
        self._interpreter, self._subject, self._next = interpreter, subject, 0
        self._inputs = {d["name"]: d["index"] for d in interpreter.get_input_details()}
        self._outputs = [d["index"] for d in interpreter.get_output_details()]

    def next(self) -> bool:
        """Return whether the next invoke is right."""
        turn = self._next % _FEEDS
        self._next += 1
        if turn == 0:
            self._interpreter.reset_all_variables()
        for name, value in self._subject.feeds[turn].items():
            self._interpreter.set_tensor(self._inputs[name], value)
        self._interpreter.invoke()
        return same([self._interpreter.get_tensor(t) for t in self._outputs], self._subject.expected[turn])


def made_and_dropped(paths: Sequence[str], options: dict[str, Any], count: int) -> list[tuple[int, int]]:
    """Make, invoke and drop interpreters: how many so far, and bytes resident then, a line for every tenth."""
    lines = []
    for i in range(count):
        opened(paths[i % len(paths)], options).invoke()
        if (i + 1) % max(1, count // 10) == 0:
            lines.append((i + 1, resident_bytes()))
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exit with 1 if a result was wrong or a thread hung."""
    parser = argparse.ArgumentParser(description="many interpreters in many threads, for a long time")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--interpreters", type=int, default=1, help="of each thread (default 1)")
    parser.add_argument("--invokes", type=int, default=10_000, help="of each thread (default 10000)")
    parser.add_argument("--mode", choices=MODES, action="append", help="default: all")
    parser.add_argument("--times", type=int, default=1, help="how often (default 1)")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds after which a thread counts as hung")
    parser.add_argument("--made", type=int, default=0, help="make and drop this many interpreters instead")
    parser.add_argument("--json", action="store_true", help="a line of JSON for every run")
    options = parser.parse_args(arguments)
    console, failed = Console(), False
    for mode in options.mode or MODES:
        if options.made:
            for count, used in made_and_dropped(options.models, MODES[mode], options.made):
                console.print(f"{mode}: {count} made, {used / 1e6:.1f} MB")
            continue
        subjects = [subject(path, MODES[mode]) for path in options.models]
        for _ in range(options.times):
            before = resident_bytes()
            found = soak(subjects, MODES[mode], options.threads, options.interpreters, options.invokes, options.timeout)
            failed |= not found.passed
            grown = resident_bytes() - before
            if options.json:
                print(json.dumps({"mode": mode, **asdict(found), "grown_bytes": grown}), flush=True)
            else:
                rate = (found.right + found.wrong) / found.seconds
                console.print(
                    f"{mode}: {found.right} right, {found.wrong} wrong, {found.hung} threads hung, "
                    f"{len(found.errors)} errors in {found.seconds:.1f} s ({rate:.0f}/s), grown by {grown / 1e6:.1f} MB"
                )
                for error in found.errors:
                    console.print(error)
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
