"""Batches of random models, each in a watched process of its own: a crash or a hang is a finding too."""

import multiprocessing
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.writer import write
from litecl.random_graphs.graphs import THEMES, Drawn, draw, families_of, kind_of
from litecl.random_graphs.sketch import T
from tools.graph_fuzz.minimise import listing, minimise
from tools.graph_fuzz.modes import MODES, Mode, Shared, adapted, entered, interpreter
from tools.graph_fuzz.oracle import CERTAIN, MANY, Outputs, differences, run
from tools.graph_fuzz.strange import for_strange_inputs, with_strange_inputs

_MOST_FUNCTIONS = {True: 100, False: 85}  # of a batch, linked or not; PoCL takes some 0.2 s to compile one
_QUIET_S, _BUSY_S = 900.0, 90.0  # of wall-clock and processor time without an answer: a hang
_LONGEST_S = 20.0  # of an invoke by the interpreter: a loop may wait for what strange inputs never reach
_FIRST_BUSY_S = 600.0  # of processor time before the first answer, when everything is compiled


@dataclass(frozen=True)
class Batch:
    """Graphs of one theme in one mode. families: how many of the theme's it draws from, which limits the kernels that
    PoCL must compile. first: the number of the first graph, to repeat a single one. strange: see ``strange.py``.
    """

    seed: int
    number: int
    graphs: int
    theme: int
    mode: str
    families: int = 5
    first: int = 0
    strange: bool = False


@dataclass(frozen=True)
class Finding:
    """A graph that differs, fails, crashes or hangs: its name is that of its batch and its number there."""

    batch: Batch
    graph: int
    kind: str
    what: str
    text: str = ""

    @property
    def name(self) -> str:
        """Return the argument of ``--only``."""
        return f"{self.batch.number}:{self.graph}"


@dataclass
class Result:
    """Counts of what has run: graphs by mode, nodes on the device (operator, type, mode), launches by kernel file."""

    graphs: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    nodes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    on_cpu: Counter[tuple[str, str]] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: "Result") -> None:
        """Add the counts of another process."""
        self.graphs += other.graphs
        self.skipped += other.skipped
        self.nodes += other.nodes
        self.on_cpu += other.on_cpu
        self.launches += other.launches
        self.findings += other.findings


