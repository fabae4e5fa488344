"""Measures a model's speed, litecl alone or in turns with peers, and profiles it."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from litecl.delegate import DelegationReport
from litecl.delegate.native.processors import processors
from litecl.delegate.tuning import Tiled
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import Numbers
from litecl.perf.contenders import Contender, Refusal, litecl, start, start_peer
from litecl.perf.feeds import Runtime, difference, outputs_of, prepare, steps
from litecl.perf.intervals import ratio
from litecl.perf.peers import PEERS
from litecl.perf.resident import Usage, usage_of
from litecl.perf.subject import Load, Subject, alone, in_streams
from litecl.perf.timing import Tick, in_turns, no_tick
from litecl.perf.trace import HostRow, Trace

_STREAM_S = 2.0  # per runtime and number of streams, unless seconds is longer
_ROUNDED, _ROUNDED_QUANTIZED = 1e-3, 0.1  # the largest differences of outputs that rounding explains


@dataclass(frozen=True)
class BenchOptions:
    """Options of a measurement.

    delegate: keywords of ``CLDelegate``; without num_threads litecl chooses. cpu: without the delegate. seconds:
    continue beyond ``runs`` for this long. against: names of ``PEERS``, measured with one thread and with as many as
    litecl may use: every core if num_threads isn't given. streams: numbers of interpreters to measure throughput with,
    one thread each. memory: measure host memory, in new processes. numbers: of litecl, as for ``Interpreter``.
    """

    delegate: Mapping[str, Any] = field(default_factory=dict)
    cpu: bool = False
    runs: int = 50
    seconds: float = 0.0
    warmup: int = 3
    against: tuple[str, ...] = ()
    streams: tuple[int, ...] = ()
    memory: bool = False
    numbers: Numbers = "reference"

    @property
    def num_threads(self) -> int | None:
        """The number of threads for both; None if litecl chooses."""
        return self.delegate.get("num_threads")


@dataclass(frozen=True)
class Comparison:
    """A peer's times over ours: above 1 means that litecl is faster.

    median_low, median_high: the 95 % interval of ``median_ratio`` (``perf/intervals.py``). difference, steps: of the
    outputs, as from ``feeds.difference`` and ``feeds.steps``. agrees: whether rounding explains the difference.
    """

    name: str
    num_threads: int | None
    median_ratio: float
    median_low: float
    median_high: float
    min_ratio: float
    difference: float
    steps: int | None
    agrees: bool
    version: str


@dataclass(frozen=True)
class BenchResult:
    """The subjects, litecl first, each peer's comparison, and peers that can't run the model. report: None without a
    delegate.
    """

    subjects: tuple[Subject, ...]
    comparisons: tuple[Comparison, ...]
    refusals: tuple[Refusal, ...]
    report: DelegationReport | None

    @property
    def fastest(self) -> Comparison | None:
        """The peer with the least median of those that agree with litecl."""
        return min((c for c in self.comparisons if c.agrees), key=lambda c: c.median_ratio, default=None)


@dataclass(frozen=True)
class KernelTime:
    """A launch's median device time over the profiled invokes. flops: of all its runs in an invoke, as in a loop.
    tiled: its tile, if it has one.
    """

    subgraph: int
    node: int
    op: str
    kernel: str
    entry: str
    duration_ms: float
    flops: int
    tiled: Tiled | None = None


@dataclass(frozen=True)
class Profile:
    """The time of launches on the device, per invoke, and of nodes on the host, summed over ``runs`` invokes."""

    runs: int
    kernels: tuple[KernelTime, ...]
    host: tuple[HostRow, ...]


def bench(content: bytes, inputs: Mapping[str, Array], options: BenchOptions, tick: Tick = no_tick) -> BenchResult:
    """Measure a model on given inputs. tick: called once for each of ``warmup + runs`` rounds.

    Compares outputs after the first and the last invoke, after equally many updates of variable tensors.
    """
    ours = partial(litecl, content, options.delegate, cpu=options.cpu, numbers=options.numbers)
    started = [start("litecl", options.num_threads, ours, inputs), *peers(content, inputs, options)]
    contenders = [one for one in started if isinstance(one, Contender)]
    refusals = tuple(one for one in started if isinstance(one, Refusal))
    differences = [_differences(contenders)]
    invokes = [contender.runtime.invoke for contender in contenders]
    in_turns(invokes, options.warmup, tick=tick)
    timed = in_turns(invokes, options.runs, least_s=options.seconds, tick=tick)
    differences.append(_differences(contenders))
    apart, report = _steps(contenders), _report(contenders[0].runtime, options)
    memory = None if report is None else sum(row.arena_bytes + row.constant_bytes for row in report.partitions)
    subjects = tuple(
        alone(c, stats, None if i else memory, _process(content, inputs, c, options))
        for i, (c, stats) in enumerate(zip(contenders, timed, strict=True))
    )
    largest = [max(pair) for pair in zip(*differences, strict=True)]
    rounded = _ROUNDED_QUANTIZED if _is_quantized(contenders[0].runtime) else _ROUNDED
    compared = zip(subjects[1:], largest, apart, strict=True)
    comparisons = tuple(_comparison(subjects[0], *rest, rounded) for rest in compared)
    return BenchResult((*subjects, *_streams(content, inputs, contenders, options)), comparisons, refusals, report)


def peers(content: bytes, inputs: Mapping[str, Array], options: BenchOptions) -> list[Contender | Refusal]:
    """Start every peer with one thread and with as many as litecl may use. Raises MissingExtra for a missing one."""
    counts = sorted({1, options.num_threads or processors()})
    return [start_peer(name, n, content, inputs) for name in options.against for n in counts]


def _streams(
    content: bytes, inputs: Mapping[str, Array], contenders: Sequence[Contender], options: BenchOptions
) -> list[Subject]:
    """Measure the throughput of every runtime with every requested number of streams."""
    ours: Load = partial(litecl, content, options.delegate, cpu=options.cpu, numbers=options.numbers)
    loads: list[Load] = [ours, *(partial(PEERS[c.name].load, content, c.num_threads or 1) for c in contenders[1:])]
    both, seconds = [*zip(contenders, loads, strict=True)], max(options.seconds, _STREAM_S)
    return [subject for count in options.streams for subject in in_streams(both, count, inputs, seconds)]


def _process(content: bytes, inputs: Mapping[str, Array], contender: Contender, options: BenchOptions) -> Usage | None:
    if not options.memory:
        return None
    delegate = {name: value for name, value in options.delegate.items() if name != "progress"}
    modes: Any = {"cpu": options.cpu, "numbers": options.numbers}
    return usage_of(content, inputs, contender.name, contender.num_threads, delegate, **modes)


def profile(
    content: bytes, inputs: Mapping[str, Array], options: BenchOptions, runs: int = 10, tick: Tick = no_tick
) -> Profile:
    """Take device times from events and host times from a trace, over ``runs`` invokes after a warm-up."""
    trace = Trace()
    modes: Any = {"cpu": options.cpu, "numbers": options.numbers}
    runtime = litecl(content, {**options.delegate, "profile": True}, listeners=[trace], **modes)
    prepare(runtime, inputs)
    runtime.invoke()
    trace.clear()
    reports: list[DelegationReport] = []
    for _ in range(runs):
        runtime.invoke()
        report = _report(runtime, options)
        reports += [] if report is None else [report]
        tick()
    return Profile(runs, _kernels(reports), trace.rows)


def _differences(contenders: Sequence[Contender]) -> list[float]:
    """Return the difference of litecl's outputs from each peer's."""
    ours, *theirs = [outputs_of(contender.runtime) for contender in contenders]
    return [difference(ours, expected) for expected in theirs]


def _steps(contenders: Sequence[Contender]) -> list[int | None]:
    ours, *theirs = [outputs_of(contender.runtime) for contender in contenders]
    return [steps(contenders[0].runtime.get_output_details(), ours, expected) for expected in theirs]


def _report(runtime: Runtime, options: BenchOptions) -> DelegationReport | None:
    if options.cpu:
        return None
    assert isinstance(runtime, Interpreter)
    return DelegationReport.of(runtime)


def _is_quantized(ours: Runtime) -> bool:
    """Return whether a tensor of the model has a scale."""
    assert isinstance(ours, Interpreter)
    return any(detail["quantization_parameters"]["scales"].size for detail in ours.get_tensor_details())


def _comparison(ours: Subject, peer: Subject, largest: float, apart: int | None, rounded: float) -> Comparison:
    median, least = ratio(peer.stats.times_ms, ours.stats.times_ms), peer.stats.min_ms / ours.stats.min_ms
    return Comparison(
        peer.name,
        peer.num_threads,
        median.value,
        median.low,
        median.high,
        least,
        largest,
        apart,
        largest <= rounded,
        PEERS[peer.name].version,
    )


def _kernels(reports: Sequence[DelegationReport]) -> tuple[KernelTime, ...]:
    """Return medians of launches over an interpreter's reports, matching launches by position."""
    if not reports:
        return ()
    alike = [report for report in reports if report.partitions == reports[-1].partitions]
    ops = {(row.subgraph, row.node): row.op for row in reports[-1].nodes}
    return tuple(
        KernelTime(
            launch[0].subgraph,
            launch[0].node,
            ops[launch[0].subgraph, launch[0].node],
            launch[0].kernel,
            launch[0].entry,
            statistics.median(row.duration_ms for row in launch),
            statistics.median_low(row.flops * row.runs for row in launch),
            launch[0].tiled,
        )
        for launch in zip(*(report.kernels for report in alike), strict=True)
    )
