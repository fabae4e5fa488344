"""What a GPU makes of well-known models: results against the interpreter's, times, and what its peaks would allow.

``python -m tools.gpu_page [--device NAME] [--json FILE] [--page FILE]``: for every model and batch the largest
difference from the interpreter relative to the largest output, the least and the median time of an invoke, launches and
waits, and for every kernel the share of the device's measured peaks of arithmetic and bandwidth that it reaches. Where
PyTorch or ONNX Runtime (packages onnx and onnxruntime-gpu, or onnxruntime) is installed it runs the same graph in turns
with litecl, on its CUDA device if it has one; where one does not run a model the end of the output says why. Runs on
any device; kernels are timed one by one, so their times are those of queued launches. ``--tune`` measures the GPU's
tiles for each model first, as ``litecl tune`` does. ``--small`` is a trial of it all.

A model that fails is told of at the end, and the others are measured; the files are written anew after every model.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from rich.console import Console

from litecl.delegate import CLDelegate, disk
from litecl.delegate.devices import choose
from litecl.delegate.report import DelegationReport, KernelRow, summary
from litecl.delegate.report_details import kernel_name
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.perf import peak
from litecl.perf.environment import header, named
from litecl.perf.feeds import outputs_of, prepare, random_inputs
from litecl.perf.tiles import tuned_model
from litecl.perf.timing import in_turns
from tools.gpu.models import SUBJECTS, Subject
from tools.gpu.page import page, problems, table
from tools.gpu.peers import MOST_DIFFERENCE, Guarded, PeerTime, difference, ready


@dataclass(frozen=True)
class Peaks:
    """The most operations and bytes a second that a device was measured to do."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class KernelFigure:
    """All launches of a kernel in an invoke. share: of what the device's peaks allow; None where nothing is known."""

    kernel: str
    launches: int
    ms: float
    flops: int
    bytes: int
    share: float | None


@dataclass(frozen=True)
class Row:
    """The figures of a model and a batch. difference: from the interpreter, relative to the largest output. peers: the
    times of other runtimes by their names. without_kernels: why there are no times of kernels.
    """

    name: str
    batch: int
    difference: float
    min_ms: float
    median_ms: float
    launches: int
    waits: int
    kernels: tuple[KernelFigure, ...]
    peers: Mapping[str, PeerTime] = field(default_factory=dict)
    without_kernels: str = ""


@dataclass(frozen=True)
class Failure:
    """A model and a batch without figures, and why."""

    name: str
    batch: int
    problem: str


def measured(device: object) -> Peaks:
    """Return the peaks of a device."""
    opened = choose(device).open(profile=False, directory=None)
    return Peaks(peak.flops(opened), peak.bandwidth(opened, peak.READ_BYTES[-1]))


def row(
    subject: Subject, batch: int, options: dict[str, Any], peaks: Peaks | None, runs: int, *, is_small: bool = False
) -> Row:
    """Measure a model at a batch: first whether it is right, then how fast it is."""
    content = (subject.small if is_small else subject.make)(batch)
    ours = _prepared(content, [CLDelegate(**options, strict=True)])
    got, expected = outputs_of(ours), outputs_of(_prepared(content, []))
    peers, others = ready(content, _feeds(content), expected)
    guarded = {name: Guarded(peer) for name, peer in peers.items()}
    stats, *theirs = in_turns([ours.invoke, *(peer.run for peer in guarded.values())], runs)
    counters = DelegationReport.of(ours).counters
    kernels, problem = _kernels(content, options, peaks)
    costs = counters.kernel_launches, counters.host_syncs
    times = {name: peer.time(found) for (name, peer), found in zip(guarded.items(), theirs, strict=True)} | others
    name = _named(subject, is_small)
    timed = stats.min_ms, stats.median_ms
    return Row(name, batch, difference(got, expected), *timed, *costs, kernels, times, problem)


def _kernels(content: bytes, options: dict[str, Any], peaks: Peaks | None) -> tuple[tuple[KernelFigure, ...], str]:
    """Return the figures of each kernel, or why there are none."""
    try:
        profiled = _prepared(content, [CLDelegate(**options, strict=True, profile=True)])
        profiled.invoke()
        return _figures(DelegationReport.of(profiled).kernels, peaks), ""
    except Exception as error:  # the times of the whole are worth having
        return (), summary(error)


def _tune(content: bytes, options: Mapping[str, Any]) -> None:
    """Keep the GPU's tiles for a model's products where ``row`` finds them."""
    inputs = random_inputs(Interpreter(model_content=content).get_input_details(), seed=0)
    tuned_model(content, inputs, options, disk.own("auto"))


def _named(subject: Subject, is_small: bool) -> str:
    return f"{subject.name}, small" if is_small else subject.name


def _feeds(content: bytes) -> list[Array]:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    return list(random_inputs(interpreter.get_input_details(), seed=0).values())


