"""Turns an invoke into spans of host and device activity, with loops folded."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from litecl.delegate.report import CopyRow, DelegationReport, KernelRow
from litecl.delegate.report_details import kernel_name
from litecl.perf.trace_events import Span as HostSpan
from litecl.report.collect.watched import Watched
from litecl.report.facts import Place, Span


def timeline_of(
    watched: Watched, ops: Mapping[Place, str], spans: Sequence[HostSpan], report: DelegationReport
) -> tuple[Span, ...]:
    """Return an invoke's spans, relative to the start of its first node.

    ops: each node's operator. report: of the invoke, with times of copies and launches.
    """
    if not spans:
        return ()
    zero_s = min(span.start_s for span in spans)
    drawn: list[Span] = []
    for span, within in _outermost(spans):
        number = watched.region_of(span)
        name = span.op if number is None else f"region {number}"
        note = f"{within} nodes within" if within else ""
        start_ms = queued_ms = (span.start_s - zero_s) * 1e3
        op = span.op if number is None else ""
        drawn.append(Span("host", name, op, start_ms, (span.end_s - span.start_s) * 1e3, note=note))
        for copy in (row for row in report.copies if row.partition == number):
            begin_ms = start_ms + copy.start_ms
            drawn.append(Span("copies", f"to {copy.to}", "", begin_ms, copy.duration_ms, note=_bytes(copy)))
            queued_ms = queued_ms if copy.to == "host" else begin_ms + copy.duration_ms
        kernels = [k for k in report.kernels if k.partition == number and k.runs]
        drawn += _launches(kernels, queued_ms, span.subgraph, ops)
    return tuple(drawn)


def _bytes(copy: CopyRow) -> str:
    return f"{copy.size_bytes} bytes" + (", and the wait for the device" if copy.to == "host" else "")


def _outermost(spans: Sequence[HostSpan]) -> list[tuple[HostSpan, int]]:
    """Return the outermost spans, with the number of spans inside each. Callers come after their callees."""
    outer: list[tuple[HostSpan, int]] = []
    for span in spans:
        within = 0
        while outer and outer[-1][0].start_s >= span.start_s:
            within += 1 + outer.pop()[1]
        outer.append((span, within))
    return outer


def _launches(kernels: Sequence[KernelRow], start_ms: float, subgraph: int, ops: Mapping[Place, str]) -> list[Span]:
    """Return a region's launches. Those of subgraphs that it runs, such as loops, become one span."""
    if not kernels:
        return []
    queued = [k.queued_ms for k in kernels]
    drawn = [Span("queue", f"{len(kernels)} launches queued", "", start_ms + min(queued), max(queued) - min(queued))]
    drawn = drawn if drawn[0].ms else []
    for folded, group in groupby(kernels, lambda k: k.subgraph != subgraph or k.runs > 1):
        rows = list(group)
        drawn += [_folded(rows, start_ms, ops)] if folded else [_launch(k, start_ms, ops) for k in rows]
    return drawn


def _launch(k: KernelRow, start_ms: float, ops: Mapping[Place, str]) -> Span:
    name, op = kernel_name(k.kernel, k.entry), ops.get((k.subgraph, k.node), "")
    return Span("device", name, op, start_ms + k.start_ms, k.duration_ms, note=f"node {k.node}")


def _folded(kernels: Sequence[KernelRow], start_ms: float, ops: Mapping[Place, str]) -> Span:
    names = list(dict.fromkeys(kernel_name(k.kernel, k.entry) for k in kernels))
    counts: dict[tuple[int, int, str, str], int] = {}
    for k in kernels:
        key = k.subgraph, k.node, k.kernel, k.entry
        counts[key] = counts.get(key, 0) + k.runs
    runs = max(counts.values())
    first = min(k.start_ms for k in kernels)
    end = max(max(k.start_ms + k.duration_ms for k in kernels), first + sum(k.duration_ms for k in kernels))
    op = ops.get((kernels[0].subgraph, kernels[0].node), "")
    return Span("device", "loop: " + ", ".join(names), op, start_ms + first, end - first, runs)
