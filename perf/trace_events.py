"""Converts spans and launches to events of chrome://tracing and Perfetto.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, count, groupby
from typing import Any

from litecl.delegate.report import DelegationReport, KernelRow, NodeRow
from litecl.delegate.report_details import kernel_name
from litecl.interpreter.dataclass import dataclass

_HOST, _DEVICE, _COPIES = 1, 2, 3  # thread numbers
_REGION = "CL_REGION"
_ID_BITS = 32  # for arrow IDs within a process

Event = dict[str, Any]


@dataclass(frozen=True)
class Span:
    """A node's run on the host; times in seconds of ``time.perf_counter``."""

    subgraph: int
    node: int
    op: str
    start_s: float
    end_s: float


Invoke = tuple[Sequence[Span], DelegationReport]
"""The spans of an invoke's nodes, and the report after it, with launch times."""


def events_of(process: int, name: str, invokes: Sequence[Invoke]) -> list[Event]:
    """Return the events of invokes as a named process."""
    ids = count(process << _ID_BITS)
    per_invoke = (_invoke(process, number, spans, report, ids) for number, (spans, report) in enumerate(invokes))
    events = [event for events in per_invoke for event in events]
    return [*_names(process, name), *sorted(events, key=lambda e: (e["ts"], -e.get("dur", 0.0)))]  # callers first


