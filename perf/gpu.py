"""What a GPU makes of well-known models: results against the interpreter's, times, and what its peaks would allow.

``python -m litecl.perf.gpu [--device NAME] [--json FILE] [--page FILE]``: for every model and batch the largest
difference from the interpreter relative to the largest output, the least and the median time of an invoke, launches and
waits, and for every kernel the share of the device's measured peaks of arithmetic and bandwidth that it reaches. Where
PyTorch or ONNX Runtime (packages onnx and onnxruntime-gpu, or onnxruntime) is installed it runs the same graph in turns
with litecl, on its CUDA device if it has one; where one does not run a model the end of the output says why. Runs on
any device; kernels are timed one by one, so their times are those of queued launches. ``--tune`` measures the GPU's
tiles for each model first, as ``litecl tune`` does. ``--small`` is a trial of it all.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from litecl.delegate import CLDelegate, disk
from litecl.delegate.devices import choose
from litecl.delegate.report import DelegationReport, KernelRow
from litecl.delegate.report_details import kernel_name
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.unary import TANH
from litecl.perf.measure import large_models, peak, peer_models
from litecl.perf.measure.build import Graph
from litecl.perf.measure.build_control import FLOAT, INT, below, next_, plus, times, while_model
from litecl.perf.measure.environment import header, named
from litecl.perf.measure.feeds import random_inputs
from litecl.perf.measure.gpu_page import page, problems, table
from litecl.perf.measure.gpu_peers import MOST_DIFFERENCE, PeerTime, difference, ready
from litecl.perf.measure.tiles import tuned_model
from litecl.perf.measure.timing import in_turns

_BATCHES = (1, 16)


@dataclass(frozen=True)
class Subject:
    """A model to measure. make: its file for a batch. small: one of the kind that any device runs in no time."""

    name: str
    make: Callable[[int], bytes]
    small: Callable[[int], bytes]
    batches: Sequence[int] = _BATCHES


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
    times of other runtimes by their names.
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


def loop(trips: int) -> bytes:
    """Return a loop of so many small iterations."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        scaled = plus(g, times(g, x[1], g.const(np.float32(1.01))), g.const(np.float32(0.1)))
        return [next_(g, x[0]), g.op(TANH, [scaled], NoOptions())]

    return write(while_model([((), INT), ((64,), FLOAT)], below(trips), body))


SUBJECTS = (
    Subject(
        "dense 1280 x 1000",
        lambda batch: peer_models.dense(1280, 1000, batch),
        lambda batch: peer_models.dense(64, 32, batch),
    ),
    Subject(
        "LSTM 100 x 256", lambda batch: peer_models.lstm(100, 256, batch), lambda batch: peer_models.lstm(3, 16, batch)
    ),
    Subject("loop of 1,000", lambda batch: loop(1_000), lambda batch: loop(10), (1,)),
    Subject("loop of 10,000", lambda batch: loop(10_000), lambda batch: loop(20), (1,)),
    Subject(
        "MobileNetV2",
        lambda batch: peer_models.mobilenet_v2(batch=batch),
        lambda batch: peer_models.mobilenet_v2(32, batch),
    ),
    Subject(
        "EfficientNetB0",
        lambda batch: large_models.efficientnet_b0(batch=batch),
        lambda batch: large_models.efficientnet_b0(32, batch),
    ),
    Subject(
        "BERT-base, 128 words",
        lambda batch: large_models.bert(batch=batch),
        lambda batch: large_models.bert(8, batch, 1, 32, 4),
    ),
    Subject(
        "ResNet50", lambda batch: peer_models.resnet_50(batch=batch), lambda batch: peer_models.resnet_50(32, batch)
    ),
)


def measured(device: object) -> Peaks:
    """Return the peaks of a device."""
    opened = choose(device).open(profile=False, directory=None)
    return Peaks(peak.flops(opened), peak.bandwidth(opened, peak.READ_BYTES[-1]))


