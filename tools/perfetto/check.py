"""Compares what Perfetto's trace processor reads in a trace with the delegation report: ``tools/perfetto.sh``."""

import argparse
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from rich.console import Console
from rich.table import Table

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.report_details import kernel_name
from litecl.interpreter import Interpreter
from litecl.perf.feeds import prepare, random_inputs
from litecl.perf.timeline import Timeline

_APPEND, _FINALIZE, _QUERY = 1, 2, 3  # TraceProcessorRpc.TraceProcessorMethod
_WARMUP = 5
_LAUNCHES = """
    select slice.name, count(*) as spans, sum(slice.dur) as ns
    from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
    where thread.name = 'device' group by slice.name
"""
_INVOKE = "select dur as ns from slice where name like 'invoke %'"
_FAULTS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
_COUNTERS = "select t.name, count(*) as changes from counter c join track t on c.track_id = t.id group by t.name"
_FLOWS = "select count(*) as n from flow"


def ask(engine: Path, trace: str, *queries: str) -> list[list[Any]]:
    """Return the rows of each query on a trace."""
    protos = ProtoFactory(PlatformDelegate())
    stream = protos.TraceProcessorRpcStream()
    stream.msg.add(seq=1, request=_APPEND, append_trace_data=trace.encode())
    stream.msg.add(seq=2, request=_FINALIZE)
    for number, query in enumerate(queries):
        stream.msg.add(seq=3 + number, request=_QUERY).query_args.sql_query = query
    command = ["node", str(Path(__file__).with_name("processor.js")), str(engine)]
    ended = subprocess.run(command, input=stream.SerializeToString(), capture_output=True, check=True)
    replies = protos.TraceProcessorRpcStream.FromString(ended.stdout).msg
    found: dict[int, list[Any]] = {}
    names: dict[int, list[str]] = {}
    for reply in (reply for reply in replies if reply.response == _QUERY):
        result, number = reply.query_result, reply.seq
        if result.error:
            raise ValueError(f"{queries[len(found)]}: {result.error}")
        found.setdefault(number, []).extend(result.batch)
        names.setdefault(number, list(result.column_names))
    return [list(QueryResultIterator(names[number], found[number])) for number in sorted(found)]


def check(engine: Path, path: Path) -> list[str]:
    """Trace an invoke; return a row of what Perfetto and the report tell. Raises AssertionError if they differ."""
    timeline = Timeline()
    interpreter = Interpreter(path.read_bytes(), delegates=[CLDelegate(profile=True)], listeners=[timeline])
    prepare(interpreter, random_inputs(interpreter.get_input_details(), 0))
    for _ in range(_WARMUP):
        timeline.clear()
        interpreter.invoke()
    report, trace = DelegationReport.of(interpreter), timeline.trace(interpreter)
    queries = _LAUNCHES, _INVOKE, _FAULTS, _COUNTERS, _FLOWS
    launches, (invoke,), faults, counters, (flows,) = ask(engine, json.dumps(trace), *queries)
    assert not faults, [(row.name, row.value) for row in faults]
    expected_ns, spans = Counter[str](), Counter[str]()
    ops = {(row.subgraph, row.node): row.op for row in report.nodes}
    for k in report.kernels:
        if k.runs:
            name = f"{ops[k.subgraph, k.node]} {kernel_name(k.kernel, k.entry)}"
            expected_ns[name] += round(k.duration_ms * 1e6)
            spans[name] += 1
    assert {row.name: row.spans for row in launches} == dict(spans)
    for row in launches:  # microseconds with fractions are rounded to whole nanoseconds
        assert abs(row.ns - expected_ns[row.name]) <= 2 * row.spans, (row.name, row.ns, expected_ns[row.name])
    assert flows.n == sum(spans.values())
    assert {row.name for row in counters} == {
        "bytes copied to device",
        "bytes copied to host",
        "arena bytes",
        "queue launches",
    }, counters
    ns, whole = sum(row.ns for row in launches), sum(k.duration_ms for k in report.kernels if k.runs)
    shown = f"{ns / 1e6:.4f}", f"{whole:.4f}", f"{invoke.ns / 1e6:.4f}", f"{ns / invoke.ns:.1%}"
    return [path.name, str(sum(spans.values())), str(len(trace["traceEvents"])), *shown]


def main() -> None:
    """Check the models that are named and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", type=Path, help="the folder with engine_bundle.js")
    parser.add_argument("models", type=Path, nargs="+")
    args = parser.parse_args()
    table = Table("model", "launches", "events", "Perfetto's sum, ms", "report's sum, ms", "invoke, ms", "part of it")
    for path in args.models:
        table.add_row(*check(args.engine, path))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
