"""Feeds damaged models to the reader and the interpreter: every one must run or be refused with a typed error.

``python -m litecl.perf.fuzz FILES_OR_FOLDERS`` cuts small files at every byte, then changes files at random: bytes,
words that may be offsets, and the decoded numbers (enumerations, shapes, indices, scales). Each mutant runs with
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
from collections.abc import Iterator, Sequence
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
from litecl.interpreter.flatbuffer import Record, decode, encode
from litecl.interpreter.reader import read
from litecl.perf.feeds import random_inputs

_SLACK_BYTES = 1 << 26
_SLACK_S = 4
_LIBRARY_BYTES = 1 << 30  # of address space: threads' stacks, heaps
_DEVICE_BYTES = 1 << 34
_PATIENCE = 3  # times what a mutant may take, after which its worker counts as hung
_ENDS = ("timeout", "crash")
_MOST_FED_BYTES = 1 << 24
_CUT_EVERYWHERE_BYTES = 4096
_EXTREMES = (0, 1, 2, 3, 5, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, -1, -2, -128, -(2**31))
_SCALES = (0.0, -1.0, 1e-30, 1e30, float("nan"), float("inf"), 0.5)


@dataclass(frozen=True)
class Plan:
    """What to try: the seeds, how many mutations of them, and where their random numbers come from."""

    seeds: Sequence[tuple[str, bytes]]
    mutations: int
    seed: int = 0

    def __len__(self) -> int:
        return len(self._cuts()) + self.mutations

    def __getitem__(self, number: int) -> tuple[str, bytes]:
        """The name and the content of one damaged model, always the same for the same number."""
        cuts = self._cuts()
        if number < len(cuts):
            name, content = self.seeds[cuts[number][0]]
            return f"{name} cut at {cuts[number][1]}", content[: cuts[number][1]]
        rng = np.random.default_rng([self.seed, number])
        name, content = self.seeds[int(rng.integers(len(self.seeds)))]
        return f"{name} mutation {number}", mutate(content, rng)

    def _cuts(self) -> list[tuple[int, int]]:
        small = [i for i, (_, content) in enumerate(self.seeds) if len(content) <= _CUT_EVERYWHERE_BYTES]
        return [(i, end) for i in small[:8] for end in range(len(self.seeds[i][1]))] if self.mutations > 10000 else []


@dataclass
class Result:
    """How often each outcome was seen, and what failed: name, content, what happened."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, bytes, str]] = field(default_factory=list)


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """The model with one to four changes of one kind."""
    kind = rng.integers(4)
    if kind == 0:
        return _changed_bytes(content, rng)
    if kind == 1:
        return _changed_words(content, rng)
    return _changed_fields(content, rng)


def _changed_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    data = np.frombuffer(content, np.uint8).copy()
    data[rng.integers(0, data.size, rng.integers(1, 5))] = rng.integers(0, 256)
    return data.tobytes()


