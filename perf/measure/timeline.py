"""When what ran, node by node and launch by launch, in the format of chrome://tracing and Perfetto.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.report import KernelRow, NodeRow
from litecl.delegate.report_details import kernel_name
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.measure.environment import header, named
from litecl.perf.measure.feeds import prepare
from litecl.perf.measure.timing import Tick, no_tick

_AS_IT_RUNS, _PROFILED = 1, 2  # process numbers
_HOST, _DEVICE, _COPIES = 1, 2, 3  # thread numbers
_REGION = "CL_REGION"

Event = dict[str, Any]


@dataclass(frozen=True)
class Span:
    """A node that has run on the host; times in seconds of ``time.perf_counter``."""

    subgraph: int
    node: int
    op: str
    start_s: float
    end_s: float


class Timeline:
    """Keeps when every node ran: pass it as ``Interpreter(model, listeners=[timeline])``, read ``spans``."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def ran(self, subgraph: int, node: int, op: str, start_s: float, end_s: float) -> None:
        """Called by the executor; nodes of a called subgraph come before their caller."""
        self.spans.append(Span(subgraph, node, op, start_s, end_s))


def trace(
    content: bytes, inputs: Mapping[str, Array], delegate: Mapping[str, Any], runs: int = 5, tick: Tick = no_tick
) -> dict[str, Any]:
    """Return a trace of ``runs`` invokes with times of launches.

    Where these are of another program, with launches queued one by one that are one kernel otherwise, it is a process
    of its own in the trace, beside one of as many invokes without times. delegate: keywords of ``CLDelegate``. Raises
    ModelError and DelegateError.
    """
    timed = _traced(content, inputs, {**delegate, "profile": True}, runs, tick)
    (_, report), *_ = timed
    if not any(row.manner.reason.startswith("profile") for row in report.partitions):
        events = _events(_AS_IT_RUNS, "as it runs", timed)
    else:
        events = _events(_AS_IT_RUNS, "as it runs", _traced(content, inputs, delegate, runs, tick))
        events += _events(_PROFILED, "profiled: launches queued one by one", timed)
    told = header("litecl trace") | {"device": named(report.device)}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": told}


def _traced(
    content: bytes, inputs: Mapping[str, Array], delegate: Mapping[str, Any], runs: int, tick: Tick
) -> list[tuple[list[Span], DelegationReport]]:
    """Return the spans and the report of each of some invokes, after one that builds and warms up."""
    timeline, traced = Timeline(), []
    interpreter = Interpreter(content, delegates=[CLDelegate(**delegate)], listeners=[timeline])
    prepare(interpreter, inputs)
    interpreter.invoke()
    for _ in range(runs):
        timeline.spans.clear()
        interpreter.invoke()
        traced.append((timeline.spans.copy(), DelegationReport.of(interpreter)))
        tick()
    return traced


def _events(process: int, name: str, invokes: Sequence[tuple[list[Span], DelegationReport]]) -> list[Event]:
    made = (_invoke(process, number, spans, report) for number, (spans, report) in enumerate(invokes))
    return [*_names(process, name), *(event for events in made for event in events)]


