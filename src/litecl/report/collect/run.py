"""Examines a model on one device, with launch times and without."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.report import KernelRow
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.numbers import Numbers
from litecl.perf import peak
from litecl.perf.contenders import Contender, litecl, start
from litecl.perf.environment import named
from litecl.perf.intervals import ratio
from litecl.perf.trace_events import Span
from litecl.report.collect.memory import region_of
from litecl.report.collect.nodes import merged_of, nodes_of, on_host, refused_of
from litecl.report.collect.timeline import timeline_of
from litecl.report.collect.verdict import verdict
from litecl.report.collect.watched import Watched
from litecl.report.collect.works import arithmetic_of, launches_of, operators_of
from litecl.report.document import ProfileFacts, Run
from litecl.report.draw.units import ms
from litecl.report.facts import Accuracy, Latency, LaunchFacts, Place, Roofs, Start

_Invoke = TypeVar("_Invoke")
_RUNS = 15  # with launch times, and as many without


@dataclass(frozen=True)
class Prepared:
    """litecl on one device. delegate: keywords of ``CLDelegate``. contender: the runtime to time, without listeners."""

    delegate: dict[str, Any]
    watched: Watched
    contender: Contender

    @property
    def report(self) -> DelegationReport:
        """The delegation report."""
        return self.watched.report()


def prepared(
    content: bytes, model: Model, inputs: Mapping[str, Array], delegate: dict[str, Any], numbers: Numbers
) -> Prepared:
    """Prepare the model twice: to examine it and, from its file's content, to time it. model: as ``numbers`` has it."""
    watched = Watched(model, CLDelegate(**delegate), inputs)
    report = watched.report()
    name, threads = f"litecl on {report.device}", delegate.get("num_threads") or report.threads
    plain = start(name, threads, lambda: litecl(content, delegate, numbers=numbers), inputs)
    return Prepared(delegate, watched, plain)


@dataclass(frozen=True)
class Beside:
    """Other measurements of the model: its times, those of peers, compared outputs, and starts.

    busy: whether the machine was busy, so that times aren't comparable.
    """

    latency: Latency
    peers: Sequence[Latency]
    busy: bool
    accuracy: Sequence[Accuracy]
    starts: Sequence[Start]