def _changed_words(content: bytes, rng: np.random.Generator) -> bytes:
    data = np.frombuffer(content, np.uint8).copy()
    word = 4 * int(rng.integers(0, max(1, data.size // 4 - 1)))
    value = int(rng.choice([*_EXTREMES, data.size, data.size // 2]))
    data[word : word + 4] = np.array([value & 0xFFFFFFFF], np.uint32).view(np.uint8)[: data.size - word]
    return data.tobytes()


def _changed_fields(content: bytes, rng: np.random.Generator) -> bytes:
    """Decodes, changes numbers where they stand, and encodes again."""
    root = decode(memoryview(content), "Model", b"TFL3")
    places = list(_places(root))
    for _ in range(int(rng.integers(1, 5))):
        record, name = places[int(rng.integers(len(places)))]
        record.fields[name] = _other(record.fields[name], rng)
    try:
        return bytes(encode(root, b"TFL3"))
    except (LiteclError, OverflowError, TypeError, ValueError):
        return content  # the change does not fit the schema's types


def _places(record: Record) -> Iterator[tuple[Record, str]]:
    """Every field of every table that holds a number or a vector of numbers; the contents of buffers seldom matter."""
    for name, value in record.fields.items():
        if isinstance(value, Record):
            yield from _places(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Record):
                    yield from _places(item)
        elif isinstance(value, bool | int | float | np.ndarray):
            yield record, name


def _other(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(rng.choice([*_EXTREMES, value + 1, value - 1, int(rng.integers(0, 64))]))
    if isinstance(value, float):
        return float(rng.choice(_SCALES))
    return _other_vector(np.asarray(value).copy(), rng)


def _other_vector(vector: Any, rng: np.random.Generator) -> Any:
    """One element changed, or the vector made longer or shorter."""
    kind = rng.integers(4)
    if kind == 0 or not vector.size:
        return vector[: int(rng.integers(0, vector.size + 1))]
    if kind == 1:
        return np.concatenate([vector, vector[:1]])
    place = int(rng.integers(vector.size))
    choices = _SCALES if vector.dtype.kind == "f" else (*_EXTREMES, int(vector[place]) + 1, int(vector[place]) - 1)
    with np.errstate(all="ignore"):
        vector[place] = np.asarray(rng.choice(choices)).astype(vector.dtype)
    return vector


@dataclass(frozen=True)
class Limits:
    """What a mutant may take. delegate: run it on the device too. Slack is what is not counted, or not at once."""

    memory_bytes: int = 1 << 28
    time_s: float = 2.0
    delegate: bool = False

    @property
    def most_bytes(self) -> int:
        """The most by which a worker may grow: the limit, what libraries take besides, and an eighth."""
        return self.memory_bytes + self.memory_bytes // 8 + (_SLACK_BYTES << (2 if self.delegate else 0))

    @property
    def most_s(self) -> float:
        """The most that a mutant may take: two calls, and what is not interrupted."""
        return 2 * self.time_s + (_SLACK_S << (2 if self.delegate else 0))


def attempt(content: bytes, limits: Limits) -> str:
    """Reads, prepares and runs a model: "ran", or the name of the typed error that refuses it."""
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


def _status_bytes(name: str) -> int:
    """VmRSS, or VmHWM: the memory that this process has, or the most that it had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    return 0


def _measured(content: bytes, limits: Limits) -> tuple[str, str]:
    """How a mutant ended, and what is wrong with that."""
    Path("/proc/self/clear_refs").write_text("5")  # begins a new peak
    before, start_s = _status_bytes("VmRSS"), time.monotonic()
    try:
        with np.errstate(all="ignore"):
            outcome = attempt(content, limits)
    except Exception:  # whatever escapes is what this looks for
        return "failed", traceback.format_exc()
    grown, took_s = _status_bytes("VmHWM") - before, time.monotonic() - start_s
    if grown > limits.most_bytes:
        return "over memory", f"{outcome}: took {grown} bytes, expected at most {limits.most_bytes}"
    if took_s > limits.most_s:
        return "over time", f"{outcome}: took {took_s:.1f} s, expected at most {limits.most_s:.1f} s"
    return outcome, ""


def _work(plan: Plan, limits: Limits, start: int, step: int, pipe: Connection) -> None:
    """Tries every ``step``-th model from ``start`` on and says how each ended."""
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
    number: int  # of the model that it is at
    heard_s: float


def fuzz(plan: Plan, workers: int = 1, limits: Limits = Limits(), start: int = 0) -> Result:
    """Tries every model of a plan from ``start`` on in ``workers`` processes. One that ends or hangs is a failure."""
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
    return result


def _heard(worker: _Worker, ready: bool, plan: Plan, limits: Limits, result: Result) -> str | None:
    """Takes what a worker says, or notes that it is silent for too long or has ended; None while it is at work."""
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


def seeds(paths: Sequence[Path], most: int | None = None) -> list[tuple[str, bytes]]:
    """The models among files and folders, of at most 64 KiB, that can be read as they are; ``most`` evenly chosen."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.tflite")))]
    found = []
    for file in files:
        content = file.read_bytes()
        if len(content) <= 1 << 16:
            try:
                read(content)
            except LiteclError:
                continue
            found.append((file.name, content))
    if most is None or most >= len(found):
        return found
    return [found[i * len(found) // most] for i in range(most)]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m litecl.perf.fuzz", description=__doc__.splitlines()[0])
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
    start_s = time.monotonic()
    limits = Limits(args.memory_limit << 20, args.time_limit, args.delegate)
    result = fuzz(plan, args.jobs, limits, args.start)
    title = f"{result.counts.total()} damaged models from {len(plan.seeds)} in {time.monotonic() - start_s:.0f} s"
    table = Table("outcome", "models", title=title)
    for outcome, count in result.counts.most_common():
        table.add_row(outcome, str(count))
    console = Console()
    console.print(table)
    for i, (name, content, trace) in enumerate(result.failures):
        args.save.mkdir(parents=True, exist_ok=True)
        (args.save / f"{i}.tflite").write_bytes(content)
        console.print(f"{args.save / f'{i}.tflite'}: {name} (--seed {args.seed})\n{trace}", markup=False)
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