def _prepared(content: bytes, delegates: Sequence[CLDelegate]) -> Interpreter:
    interpreter = Interpreter(model_content=content, delegates=delegates)
    prepare(interpreter, random_inputs(interpreter.get_input_details(), seed=0))
    interpreter.invoke()
    return interpreter


def _figures(rows: Sequence[KernelRow], peaks: Peaks | None) -> tuple[KernelFigure, ...]:
    """Return the figures of each kernel, the longest first."""
    found: dict[str, KernelFigure] = {}
    for one in rows:
        name = kernel_name(one.kernel, one.entry)
        had = found.get(name, KernelFigure(name, 0, 0.0, 0, 0, None))
        own = had.launches + one.runs, had.ms + one.duration_ms, had.flops + one.flops, had.bytes + one.size_bytes
        found[name] = KernelFigure(name, *own, None)
    ended = [replace(figure, share=_share(figure, peaks)) for figure in found.values()]
    return tuple(sorted(ended, key=lambda figure: -figure.ms))


def _share(figure: KernelFigure, peaks: Peaks | None) -> float | None:
    if peaks is None:
        return None
    least_s = max(figure.flops / peaks.flops, figure.bytes / peaks.bytes)
    return least_s * 1e3 / figure.ms if figure.ms and least_s else None


class Run:
    """All models, one after another. given: the command's arguments."""

    def __init__(self, given: argparse.Namespace, console: Console) -> None:
        self._given, self._console = given, console
        self._end_s = time.monotonic() + 60 * given.minutes
        self._options = {} if given.device is None else {"device": given.device}
        self.rows: list[Row] = []
        self.failures: list[Failure] = []
        self._head = {**header("gpu"), "device": named(choose(given.device).name)}
        self._peaks = self._measured()

    def _measured(self) -> Peaks | None:
        try:
            return measured(self._given.device)
        except Exception as error:  # figures without shares are worth having
            self.failures.append(Failure("the device's peaks", 1, summary(error)))
            return None

    def measure(self, subject: Subject, batch: int) -> None:
        """Measure a model at a batch, if there is time, and write all that is known by then."""
        given, name, start_s = self._given, _named(subject, self._given.small), time.monotonic()
        try:
            if start_s > self._end_s:
                raise TimeoutError(f"not begun within {given.minutes:g} minutes")
            if given.tune:
                self._tune(subject, batch)
            self.rows.append(row(subject, batch, self._options, self._peaks, given.runs, is_small=given.small))
            told = f"{self.rows[-1].min_ms:.3f} ms, measured in {time.monotonic() - start_s:.0f} s"
        except Exception as error:  # of the device's driver, of any kind: the others are measured
            self.failures.append(Failure(name, batch, summary(error)))
            told = f"failed: {summary(error)}"
        self._console.print(f"{name}, batch {batch}: {told}", markup=False, soft_wrap=True)
        self.write()

    def _tune(self, subject: Subject, batch: int) -> None:
        try:
            _tune((subject.small if self._given.small else subject.make)(batch), self._options)
        except Exception as error:  # without it the model has other tiles
            self.failures.append(Failure(f"tiles of {_named(subject, self._given.small)}", batch, summary(error)))

    @property
    def data(self) -> dict[str, Any]:
        """Everything for the files."""
        peaks = None if self._peaks is None else asdict(self._peaks)
        rows, failures = ([asdict(one) for one in many] for many in (self.rows, self.failures))
        return {**self._head, "peaks": peaks, "rows": rows, "failures": failures}

    def write(self) -> None:
        """Write the files that were asked for."""
        if self._given.json:
            self._given.json.write_text(json.dumps(self.data, indent=1) + "\n")
        if self._given.page:
            self._given.page.write_text(page(self.data))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a result differs from the interpreter's by more than rounding, or there is none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="a fragment of its name, or its index; by default the one of large models")
    parser.add_argument("--only", action="append", help="models whose names contain this")
    parser.add_argument("--batch", type=int, action="append", help="only these batches")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--tune", action="store_true", help="measure a GPU's tiles for each model first, and keep them")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no model after so many")
    parser.add_argument("--small", action="store_true", help="small models of the same kinds: a trial of the command")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--page", type=Path, help="write them as Markdown to this file")
    given = parser.parse_args(arguments)
    console = Console()
    try:
        run = Run(given, console)
    except LiteclError as error:
        parser.error(str(error))
    for subject in SUBJECTS:
        if given.only and not any(fragment.lower() in subject.name.lower() for fragment in given.only):
            continue
        for batch in given.batch or subject.batches:
            if batch in subject.batches:
                run.measure(subject, batch)
    run.write()
    console.print(table(run.data["rows"]))
    for line in problems(run.data):
        console.print(line, markup=False, soft_wrap=True)
    return int(bool(run.failures) or any(one.difference > MOST_DIFFERENCE for one in run.rows))


if __name__ == "__main__":
    sys.exit(main())
