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
_HOST, _DEVICE = 1, 2  # thread numbers
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
    """Return a trace of ``runs`` invokes as the model runs, and of as many with times of launches.

    The latter are of another program: launches are queued one by one where a region is one kernel otherwise. delegate:
    keywords of ``CLDelegate``. Raises ModelError and DelegateError.
    """
    events = _names(_AS_IT_RUNS, "as it runs") + _names(_PROFILED, "profiled: launches queued one by one")
    report: DelegationReport | None = None
    for process in (_AS_IT_RUNS, _PROFILED):
        timeline = Timeline()
        profile = process == _PROFILED
        interpreter = Interpreter(
            content, delegates=[CLDelegate(**{**delegate, "profile": profile})], listeners=[timeline]
        )
        prepare(interpreter, inputs)
        interpreter.invoke()  # the first one builds and warms up
        for number in range(runs):
            timeline.spans.clear()
            interpreter.invoke()
            report = DelegationReport.of(interpreter)
            events += _invoke(process, number, timeline.spans, report)
            tick()
    device = None if report is None else named(report.device)
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": header("litecl trace") | {"device": device}}


def _names(process: int, name: str) -> list[Event]:
    rows = [("process_name", 0, name), ("thread_name", _HOST, "host"), ("thread_name", _DEVICE, "device")]
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
        kernels = [k for k in report.kernels if k.partition == report.partitions[region].partition]
        for k in kernels:
            events += _launch(process, last, k, rows.get((k.subgraph, k.node)))
    return events


def _regions(spans: Sequence[Span], report: DelegationReport) -> dict[tuple[int, int], int]:
    """Return which of the report's regions each CL_REGION is: those of a subgraph are numbered as they run."""
    found: dict[tuple[int, int], int] = {}
    for subgraph in {span.subgraph for span in spans}:
        places = sorted({(s.subgraph, s.node) for s in spans if s.op == _REGION and s.subgraph == subgraph})
        numbers = [i for i, row in enumerate(report.partitions) if row.subgraph == subgraph]
        found |= dict(zip(places, numbers, strict=False))
    return found


def _launch(process: int, region: Span, kernel: KernelRow, row: NodeRow | None) -> list[Event]:
    """Return a launch on the device, and an arrow to it from where it was queued.

    The device has a clock of its own: its first launch counts as queued when the region began.
    """
    start_s = region.start_s + kernel.start_ms * 1e-3
    told: dict[str, Any] = {"subgraph": kernel.subgraph, "node": kernel.node, "flops": kernel.flops}
    name = kernel_name(kernel.kernel, kernel.entry)
    if row is not None:
        name = f"{row.op} {name}"
        told["outputs"] = [f"{t.name} {t.type}{list(t.shape or ())}" for t in row.outputs]
    launch = _span(process, _DEVICE, name, start_s, start_s + kernel.duration_ms * 1e-3, told)
    flow = {"name": "launch", "cat": "launch", "id": f"{process} {launch['ts']}", "pid": process}
    queued_us = (region.start_s + kernel.queued_ms * 1e-3) * 1e6
    begin = flow | {"ph": "s", "tid": _HOST, "ts": queued_us}
    return [launch, begin, flow | {"ph": "f", "bp": "e", "tid": _DEVICE, "ts": launch["ts"]}]


def _span(process: int, thread: int, name: str, start_s: float, end_s: float, args: Mapping[str, Any]) -> Event:
    times = {"ts": start_s * 1e6, "dur": max(0.0, end_s - start_s) * 1e6}
    category = "host" if thread == _HOST else "device"
    return {"ph": "X", "name": name, "cat": category, "pid": process, "tid": thread, **times, "args": dict(args)}


def _place(span: Span) -> dict[str, int]:
    return {"subgraph": span.subgraph, "node": span.node}
