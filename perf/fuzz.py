"""Feeds damaged models to the reader and the interpreter: every one must run or be refused with a typed error.

``python -m litecl.perf.fuzz FILES_OR_FOLDERS`` cuts small files at every byte, then changes files at random: bytes,
words that may be offsets, and the decoded numbers (enumerations, shapes, indices, scales). Workers with limited memory
and time do the work; what neither runs nor is refused is saved, so that it can be tried again.
"""

import argparse
import multiprocessing
import resource
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.flatbuffer import Record, decode, encode
from litecl.interpreter.reader import read
from litecl.perf.feeds import random_inputs

_MEMORY_BYTES = 1 << 30
_TIME_S = 20.0
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


def attempt(content: bytes) -> str:
    """Reads, prepares and runs a model: "ran", or the name of the typed error that refuses it."""
    try:
        interpreter = Interpreter(read(content))
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        sizes = [float(np.prod(d["shape"], dtype=np.float64)) * np.dtype(d["dtype"]).itemsize for d in details]
        if sum(sizes) > _MOST_FED_BYTES:
            return "prepared"
        for detail, value in zip(details, random_inputs(details, 0).values(), strict=False):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    except LiteclError as error:
        return type(error).__name__
    return "ran"


def _work(plan: Plan, start: int, step: int, pipe: Connection) -> None:
    """Tries every ``step``-th model from ``start`` on and says how each ended."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY_BYTES, resource.RLIM_INFINITY))
    for number in range(start, len(plan), step):
        try:
            with np.errstate(all="ignore"):
                outcome, trace = attempt(plan[number][1]), ""
        except Exception:  # whatever escapes is what this looks for
            outcome, trace = "failed", traceback.format_exc()
        pipe.send((number, outcome, trace))
    pipe.close()


def fuzz(plan: Plan, workers: int = 1) -> Result:
    """Tries every model of a plan in ``workers`` processes. One that ends or hangs counts as a failure."""
    result = Result()
    context = multiprocessing.get_context("fork")
    for first in range(workers):
        number = first
        while number < len(plan):
            number = _watch(context, plan, number, workers, result)
    return result


def _watch(context: Any, plan: Plan, start: int, step: int, result: Result) -> int:
    """Runs one worker until it is done, dies or hangs; the number to go on with."""
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_work, args=(plan, start, step, sender), daemon=True)
    worker.start()
    sender.close()
    number = start
    while number < len(plan):
        try:
            heard = receiver.poll(_TIME_S)
            _, outcome, trace = receiver.recv() if heard else (number, "timeout", f"no answer in {_TIME_S:.0f} s")
        except EOFError:
            outcome, trace = "crash", "the process ended"
        if outcome == "timeout" and _loops(plan[number][1]):
            outcome, trace = "endless loop", ""
        result.counts[outcome] += 1
        if trace:
            result.failures.append((*plan[number], trace))
        number += step
        if outcome in ("timeout", "endless loop", "crash"):
            break
    worker.kill()
    worker.join()
    return number


def _loops(content: bytes) -> bool:
    """Whether a model has a loop, which may be one without an end."""
    return any(node.op.name == "WHILE" for graph in read(content).subgraphs for node in graph.nodes)


def seeds(paths: Sequence[Path]) -> list[tuple[str, bytes]]:
    """The models among files and folders, of at most 64 KiB, that can be read as they are."""
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
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m litecl.perf.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, help="models, or folders of them, to start from")
    parser.add_argument("--mutations", type=int, default=20000, metavar="N", help="default: 20000")
    parser.add_argument("--seed", type=int, default=0, help="of the random changes (default: 0)")
    parser.add_argument("--save", type=Path, default=Path("fuzz-failures"), metavar="DIR", help="where failures go")
    args = parser.parse_args(argv)
    plan = Plan(seeds(args.paths), args.mutations, args.seed)
    result = fuzz(plan)
    table = Table("outcome", "models", title=f"{len(plan)} damaged models from {len(plan.seeds)} seeds")
    for outcome, count in result.counts.most_common():
        table.add_row(outcome, str(count))
    console = Console()
    console.print(table)
    for i, (name, content, trace) in enumerate(result.failures):
        args.save.mkdir(parents=True, exist_ok=True)
        (args.save / f"{i}.tflite").write_bytes(content)
        console.print(f"{args.save / f'{i}.tflite'}: {name}\n{trace}", markup=False)
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
