"""Collects a report: times all devices and peers in turns, then examines each device by itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import content_of, read
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.numbers import TOLD, Numbers, computed_as
from litecl.perf.bench import BenchOptions, peers
from litecl.perf.contenders import Contender, Refusal
from litecl.perf.doubts import busy, doubts, load, outliers
from litecl.perf.environment import header
from litecl.perf.feeds import outputs_of, prepare
from litecl.perf.timing import Stats, in_turns
from litecl.report.collect import earlier
from litecl.report.collect.accuracy import first_departure, layers_accuracy, outputs_accuracy, peer_steps
from litecl.report.collect.model import model_of
from litecl.report.collect.nodes import sources
from litecl.report.collect.run import Beside, Prepared, prepared, run_of
from litecl.report.collect.start import starts
from litecl.report.document import Report, Run
from litecl.report.facts import Accuracy, Latency

_PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_REFERENCE = "litecl's reference"
_ALONE = "Nodes ran one by one for this, since fusion hides intermediate tensors."
Doing = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """The options of a report. delegate: keywords of ``CLDelegate`` except the device. values: describes how inputs
    were chosen.

    devices: as ``CLDelegate(device=...)``; None is litecl's choice. against: a name of ``PEERS``. cold: measure starts
    of new processes. before: an earlier report, as JSON. numbers: as for ``Interpreter``.
    """

    delegate: Mapping[str, Any] = field(default_factory=dict)
    devices: tuple[int | str | None, ...] = (None,)
    against: str | None = None
    runs: int = 50
    warmup: int = 3
    layers: bool = False
    cold: bool = True
    values: str = "given"
    before: Path | None = None
    numbers: Numbers = "reference"


def collect(path: Path, inputs: Mapping[str, Array], wanted: Wanted, doing: Doing = lambda what: None) -> Report:
    """Measure a model and return its report. doing: called with a description of each step. Raises LiteclError."""
    content, load_before, head = bytes(content_of(path)), load(), header("litecl report")
    old = None if wanted.before is None else earlier.load(wanted.before)
    doing("computing the reference")
    model = computed_as(read(content), wanted.numbers)
    expected = _reference(model, inputs, CLDelegate(**wanted.delegate))
    doing("preparing")
    delegates = [{**wanted.delegate, "device": device} for device in wanted.devices]
    ours = [prepared(content, model, inputs, delegate, wanted.numbers) for delegate in delegates]
    against = () if wanted.against is None else (wanted.against,)
    theirs = peers(content, inputs, BenchOptions(wanted.delegate, against=against))
    beside_us = [one for one in theirs if isinstance(one, Contender)]
    remarks = [str(one) for one in theirs if isinstance(one, Refusal)]
    remarks += [] if wanted.numbers == "reference" else [TOLD[wanted.numbers]]
    accuracies = [_accuracies(one, expected, beside_us) for one in ours]
    doing("measuring")
    latencies = _latencies([*(one.contender for one in ours), *beside_us], wanted)
    beside, doubtful = latencies[len(ours) :], busy(load_before)
    runs: list[Run] = []
    for one, latency, accuracy in zip(ours, latencies, accuracies, strict=False):
        doing(f"looking into {latency.name}")
        begun = starts(content, inputs, one.delegate, wanted.numbers) if wanted.cold else ()
        seen = [_with_layers(accuracy[0], model, inputs, one) if wanted.layers else accuracy[0], *accuracy[1:]]
        runs.append(run_of(model, inputs, one, Beside(latency, beside, bool(doubtful), seen, begun)))
    facts, since = model_of(path.name, content, model, wanted.values), None
    if wanted.before is not None and old is not None:
        since = earlier.earlier_of(wanted.before.name, old, head, facts, runs)
    return Report(head, facts, tuple(runs), tuple(beside), (*doubtful, *remarks), load(), since, sources(runs))


def _reference(model: Model, inputs: Mapping[str, Array], delegate: CLDelegate) -> list[Array]:
    reference = Interpreter(model, dynamic_range=delegate.dynamic_range)
    prepare(reference, inputs)
    reference.invoke()
    return outputs_of(reference)


def _accuracies(one: Prepared, expected: Sequence[Array], theirs: Sequence[Contender]) -> list[Accuracy]:
    """Compare the outputs of the first invokes: later ones may start from other states."""
    runtime = one.contender.runtime
    beside = [outputs_accuracy(p.name, runtime, outputs_of(p.runtime), peer_steps(p.name)) for p in theirs[:1]]
    return [outputs_accuracy(_REFERENCE, runtime, expected), *beside]


def _with_layers(accuracy: Accuracy, model: Model, inputs: Mapping[str, Array], one: Prepared) -> Accuracy:
    rows = layers_accuracy(model, inputs, CLDelegate(**one.delegate))
    return replace(accuracy, layers=rows, departed=first_departure(rows), note=_ALONE)


def _latencies(contenders: Sequence[Contender], wanted: Wanted) -> list[Latency]:
    invokes = [contender.runtime.invoke for contender in contenders]
    in_turns(invokes, wanted.warmup)
    return [_latency(c, stats) for c, stats in zip(contenders, in_turns(invokes, wanted.runs), strict=True)]


def _latency(contender: Contender, stats: Stats) -> Latency:
    times = stats.times_ms
    return Latency(
        name=contender.name,
        threads=contender.num_threads,
        prepare_ms=contender.prepare_ms,
        first_ms=contender.first_ms,
        times_ms=times,
        min_ms=stats.min_ms,
        mean_ms=sum(times) / len(times),
        median_ms=stats.median_ms,
        percentiles_ms={str(p): stats.percentile_ms(p) for p in _PERCENTILES},
        outliers=outliers(times),
        warnings=doubts(stats),
    )
