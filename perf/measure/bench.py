"""The speed of a model: litecl alone or in turns with LiteRT, and where its time goes."""

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from litecl.delegate import CLDelegate, DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.interpreter.run.executor import Listener
from litecl.perf.measure.feeds import Runtime, difference, outputs_of, prepare, steps
from litecl.perf.measure.timing import Stats, Tick, elapsed_ms, in_turns, no_tick
from litecl.perf.measure.trace import HostRow, Trace


@dataclass(frozen=True)
class BenchOptions:
    """Options of a measurement.

    delegate: keywords of ``CLDelegate``; where num_threads is not among them, litecl chooses, and LiteRT gets every
    core. cpu: without the delegate.
    """

    delegate: Mapping[str, Any] = field(default_factory=dict)
    cpu: bool = False
    runs: int = 50
    warmup: int = 3
    against: str | None = None

    @property
    def num_threads(self) -> int | None:
        """Return how many threads both may use; None where litecl chooses."""
        return self.delegate.get("num_threads")


@dataclass(frozen=True)
class Subject:
    """One runtime's figures: getting ready (loading, delegating, building), the first invoke, and the timed ones."""

    name: str
    num_threads: int | None
    prepare_ms: float
    first_ms: float
    stats: Stats

    def to_dict(self) -> dict[str, Any]:
        """Return the figures under their names."""
        return {
            "name": self.name,
            "num_threads": self.num_threads,
            "prepare_ms": self.prepare_ms,
            "first_ms": self.first_ms,
            **self.stats.to_dict(),
        }


@dataclass(frozen=True)
class Comparison:
    """Their times over ours, so above 1 means that litecl is faster.

    difference, steps: of the outputs, as ``feeds.difference`` and ``feeds.steps`` have them.
    """

    median_ratio: float
    min_ratio: float
    difference: float
    steps: int | None


@dataclass(frozen=True)
class BenchResult:
    """The subjects, litecl first, and how they compare. ``report`` is None where there was no delegate."""

    subjects: tuple[Subject, ...]
    comparison: Comparison | None
    report: DelegationReport | None


@dataclass(frozen=True)
class KernelTime:
    """Device time of one launch: the median over the profiled invokes."""

    subgraph: int
    node: int
    op: str
    kernel: str
    entry: str
    duration_ms: float
    flops: int


@dataclass(frozen=True)
class Profile:
    """The time of an invoke by launches on the device and nodes on the host (means over ``runs`` invokes)."""

    runs: int
    kernels: tuple[KernelTime, ...]
    host: tuple[HostRow, ...]


def bench(content: bytes, inputs: Mapping[str, Array], options: BenchOptions, tick: Tick = no_tick) -> BenchResult:
    """Measure a model on given inputs. ``tick`` is called once for each of ``warmup + runs`` rounds.

    Outputs are compared after the first invoke and after the last, when variable tensors have gone the same way.
    """
    contenders = [_start("litecl", options.num_threads, lambda: _litecl(content, options), inputs)]
    if options.against is not None:
        threads = cores() if options.num_threads is None else options.num_threads
        load = PEERS[options.against]
        contenders.append(_start(options.against, threads, lambda: load(content, threads), inputs))
    differences = [_compare(contenders)]
    invokes = [contender.runtime.invoke for contender in contenders]
    in_turns(invokes, options.warmup, tick=tick)
    timed = in_turns(invokes, options.runs, tick=tick)
    differences.append(_compare(contenders))
    apart = _steps(contenders)
    subjects = tuple(
        Subject(c.name, c.num_threads, c.prepare_ms, c.first_ms, stats)
        for c, stats in zip(contenders, timed, strict=True)
    )
    return BenchResult(
        subjects, _comparison(subjects, max(differences), apart), _report(contenders[0].runtime, options)
    )


def profile(
    content: bytes, inputs: Mapping[str, Array], options: BenchOptions, runs: int = 10, tick: Tick = no_tick
) -> Profile:
    """Take device times from events and host times from a trace, over ``runs`` invokes after one to warm up."""
    trace = Trace()
    runtime = _litecl(content, options, profile=True, listeners=[trace])
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


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class _Contender:
    """A runtime that has run once."""

    name: str
    num_threads: int | None
    runtime: Runtime
    prepare_ms: float
    first_ms: float


def _start(name: str, num_threads: int | None, load: Callable[[], Runtime], inputs: Mapping[str, Array]) -> _Contender:
    """Loads, prepares and runs once. Raises LiteclError where the runtime cannot run the model."""
    start_s = time.perf_counter()
    try:
        runtime = load()
        prepare(runtime, inputs)
        prepare_ms = (time.perf_counter() - start_s) * 1e3
        return _Contender(name, num_threads, runtime, prepare_ms, elapsed_ms(runtime.invoke))
    except LiteclError:
        raise
    except (ValueError, RuntimeError) as error:  # LiteRT's errors
        raise LiteclError(f"{name} cannot run the model: {error}") from error


def _litecl(
    content: bytes, options: BenchOptions, *, profile: bool = False, listeners: Sequence[Listener] = ()
) -> Interpreter:
    delegates = [] if options.cpu else [CLDelegate(**options.delegate, profile=profile)]
    return Interpreter(model_content=content, delegates=delegates, listeners=listeners)


def _litert(content: bytes, num_threads: int, resolver: str = "AUTO") -> Runtime:
    try:
        from ai_edge_litert.interpreter import Interpreter as LiteRt
        from ai_edge_litert.interpreter import OpResolverType
    except ModuleNotFoundError as error:
        raise LiteclError("comparing with LiteRT needs its package: pip install ai-edge-litert") from error
    kernels = OpResolverType[resolver]
    runtime: Runtime = LiteRt(model_content=content, num_threads=num_threads, experimental_op_resolver_type=kernels)
    return runtime


PEERS: dict[str, Callable[[bytes, int], Runtime]] = {
    "litert": _litert,
    "litert-reference": partial(_litert, resolver="BUILTIN_REF"),
}


def _compare(contenders: Sequence[_Contender]) -> float:
    ours, *theirs = [outputs_of(contender.runtime) for contender in contenders]
    return max((difference(ours, expected) for expected in theirs), default=0.0)


def _steps(contenders: Sequence[_Contender]) -> int | None:
    ours, *theirs = [outputs_of(contender.runtime) for contender in contenders]
    return steps(contenders[0].runtime.get_output_details(), ours, theirs[0]) if theirs else None


def _report(runtime: Runtime, options: BenchOptions) -> DelegationReport | None:
    if options.cpu:
        return None
    assert isinstance(runtime, Interpreter)
    return DelegationReport.of(runtime)


def _comparison(subjects: Sequence[Subject], largest: float, apart: int | None) -> Comparison | None:
    if len(subjects) < 2:
        return None
    ours, theirs = subjects[0].stats, subjects[1].stats
    return Comparison(theirs.median_ms / ours.median_ms, theirs.min_ms / ours.min_ms, largest, apart)


def _kernels(reports: Sequence[DelegationReport]) -> tuple[KernelTime, ...]:
    """Medians of launches over reports of one interpreter; launches are matched by their place in the order."""
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
            launch[0].flops,
        )
        for launch in zip(*(report.kernels for report in alike), strict=True)
    )