def run_of(model: Model, inputs: Mapping[str, Array], one: Prepared, beside: Beside) -> Run:
    """Run the model with and without launch times, and return the measurements."""
    timed = Watched(model, CLDelegate(**{**one.delegate, "profile": True}), inputs)
    plain_spans = _undisturbed([one.watched.invoke() for _ in range(_RUNS)], _invoke_ms)
    invokes = _undisturbed([(timed.invoke(), timed.report()) for _ in range(_RUNS)], lambda each: _invoke_ms(each[0]))
    median = invokes[len(invokes) // 2]
    report, kernels = one.report, [profiled.kernels for _, profiled in invokes]
    arithmetic = {(row.subgraph, row.node): arithmetic_of(row) for row in report.nodes}
    ops = {(row.subgraph, row.node): row.op for row in report.nodes}
    on_cpu = on_host(one.watched, plain_spans)
    device_ms, cpu_ms = _device_ms(kernels, ops), sum(on_cpu.values())
    invoke_ms = _invoke_ms(median[0])
    total_ms = max(invoke_ms, device_ms + cpu_ms)
    roofs = _roofs(one.watched, arithmetic)
    launches = launches_of(kernels, ops, roofs, total_ms, arithmetic)
    if roofs is not None and _exceeded(launches):  # the device was busy when its peaks were measured
        roofs = roofs.or_more(_roofs(one.watched, arithmetic) or roofs)
        launches = launches_of(kernels, ops, roofs, total_ms, arithmetic)
    nodes = nodes_of(report, launches, on_cpu, total_ms, one.watched.delegation.plans.values())
    refused, device = refused_of(nodes), named(report.device)
    rows = {row.partition: row for row in report.partitions}
    threads, latency = report.threads or device.get("compute_units", 1), beside.latency
    ratios = () if beside.busy else tuple(ratio(peer.times_ms, latency.times_ms) for peer in beside.peers)
    return Run(
        device=device,
        verdict=verdict(nodes, refused, latency, threads, beside.peers, ratios, beside.accuracy, report.warnings),
        nodes_on_device=report.claimed,
        warnings=report.warnings,
        counters={key: value for key, value in vars(report.counters).items() if key != "invocation"},
        latency=latency,
        ratios=ratios,
        starts=tuple(beside.starts),
        roofs=roofs,
        profile=_profile(report, timed.report(), _quick_ms(latency.times_ms), invoke_ms, device_ms, cpu_ms),
        operators=operators_of(launches, report.nodes, on_cpu, total_ms),
        launches=launches,
        nodes=nodes,
        merged=merged_of(nodes),
        refused=refused,
        timeline=timeline_of(timed, ops, *median),
        regions=tuple(region_of(rows[n], plan, ops) for n, plan in one.watched.delegation.plans.items()),
        accuracy=tuple(beside.accuracy),
    )


def _undisturbed(invokes: Sequence[_Invoke], time_ms: Callable[[_Invoke], float]) -> list[_Invoke]:
    """Return the fastest third of invokes, fastest first, to exclude disturbances of the machine."""
    return sorted(invokes, key=time_ms)[: len(invokes) // 3]


def _quick_ms(times_ms: Sequence[float]) -> float:
    """Return the median of the fastest third, as in ``_undisturbed``."""
    quick = sorted(times_ms)[: max(1, len(times_ms) // 3)]
    return quick[len(quick) // 2]


def _exceeded(launches: Sequence[LaunchFacts]) -> bool:
    return any((launch.work.of_bound or 0.0) > 1 for launch in launches)


def _device_ms(kernels: Sequence[Sequence[KernelRow]], ops: Mapping[tuple[int, int], str]) -> float:
    return sum(launch.work.ms for launch in launches_of(kernels, ops, None, 0.0))


def _invoke_ms(spans: Sequence[Span]) -> float:
    return (max(s.end_s for s in spans) - min(s.start_s for s in spans)) * 1e3 if spans else 0.0


def _roofs(watched: Watched, arithmetic: Mapping[Place, str]) -> Roofs | None:
    """Measure the device's peaks; None without a device, or if measuring fails. arithmetic: of each node."""
    device = watched.delegation.device
    if device is None:
        return None
    try:
        kinds = ["float32", *(kind for kind in peak.INTEGERS if kind in arithmetic.values())]
        bandwidths = {size: peak.bandwidth(device, size) for size in peak.READ_BYTES}
        return Roofs({kind: peak.operations(device, kind) for kind in kinds}, bandwidths)
    except DelegateError:
        return None


def _profile(
    plain: DelegationReport,
    timed: DelegationReport,
    plain_ms: float,
    invoke_ms: float,
    device_ms: float,
    cpu_ms: float,
) -> ProfileFacts:
    """Describe which program was timed, and the cost of measuring. It is the one actually used if every region runs in
    the same manner.
    """
    pairs = zip(plain.partitions, timed.partitions, strict=False)
    others = [(a.manner, b.manner) for a, b in pairs if a.manner.runs != b.manner.runs]
    sentence = "Launch times come from the program actually used."
    if others:
        sentence = (
            f"Launch times come from another program than the one actually used: {len(others)} of "
            f"{len(plain.partitions)} regions run as {others[0][0]}, but were profiled {others[0][1]}."
        )
    rest_ms = max(0.0, invoke_ms - device_ms - cpu_ms)
    sentence += f" They are medians of the fastest {_RUNS // 3} of {_RUNS} invokes."
    sentence += f" {cost_of_measuring(plain_ms, invoke_ms, device_ms + cpu_ms)}"
    return ProfileFacts(not others, sentence, _RUNS, plain_ms, invoke_ms, device_ms, cpu_ms, rest_ms)


def cost_of_measuring(plain_ms: float, invoke_ms: float, parts_ms: float) -> str:
    """Describe the cost of measuring, and why parts may add up to more than an invoke, in a single unit."""
    plain, invoke, parts = (ms(each, plain_ms, invoke_ms, parts_ms) for each in (plain_ms, invoke_ms, parts_ms))
    times = f"Without launch times an invoke takes {plain}, with them {invoke}."
    if parts_ms <= plain_ms:
        return times
    return f"{times} Launches and nodes add up to {parts}: they overlap, or bear some of the cost of measuring."