def _names(process: int, name: str) -> list[Event]:
    rows = [("process_name", 0, name), ("thread_name", _HOST, "host"), ("thread_name", _DEVICE, "device")]
    rows.append(("thread_name", _COPIES, "copies, and the wait before those to the host"))
    return [
        {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": text}} for kind, thread, text in rows
    ]


def _invoke(
    process: int, number: int, spans: Sequence[Span], report: DelegationReport, ids: Iterator[int]
) -> list[Event]:
    """Return an invoke's events: itself, its nodes, launches within regions, and counters."""
    if not spans:
        return []
    start_s, end_s = min(s.start_s for s in spans), max(s.end_s for s in spans)
    counters = report.counters
    copied = {"to device": counters.bytes_to_device, "to host": counters.bytes_to_host}
    events = [
        _span(process, _HOST, f"invoke {number}", start_s, end_s, {"launches": counters.kernel_launches} | copied),
        _counter(process, "bytes copied", start_s, copied),
    ]
    regions = _regions(spans, report)
    rows = {(row.subgraph, row.node): row for row in report.nodes}
    for span in spans:
        region = regions.get((span.subgraph, span.node))
        if span.op != _REGION or region is None:
            events.append(_span(process, _HOST, span.op, span.start_s, span.end_s, _node(span)))
            continue
        part = report.partitions[region]
        details = {"nodes": len(part.nodes), "launches": part.launches, "runs as": str(part.manner)} | _node(span)
        events.append(_span(process, _HOST, f"region {part.partition}", span.start_s, span.end_s, details))
        events.append(_counter(process, "arena", span.start_s, {"bytes": part.arena_bytes}))
        events.append(_counter(process, "arena", span.end_s, {"bytes": 0}))
    for node, region in regions.items():
        last = next(s for s in reversed(spans) if (s.subgraph, s.node) == node)
        events += _region(process, last, report, report.partitions[region].partition, rows, ids)
    return events


def _region(
    process: int,
    region: Span,
    report: DelegationReport,
    partition: int,
    rows: Mapping[tuple[int, int], NodeRow],
    ids: Iterator[int],
) -> list[Event]:
    """Return a region's copies and launches, and a counter of launches queued but not yet done.

    The device has its own clock: its first launch counts as queued when the inputs have been copied. A launch that ran
    several times, in turns with others, becomes one span as long as all its runs, after its predecessor.
    """
    copies = [row for row in report.copies if row.partition == partition]
    events, queued_s = [], region.start_s
    for row in copies:
        start_s = region.start_s + row.start_ms * 1e-3
        end_s = start_s + row.duration_ms * 1e-3
        queued_s = end_s if row.to == "device" else queued_s
        events.append(_span(process, _COPIES, f"to {row.to}", start_s, end_s, {"bytes": row.size_bytes}))
    free_s, depth = queued_s, list[tuple[float, int]]()
    for k in report.kernels:
        if k.partition == partition and k.runs:
            start_s = max(free_s, queued_s + k.start_ms * 1e-3)
            free_s = start_s + k.duration_ms * 1e-3
            enqueued_s = queued_s + k.queued_ms * 1e-3
            depth += [(enqueued_s, 1), (free_s, -1)]
            events += _launch(process, next(ids), enqueued_s, start_s, k, rows.get((k.subgraph, k.node)))
    return events + _queue(process, depth)


def _queue(process: int, changes: Sequence[tuple[float, int]]) -> list[Event]:
    """Return a counter's events. changes: times in seconds with increments from zero."""
    steps = [(at_s, sum(n for _, n in group)) for at_s, group in groupby(sorted(changes), lambda change: change[0])]
    depths = accumulate(change for _, change in steps)
    return [
        _counter(process, "queue", at_s, {"launches": depth}) for (at_s, _), depth in zip(steps, depths, strict=True)
    ]


def _counter(process: int, name: str, at_s: float, values: Mapping[str, int]) -> Event:
    return {"ph": "C", "name": name, "pid": process, "ts": _us(at_s), "args": dict(values)}


def _ns(at_s: float) -> int:
    return round(at_s * 1e9)


def _us(at_s: float) -> float:
    """Convert to microseconds that a reader may round or truncate to the same nanosecond.

    Otherwise adjacent spans could overlap, and Perfetto drops overlapping spans.
    """
    return (_ns(at_s) + 0.25) / 1e3


def _regions(spans: Sequence[Span], report: DelegationReport) -> dict[tuple[int, int], int]:
    """Map each CL_REGION to its position among the report's regions, which a subgraph numbers in order."""
    regions: dict[tuple[int, int], int] = {}
    for subgraph in {span.subgraph for span in spans}:
        nodes = sorted({(s.subgraph, s.node) for s in spans if s.op == _REGION and s.subgraph == subgraph})
        numbers = [i for i, row in enumerate(report.partitions) if row.subgraph == subgraph]
        regions |= dict(zip(nodes, numbers, strict=False))
    return regions


def _launch(
    process: int, flow: int, queued_s: float, start_s: float, kernel: KernelRow, row: NodeRow | None
) -> list[Event]:
    """Return a launch on the device, and an arrow to it from the point of queueing."""
    details: dict[str, Any] = {
        "subgraph": kernel.subgraph,
        "node": kernel.node,
        "flops": kernel.flops,
        "runs": kernel.runs,
    }
    name = kernel_name(kernel.kernel, kernel.entry)
    if row is not None:
        name = f"{row.op} {name}"
        details["outputs"] = [f"{t.name} {t.type}{list(t.shape or ())}" for t in row.outputs]
    launch = _span(process, _DEVICE, name, start_s, start_s + kernel.duration_ms * 1e-3, details)
    arrow = {"name": "launch", "cat": "launch", "id": flow, "pid": process}
    begin = arrow | {"ph": "s", "tid": _HOST, "ts": _us(queued_s)}
    return [launch, begin, arrow | {"ph": "f", "bp": "e", "tid": _DEVICE, "ts": launch["ts"]}]


def _span(process: int, thread: int, name: str, start_s: float, end_s: float, args: Mapping[str, Any]) -> Event:
    times = {"ts": _us(start_s), "dur": max(0, _ns(end_s) - _ns(start_s)) / 1e3}
    category = {_HOST: "host", _DEVICE: "device", _COPIES: "copy"}[thread]
    return {"ph": "X", "name": name, "cat": category, "pid": process, "tid": thread, **times, "args": dict(args)}


def _node(span: Span) -> dict[str, int]:
    return {"subgraph": span.subgraph, "node": span.node}
