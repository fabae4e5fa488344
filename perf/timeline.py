"""Traces nodes and launches in the format of chrome://tracing and Perfetto."""

from collections.abc import Mapping
from typing import Any

from litecl.delegate import CLDelegate, DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import Numbers
from litecl.perf.environment import header, named
from litecl.perf.feeds import prepare
from litecl.perf.timing import Tick, no_tick
from litecl.perf.trace_events import Event, Span, events_of

_AS_IT_RUNS, _PROFILED = 1, 2  # process numbers


class Timeline:
    """Records when every node runs: pass it as ``Interpreter(model, listeners=[timeline])`` and read ``spans``."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def ran(self, subgraph: int, node: int, op: str, start_s: float, end_s: float) -> None:
        """Record a node; the executor calls this. Nodes of a called subgraph come before their caller."""
        self.spans.append(Span(subgraph, node, op, start_s, end_s))

    def clear(self) -> None:
        """Clear the record."""
        self.spans.clear()

    def trace(self, interpreter: Interpreter) -> dict[str, Any]:
        """Return a trace of one invoke of this interpreter, the only one since ``clear``.

        Includes launches with ``CLDelegate(profile=True)``.
        """
        report = DelegationReport.of(interpreter)
        return _document(events_of(_AS_IT_RUNS, "as it runs", [(self.spans, report)]), report)


def trace(
    content: bytes,
    inputs: Mapping[str, Array],
    delegate: Mapping[str, Any],
    runs: int = 5,
    tick: Tick = no_tick,
    *,
    numbers: Numbers = "reference",
) -> dict[str, Any]:
    """Return a trace of ``runs`` invokes with launch times.

    If profiling changes the program, queueing launches one by one that otherwise form one kernel, the trace has two
    processes: one for the profiled invokes, and one for as many without launch times. delegate: keywords of
    ``CLDelegate``. numbers: as for ``Interpreter``. Raises ModelError and DelegateError.
    """
    timed = _traced(content, inputs, {**delegate, "profile": True}, runs, tick, numbers)
    (_, report), *_ = timed
    if not any(row.manner.reason.startswith("profile") for row in report.partitions):
        events = events_of(_AS_IT_RUNS, "as it runs", timed)
    else:
        events = events_of(_AS_IT_RUNS, "as it runs", _traced(content, inputs, delegate, runs, tick, numbers))
        events += events_of(_PROFILED, "profiled: launches queued one by one", timed)
    return _document(events, report)


def _document(events: list[Event], report: DelegationReport) -> dict[str, Any]:
    other = header("litecl trace") | {"device": named(report.device)}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}


def _traced(
    content: bytes,
    inputs: Mapping[str, Array],
    delegate: Mapping[str, Any],
    runs: int,
    tick: Tick,
    numbers: Numbers,
) -> list[tuple[list[Span], DelegationReport]]:
    """Return the spans and report of each invoke, after one that compiles and warms up."""
    timeline, traced = Timeline(), []
    interpreter = Interpreter(content, delegates=[CLDelegate(**delegate)], listeners=[timeline], numbers=numbers)
    prepare(interpreter, inputs)
    interpreter.invoke()
    for _ in range(runs):
        timeline.clear()
        interpreter.invoke()
        traced.append((timeline.spans.copy(), DelegationReport.of(interpreter)))
        tick()
    return traced