def batch(
    seed: int, number: int, graphs: int, modes: Sequence[str], families: int = 5, *, strange: bool = False
) -> Batch:
    """Return the batch with a number: themes and modes in an order that covers all pairs."""
    themes = [i for i, theme in enumerate(THEMES) if not strange or T.FLOAT32 in theme.types]
    rng = np.random.default_rng([seed, number // len(themes)])
    theme = int(rng.permutation(themes)[number % len(themes)])
    mode = modes[(number + number // len(themes)) % len(modes)]
    return Batch(seed, number, graphs, theme, mode, families, strange=strange)


def drawn_of(batch: Batch, graph: int) -> Drawn:
    """One of a batch's models."""
    theme = THEMES[batch.theme]
    families = families_of(theme, np.random.default_rng([batch.seed, batch.number]), batch.families)
    drawn = adapted(draw([batch.seed, batch.number, graph], theme, families), MODES[batch.mode])
    if not batch.strange:
        return drawn
    return with_strange_inputs(drawn, np.random.default_rng([batch.seed, batch.number, graph, 1]))


def _mode_of(batch: Batch) -> Mode:
    mode = MODES[batch.mode]
    return for_strange_inputs(mode) if batch.strange else mode


def reference(drawn: Drawn) -> tuple[Drawn, Outputs]:
    """Return the interpreter's answers, up to (and without) the first call that it refuses."""
    for count in range(len(drawn.calls), 0, -1):
        shorter = replace(drawn, calls=drawn.calls[:count])
        try:
            return shorter, run(Interpreter(shorter.model, time_limit=_LONGEST_S), shorter.calls)
        except LiteclError:
            continue
    return replace(drawn, calls=()), []


def check(drawn: Drawn, mode: Mode, cache_dir: Path | None, result: Result | None = None, most: int = MANY) -> str:
    """Return what is wrong with a model on the device; empty if all is well. Raises what the device raises. most: see
    ``oracle.differences``.
    """
    drawn, expected = reference(drawn)
    if not drawn.calls:
        if result is not None:
            result.skipped += 1
        return ""
    on_device = interpreter(drawn, mode, cache_dir)
    got = run(on_device, drawn.calls)
    if result is not None:
        _count(result, drawn, mode, on_device)
    found = differences(drawn.model, drawn.calls, expected, got, most)
    return "; ".join(f"call {d.call}, output {d.output}: {d.what}" for d in found)


def _count(result: Result, drawn: Drawn, mode: Mode, on_device: Interpreter) -> None:
    result.graphs[mode.name] += 1
    for row in on_device.delegation_report().nodes:
        graph = drawn.model.subgraphs[row.subgraph]
        name, kind = row.op, kind_of(graph, graph.nodes[row.node])
        if row.claimed:
            result.nodes[name, kind, mode.name] += 1
        else:
            result.on_cpu[name, kind] += 1


def outcome(
    drawn: Drawn, mode: Mode, cache_dir: Path | None, result: Result | None = None, most: int = MANY
) -> tuple[str, str]:
    """Return the kind of what is wrong, and what; two empty strings where nothing is."""
    try:
        what = check(drawn, mode, cache_dir, result, most)
    except Exception:  # any exception on the device is what this search looks for
        return "error", traceback.format_exc()[-2000:]
    return ("different", what) if what else ("", "")


def run_batch(batch: Batch, cache_dir: Path | None, output: Path | None, tell: Callable[[int], object]) -> Result:
    """Run a batch in this process; ``tell`` hears of every graph before it runs."""
    mode, result = _mode_of(batch), Result()
    cache = None if mode.linked else cache_dir
    shared = Shared(_MOST_FUNCTIONS[mode.linked])
    with entered(mode), np.errstate(all="ignore"):
        taken = []
        for number in range(batch.first, batch.first + batch.graphs):
            launches = shared.take(drawn_of(batch, number), mode)
            if launches is None:
                result.skipped += 1
            else:
                result.launches += launches
                taken.append(number)
        with shared.used():
            for number in taken:
                tell(number)
                drawn = drawn_of(batch, number)
                kind, what = outcome(drawn, mode, cache, result)
                if kind == "different":
                    kind, what = outcome(drawn, mode, cache, most=CERTAIN)
                if kind:
                    result.findings.append(_minimised(batch, number, drawn, (kind, what), cache, output))
    return result


def _minimised(
    batch: Batch, number: int, drawn: Drawn, seen: tuple[str, str], cache: Path | None, output: Path | None
) -> Finding:
    mode = _mode_of(batch)
    smaller = minimise(drawn, lambda candidate: outcome(candidate, mode, cache)[0] == seen[0])
    again = outcome(smaller, mode, cache)
    if not again[0]:
        again = seen[0], f"{seen[1]} (not when it is run again)"
    finding = Finding(batch, number, *again, listing(smaller))
    if output is not None:
        save(finding, smaller, output)
    return finding


def save(finding: Finding, drawn: Drawn, output: Path) -> None:
    """Write the model, its inputs, and what is wrong."""
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{finding.batch.seed}-{finding.name.replace(':', '-')}"
    path.with_suffix(".tflite").write_bytes(write(drawn.model))
    feeds = {f"call{i}_input{j}": x for i, call in enumerate(drawn.calls) for j, x in enumerate(call.feeds)}
    np.savez(path.with_suffix(".npz"), **feeds)  # type: ignore[arg-type]
    path.with_suffix(".txt").write_text(f"{finding.batch}\n{finding.kind}: {finding.what}\n\n{finding.text}\n")


def _work(batch: Batch, cache_dir: Path | None, output: Path | None, pipe: Connection) -> None:
    pipe.send(run_batch(batch, cache_dir, output, pipe.send))
    pipe.close()


class Worker:
    """A process that runs a batch."""

    def __init__(self, batch: Batch, cache_dir: Path | None, output: Path | None) -> None:
        self.batch = batch
        self._output = output
        context: Any = multiprocessing.get_context("spawn")
        self.receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(batch, cache_dir, output, sender), daemon=True)
        self._process.start()
        sender.close()
        self.graph, self._heard = -1, 0
        self._then_s, self._busy_then_s = time.monotonic(), 0.0

    def hangs(self) -> bool:
        """Return whether it has been silent for too long, taking a busy machine into account."""
        busy_s = self._busy_s() - self._busy_then_s
        return busy_s > (_FIRST_BUSY_S if self._heard < 2 else _BUSY_S) or time.monotonic() - self._then_s > _QUIET_S

    def _busy_s(self) -> float:
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended, or there is no /proc
            return self._busy_then_s
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def hear(self) -> Result | None:
        """Return its message: the result, or None if it continues. Raises EOFError if it has ended."""
        message = self.receiver.recv()
        self._then_s, self._busy_then_s = time.monotonic(), self._busy_s()
        if isinstance(message, Result):
            self._process.join()
            return message
        self.graph, self._heard = message, self._heard + 1
        return None

    def lost(self, kind: str) -> Result:
        """Return a finding: it died or hangs."""
        if kind == "crash":
            self._process.join(10)  # it is about to report how
        self._process.kill()
        self._process.join()
        finding = Finding(self.batch, self.graph, kind, f"exit code {self._process.exitcode}")
        if self._output is not None and self.graph >= 0:
            save(finding, drawn_of(self.batch, self.graph), self._output)
        return Result(findings=[finding])
