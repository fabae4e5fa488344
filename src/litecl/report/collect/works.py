"""Times of launches and operators, compared with the device's peaks."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from litecl.delegate.report import KernelRow, NodeRow
from litecl.delegate.report_details import kernel_name
from litecl.report.facts import LaunchFacts, OperatorFacts, Place, Roofs, Work

_BYTES = ("INT8", "UINT8", "INT4", "INT2")
_ARITHMETIC = {"FLOAT32": "float32", "INT16": "int16", **dict.fromkeys(_BYTES, "int8")}


@dataclass(frozen=True)
class Sum:
    """The total of several launches. arithmetic_ms, memory_ms: lower bounds for their time."""

    ms: float = 0.0
    flops: int = 0
    size_bytes: int = 0
    arithmetic_ms: float = 0.0
    memory_ms: float = 0.0

    def __add__(self, other: "Sum") -> "Sum":
        mine, others = vars(self).values(), vars(other).values()
        return Sum(*(a + b for a, b in zip(mine, others, strict=True)))


def launches_of(
    invokes: Sequence[Sequence[KernelRow]],
    ops: Mapping[Place, str],
    roofs: Roofs | None,
    total_ms: float,
    arithmetic: Mapping[Place, str] | None = None,
) -> tuple[LaunchFacts, ...]:
    """Return an invoke's launches with their median times; a loop's launches are merged.

    invokes: the launches of each. ops: each node's operator. total_ms: the base of shares. arithmetic: of each node, as
    ``arithmetic_of`` returns it.
    """
    alike = [rows for rows in invokes if len(rows) == len(invokes[-1])] if invokes else []
    folded: dict[tuple[int, Place, str, int], list[tuple[KernelRow, float]]] = {}
    for rows in zip(*alike, strict=True):
        row = rows[0]
        key = row.partition, (row.subgraph, row.node), kernel_name(row.kernel, row.entry), row.size_bytes
        folded.setdefault(key, []).append((row, statistics.median(r.duration_ms for r in rows)))
    facts: list[LaunchFacts] = []
    for (partition, place, name, _), timed in folded.items():
        kind = (arithmetic or {}).get(place, "")
        total = sum((_sum(row, ms, roofs, kind) for row, ms in timed), Sum())
        runs = sum(row.runs for row, _ in timed)
        work = work_of(total, total_ms)
        facts.append(LaunchFacts(len(facts), partition, place, ops.get(place, "?"), name, runs, kind, work))
    return tuple(facts)


def arithmetic_of(row: NodeRow) -> str:
    """Return a node's arithmetic: "float32", "int8", "int16", or "" for any other.

    Floats times constant integers count as int8: kernels quantize the floats first.
    """
    types = [_ARITHMETIC.get(tensor.type, "") for tensor in row.outputs[:1]]
    weights = {_ARITHMETIC.get(tensor.type, "") for tensor in row.inputs if tensor.constant}
    kind = types[0] if types else ""
    return "int8" if kind == "float32" and "int8" in weights else kind


def _sum(row: KernelRow, ms: float, roofs: Roofs | None, arithmetic: str) -> Sum:
    flops, size = row.flops * row.runs, row.size_bytes * row.runs
    if roofs is None:
        return Sum(ms, flops, size)
    roof = roofs.operations_per_s.get(arithmetic)
    arithmetic_ms = 0.0 if roof is None else flops / roof * 1e3
    return Sum(ms, flops, size, arithmetic_ms, size / roofs.bandwidth(row.size_bytes) * 1e3)


def work_of(total: Sum, total_ms: float) -> Work:
    """Return a total with its share and its bound."""
    bound_ms = max(total.arithmetic_ms, total.memory_ms)
    bound = "" if not bound_ms else "arithmetic" if total.arithmetic_ms >= total.memory_ms else "memory"
    return Work(
        ms=total.ms,
        share=total.ms / total_ms if total_ms else 0.0,
        flops=total.flops,
        size_bytes=total.size_bytes,
        intensity=total.flops / total.size_bytes if total.size_bytes else None,
        flops_per_s=total.flops / total.ms * 1e3 if total.ms else None,
        bytes_per_s=total.size_bytes / total.ms * 1e3 if total.ms else None,
        bound=bound,
        of_bound=bound_ms / total.ms if bound and total.ms else None,
    )


def operators_of(
    launches: Iterable[LaunchFacts], nodes: Iterable[NodeRow], on_cpu: Mapping[Place, float], total_ms: float
) -> tuple[OperatorFacts, ...]:
    """Return operators sorted by time, on the device and on the CPU, where only times are known."""
    sums: dict[tuple[str, str], Sum] = defaultdict(Sum)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    numbers: dict[tuple[str, str], set[Place]] = defaultdict(set)
    for launch in launches:
        key, work = (launch.op, "device"), launch.work
        bound_ms = (work.of_bound or 0.0) * work.ms
        by = {"arithmetic": (bound_ms, 0.0), "memory": (0.0, bound_ms)}.get(work.bound, (0.0, 0.0))
        sums[key] += Sum(work.ms, work.flops, work.size_bytes, *by)
        counts[key] += launch.runs
        numbers[key].add(launch.place)
    for row in nodes:
        place = row.subgraph, row.node
        if place in on_cpu:
            sums[row.op, "CPU"] += Sum(on_cpu[place])
            numbers[row.op, "CPU"].add(place)
    rows = [
        OperatorFacts(op, where, len(numbers[op, where]), counts[op, where], _operator(total, total_ms))
        for (op, where), total in sums.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.work.ms))


def _operator(total: Sum, total_ms: float) -> Work:
    """Return a total of launches with different bounds: their arithmetic and memory bounds add up."""
    work = work_of(total, total_ms)
    bound_ms = total.arithmetic_ms + total.memory_ms
    return replace(work, of_bound=bound_ms / total.ms) if work.bound and total.ms else work
