"""Collects the model's nodes: where each ran and why, its launches, and its time."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from litecl import kernels_cl
from litecl.delegate.cl_op import Launch
from litecl.delegate.claim.region import FOLDED
from litecl.delegate.plan.plan import Plan
from litecl.delegate.report import DelegationReport, NodeRow, TensorRow
from litecl.delegate.report_details import kernel_name
from litecl.perf.trace import Trace
from litecl.perf.trace_events import Span
from litecl.report.collect.advice import lift
from litecl.report.collect.watched import Watched
from litecl.report.document import Run
from litecl.report.facts import LaunchFacts, Merged, NodeFacts, Place, Refused, Tensor

_KERNELS = Path(kernels_cl.__file__).parent


def on_host(watched: Watched, invokes: Sequence[Sequence[Span]]) -> dict[Place, float]:
    """Return the median host time in ms of each CPU node over several invokes."""
    nodes: dict[Place, list[float]] = {}
    for number, spans in enumerate(invokes):
        trace = Trace()
        for span in spans:
            trace.ran(span.subgraph, span.node, span.op, span.start_s, span.end_s)
        for row in trace.rows:
            place = watched.place_of(Span(row.subgraph, row.node, row.op, 0.0, 0.0))
            if place is not None:
                nodes.setdefault(place, [0.0] * len(invokes))[number] += row.total_ms
    return {place: median(times) for place, times in nodes.items()}


def nodes_of(
    report: DelegationReport,
    launches: Iterable[LaunchFacts],
    on_cpu: Mapping[Place, float],
    total_ms: float,
    plans: Iterable[Plan] = (),
) -> tuple[NodeFacts, ...]:
    """Return every node with its time, on the device or on the host. plans: of all regions."""
    launched: dict[Place, list[str]] = {}
    for work in (work for plan in plans for work in plan.works):
        launched.setdefault((work.subgraph, work.node), []).append(_launched(work.launch))
    times: dict[Place, float] = dict(on_cpu)
    for launch in launches:
        times[launch.place] = times.get(launch.place, 0.0) + launch.work.ms
    return tuple(
        _node(row, times.get(place := (row.subgraph, row.node), 0.0), total_ms, launched.get(place, ()))
        for row in report.nodes
    )


def sources(runs: Iterable[Run]) -> dict[str, str]:
    """Return the sources of litecl's kernels that the nodes launch, by name."""
    names = {name.partition(":")[0] for run in runs for node in run.nodes for name in node.kernels}
    files = {name: _KERNELS / f"{name}.cl" for name in sorted(names)}
    return {name: path.read_text(encoding="utf-8") for name, path in files.items() if path.is_file()}


def _launched(launch: Launch) -> str:
    """Describe a launch: kernel, work-items and macros."""
    sizes = "x".join(map(str, launch.global_size)), "x".join(map(str, launch.local_size))
    macros = ", ".join(f"{name}={value}" for name, value in launch.defines.items())
    name = kernel_name(launch.kernel, launch.entry)
    return f"{name}: {sizes[0]} work-items in groups of {sizes[1]}" + (f"; {macros}" if macros else "")


def _node(row: NodeRow, ms: float, total_ms: float, launched: Sequence[str]) -> NodeFacts:
    return NodeFacts(
        place=(row.subgraph, row.node),
        op=row.op,
        where=_where(row),
        region=row.partition,
        reason=row.reason,
        into=row.into,
        kernels=row.kernels,
        inputs=tuple(map(_tensor, row.inputs)),
        outputs=tuple(map(_tensor, row.outputs)),
        ms=ms,
        share=ms / total_ms if total_ms else 0.0,
        launched=tuple(dict.fromkeys(launched)),
    )


def _where(row: NodeRow) -> str:
    if row.reason == FOLDED:
        return "constant"
    if not row.claimed:
        return "CPU"
    return "device" if row.kernels or row.into is not None else "nothing"


def _tensor(row: TensorRow) -> Tensor:
    return Tensor(row.name, row.type, row.shape, row.size_bytes, row.constant, row.tensor)


def merged_of(nodes: Sequence[NodeFacts]) -> tuple[Merged, ...]:
    """Return the groups of nodes that share launches."""
    groups: dict[Place, list[NodeFacts]] = {}
    for node in nodes:
        groups.setdefault(node.into or node.place, []).append(node)
    by_place = {node.place: node for node in nodes}
    return tuple(
        Merged(", ".join(by_place[place].kernels), tuple(n.place for n in group), tuple(n.op for n in group))
        for place, group in groups.items()
        if len(group) > 1
    )


def refused_of(nodes: Sequence[NodeFacts]) -> tuple[Refused, ...]:
    """Group the CPU's nodes by reason, costliest first."""
    by_reason: dict[str, list[NodeFacts]] = {}
    for node in nodes:
        if node.where == "CPU":
            by_reason.setdefault(node.reason, []).append(node)
    rows = [
        Refused(
            reason,
            lift(reason),
            dict(Counter(node.op for node in group)),
            tuple(node.place for node in group),
            sum(node.ms for node in group),
            sum(node.share for node in group),
        )
        for reason, group in by_reason.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.ms))