def _names(process: int, name: str) -> list[Event]:
    rows = [("process_name", 0, name), ("thread_name", _HOST, "host"), ("thread_name", _DEVICE, "device")]
    rows.append(("thread_name", _COPIES, "copies, and the wait before those to the host"))
    return [
        {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": text}} for kind, thread, text in rows
    ]


def _invoke(process: int, number: int, spans: Sequence[Span], report: DelegationReport) -> list[Event]:
    """Return the events of one invoke: itself, its nodes, launches within regions, and bytes copied."""
    if not spans:
        return []
    start_s, end_s = min(s.start_s for s in spans), max(s.end_s for s in spans)
    counters = report.counters
    copied = {"to device": counters.bytes_to_device, "to host": counters.bytes_to_host}
    events = [
        _span(process, _HOST, f"invoke {number}", start_s, end_s, {"launches": counters.kernel_launches} | copied),
        {"ph": "C", "name": "bytes copied", "pid": process, "ts": start_s * 1e6, "args": copied},
    ]
    regions = _regions(spans, report)
    rows = {(row.subgraph, row.node): row for row in report.nodes}
    for span in spans:
        region = regions.get((span.subgraph, span.node))
        if span.op != _REGION or region is None:
            events.append(_span(process, _HOST, span.op, span.start_s, span.end_s, _place(span)))
            continue
        part = report.partitions[region]
        told = {"nodes": len(part.nodes), "launches": part.launches, "runs as": str(part.manner)} | _place(span)
        events.append(_span(process, _HOST, f"region {part.partition}", span.start_s, span.end_s, told))
    for place, region in regions.items():
        last = next(s for s in reversed(spans) if (s.subgraph, s.node) == place)
        events += _region(process, last, report, report.partitions[region].partition, rows)
    return events


def _region(
    process: int, region: Span, report: DelegationReport, partition: int, rows: Mapping[tuple[int, int], NodeRow]
) -> list[Event]:
    """Return the copies and launches of a region.

    The device has a clock of its own: its first launch counts as queued when what goes to the device was copied. What
    ran several times, in turns with others, is one span as long as all of its runs, after what ran before it.
    """
    copies = [row for row in report.copies if row.partition == partition]
    events, queued_s = [], region.start_s
    for row in copies:
        start_s = region.start_s + row.start_ms * 1e-3
        end_s = start_s + row.duration_ms * 1e-3
        queued_s = end_s if row.to == "device" else queued_s
        events.append(_span(process, _COPIES, f"to {row.to}", start_s, end_s, {"bytes": row.size_bytes}))
    free_s = queued_s
    for k in report.kernels:
        if k.partition == partition and k.runs:
            start_s = max(free_s, queued_s + k.start_ms * 1e-3)
            free_s = start_s + k.duration_ms * 1e-3
            events += _launch(process, queued_s + k.queued_ms * 1e-3, start_s, k, rows.get((k.subgraph, k.node)))
    return events


def _regions(spans: Sequence[Span], report: DelegationReport) -> dict[tuple[int, int], int]:
    """Return which of the report's regions each CL_REGION is: those of a subgraph are numbered as they run."""
    found: dict[tuple[int, int], int] = {}
    for subgraph in {span.subgraph for span in spans}:
        places = sorted({(s.subgraph, s.node) for s in spans if s.op == _REGION and s.subgraph == subgraph})
        numbers = [i for i, row in enumerate(report.partitions) if row.subgraph == subgraph]
        found |= dict(zip(places, numbers, strict=False))
    return found


def _launch(process: int, queued_s: float, start_s: float, kernel: KernelRow, row: NodeRow | None) -> list[Event]:
    """Return a launch on the device, and an arrow to it from where it was queued."""
    told: dict[str, Any] = {
        "subgraph": kernel.subgraph,
        "node": kernel.node,
        "flops": kernel.flops,
        "runs": kernel.runs,
    }
    name = kernel_name(kernel.kernel, kernel.entry)
    if row is not None:
        name = f"{row.op} {name}"
        told["outputs"] = [f"{t.name} {t.type}{list(t.shape or ())}" for t in row.outputs]
    launch = _span(process, _DEVICE, name, start_s, start_s + kernel.duration_ms * 1e-3, told)
    flow = {"name": "launch", "cat": "launch", "id": f"{process} {launch['ts']}", "pid": process}
    begin = flow | {"ph": "s", "tid": _HOST, "ts": queued_s * 1e6}
    return [launch, begin, flow | {"ph": "f", "bp": "e", "tid": _DEVICE, "ts": launch["ts"]}]


def _span(process: int, thread: int, name: str, start_s: float, end_s: float, args: Mapping[str, Any]) -> Event:
    times = {"ts": start_s * 1e6, "dur": max(0.0, end_s - start_s) * 1e6}
    category = {_HOST: "host", _DEVICE: "device", _COPIES: "copy"}[thread]
    return {"ph": "X", "name": name, "cat": category, "pid": process, "tid": thread, **times, "args": dict(args)}


def _place(span: Span) -> dict[str, int]:
    return {"subgraph": span.subgraph, "node": span.node}