def row(
    subject: Subject, batch: int, options: dict[str, Any], peaks: Peaks, runs: int, *, is_small: bool = False
) -> Row:
    """Measure a model at a batch: first whether it is right, then how fast it is."""
    content = (subject.small if is_small else subject.make)(batch)
    ours = _prepared(content, [CLDelegate(**options, strict=True)])
    expected = _outputs(_prepared(content, []))
    differs = difference(_outputs(ours), expected)
    peers, others = ready(content, _feeds(content), expected)
    stats, *theirs = in_turns([ours.invoke, *(peer.run for peer in peers.values())], runs)
    counters = DelegationReport.of(ours).counters
    profiled = _prepared(content, [CLDelegate(**options, strict=True, profile=True)])
    profiled.invoke()
    profiled.invoke()
    kernels = _figures(DelegationReport.of(profiled).kernels, peaks)
    costs = counters.kernel_launches, counters.host_syncs
    timed = zip(peers.items(), theirs, strict=True)
    times = {name: PeerTime(found.min_ms, peer.runs_on) for (name, peer), found in timed} | others
    name = f"{subject.name}, small" if is_small else subject.name
    return Row(name, batch, differs, stats.min_ms, stats.median_ms, *costs, kernels, times)


def _tune(content: bytes, options: Mapping[str, Any]) -> None:
    """Keep the GPU's tiles for a model's products where ``row`` finds them."""
    inputs = random_inputs(Interpreter(model_content=content).get_input_details(), seed=0)
    tuned_model(content, inputs, options, disk.default_folder())


def _feeds(content: bytes) -> list[Array]:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    return list(random_inputs(interpreter.get_input_details(), seed=0).values())


def _prepared(content: bytes, delegates: Sequence[CLDelegate]) -> Interpreter:
    interpreter = Interpreter(model_content=content, delegates=delegates)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    for detail, value in zip(details, random_inputs(details, seed=0).values(), strict=True):
        interpreter.set_tensor(detail["index"], value)
    return interpreter


def _outputs(interpreter: Interpreter) -> list[Array]:
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def _figures(rows: Sequence[KernelRow], peaks: Peaks) -> tuple[KernelFigure, ...]:
    """Return the figures of each kernel, the longest first."""
    found: dict[str, KernelFigure] = {}
    for one in rows:
        name = kernel_name(one.kernel, one.entry)
        had = found.get(name, KernelFigure(name, 0, 0.0, 0, 0, None))
        own = had.launches + one.runs, had.ms + one.duration_ms, had.flops + one.flops, had.bytes + one.size_bytes
        found[name] = KernelFigure(name, *own, None)
    ended = [replace(figure, share=_share(figure, peaks)) for figure in found.values()]
    return tuple(sorted(ended, key=lambda figure: -figure.ms))


def _share(figure: KernelFigure, peaks: Peaks) -> float | None:
    least_s = max(figure.flops / peaks.flops, figure.bytes / peaks.bytes)
    return least_s * 1e3 / figure.ms if figure.ms and least_s else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a result differs from the interpreter's by more than rounding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="a fragment of its name, or its index; by default the one of large models")
    parser.add_argument("--only", action="append", help="models whose names contain this")
    parser.add_argument("--batch", type=int, action="append", help="only these batches")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--tune", action="store_true", help="measure a GPU's tiles for each model first, and keep them")
    parser.add_argument("--small", action="store_true", help="small models of the same kinds: a trial of the command")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--page", type=Path, help="write them as Markdown to this file")
    given = parser.parse_args(arguments)
    options = {} if given.device is None else {"device": given.device}
    peaks, rows, console = measured(given.device), [], Console()
    for subject in SUBJECTS:
        if given.only and not any(fragment.lower() in subject.name.lower() for fragment in given.only):
            continue
        for batch in given.batch or subject.batches:
            if batch in subject.batches:
                if given.tune:
                    _tune((subject.small if given.small else subject.make)(batch), options)
                rows.append(row(subject, batch, options, peaks, given.runs, is_small=given.small))
                console.print(f"{subject.name}, batch {batch}: {rows[-1].min_ms:.3f} ms")
    data_rows = [asdict(one) for one in rows]
    console.print(table(data_rows))
    for line in problems(data_rows):
        console.print(line)
    chosen = choose(given.device)
    data = {**header("gpu"), "device": named(chosen.name), "peaks": asdict(peaks), "rows": data_rows}
    if given.json:
        given.json.write_text(json.dumps(data, indent=1) + "\n")
    if given.page:
        given.page.write_text(page(data))
    return int(any(one.difference > MOST_DIFFERENCE for one in rows))


if __name__ == "__main__":
    sys.exit(main())
