"""litecl trace: spans lie where the work ran, and add up to the report's figures."""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from litecl.cli import main
from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.report_details import kernel_name
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.perf.feeds import prepare
from litecl.perf.timeline import Timeline, trace
from litecl.verify.scenarios.images import sound


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return trace(write(sound()), {}, {"deny_ops": ["SOFTMAX"]}, runs=2)


def spans(made: dict[str, Any], process: int, thread: int) -> list[dict[str, Any]]:
    return [e for e in made["traceEvents"] if e["ph"] == "X" and (e["pid"], e["tid"]) == (process, thread)]


def test_nodes_lie_within_their_invoke(made: dict[str, Any]) -> None:
    host, copies = spans(made, 1, 1), spans(made, 1, 3)
    assert [e["name"] for e in host] == [n for i in range(2) for n in (f"invoke {i}", "region 0", "SOFTMAX")]
    assert [e["name"] for e in copies] == ["to device", "to host"] * 2
    for (invoke, *nodes), copied in ((host[:3], copies[:2]), (host[3:], copies[2:])):
        for node in (*nodes, *copied):
            assert invoke["ts"] <= node["ts"]
            assert node["ts"] + node["dur"] <= invoke["ts"] + invoke["dur"] + 1e-3
    assert host[1]["args"]["runs as"] == "one kernel"
    assert {e["pid"] for e in made["traceEvents"]} == {1}


@pytest.mark.opencl
def test_what_is_not_the_program_that_runs_is_a_process_of_its_own() -> None:
    made = trace(write(sound()), {}, {}, runs=1)
    assert spans(made, 1, 1)[1]["args"]["runs as"] == "one kernel"
    assert "profile=True" in spans(made, 2, 1)[1]["args"]["runs as"]
    assert spans(made, 2, 2) and not spans(made, 1, 2)


def test_launches_are_on_the_device_one_after_another(made: dict[str, Any]) -> None:
    launches = spans(made, 1, 2)
    assert len(launches) == 2 * spans(made, 1, 1)[1]["args"]["launches"]
    starts = [e["ts"] for e in launches]
    assert starts == sorted(starts)
    assert any(e["name"].startswith("CONV_2D") and e["args"]["outputs"] for e in launches)


@dataclass(frozen=True)
class Slice:
    """A span as a reader of the format takes it in: whole nanoseconds, and the one around it."""

    track: tuple[int, int]
    name: str
    start_ns: int
    end_ns: int
    parent: "Slice | None"


def read(trace: dict[str, Any], to_ns: Callable[[float], int]) -> tuple[list[Slice], list[tuple[int, int]]]:
    """Read a trace as Perfetto does; return spans, and arrows from the span that holds each end. to_ns: a rounding.

    Raises AssertionError where Perfetto would drop an event: spans that overlap without one being within the other,
    arrows without a whole number or without a span at an end, values of counters that are no numbers.
    """
    slices: list[Slice] = []
    open_: dict[tuple[int, int], list[Slice]] = defaultdict(list)
    named, ends = set(), {"s": {}, "f": {}}
    for event in trace["traceEvents"]:
        track = event["pid"], event.get("tid", 0)
        if event["ph"] == "M":
            named.add((event["name"], *track))
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"]
            continue
        at_ns = to_ns(event["ts"] * 1e3)
        while open_[track] and open_[track][-1].end_ns <= at_ns and event["ph"] == "X":
            open_[track].pop()
        if event["ph"] == "X":
            assert ("thread_name", *track) in named
            parent = open_[track][-1] if open_[track] else None
            slices.append(Slice(track, event["name"], at_ns, at_ns + to_ns(event["dur"] * 1e3), parent))
            assert parent is None or (parent.start_ns <= at_ns and slices[-1].end_ns <= parent.end_ns), (
                parent,
                slices[-1],
            )
            open_[track].append(slices[-1])
        elif event["ph"] == "C":
            assert all(isinstance(value, int) and value >= 0 for value in event["args"].values())
        else:
            assert type(event["id"]) is int and event["id"] not in ends[event["ph"]]
            ends[event["ph"]][event["id"]] = (track, at_ns)
    assert ends["s"].keys() == ends["f"].keys()
    for track, at_ns in (*ends["s"].values(), *ends["f"].values()):
        assert any(s.track == track and s.start_ns <= at_ns <= s.end_ns for s in slices)
    return slices, [(ends["s"][i][1], ends["f"][i][1]) for i in ends["s"]]


@pytest.mark.parametrize("to_ns", [round, math.floor], ids=["rounded", "truncated"])
def test_a_strict_reader_adds_up_what_the_report_says(to_ns: Callable[[float], int]) -> None:
    timeline = Timeline()
    interpreter = Interpreter(sound(), delegates=[CLDelegate(profile=True)], listeners=[timeline])
    prepare(interpreter, {})
    for _ in range(3):
        timeline.clear()
        interpreter.invoke()
        kernels = [k for k in DelegationReport.of(interpreter).kernels if k.runs]
        slices, arrows = read(json.loads(json.dumps(timeline.trace(interpreter))), to_ns)
        launches = [s for s in slices if s.track == (1, 2)]
        assert [s.name.rpartition(" ")[2] for s in launches] == [kernel_name(k.kernel, k.entry) for k in kernels]
        for launch, k in zip(launches, kernels, strict=True):
            assert abs(launch.end_ns - launch.start_ns - k.duration_ms * 1e6) <= 2
        assert len(arrows) == len(launches) and all(start <= end for start, end in arrows)
        (invoke,) = (s for s in slices if s.name == "invoke 0")
        assert sum(s.end_ns - s.start_ns for s in launches) <= 1.02 * (invoke.end_ns - invoke.start_ns)
        assert [s.name for s in slices if s.parent is invoke] == ["region 0"]


def test_counters_return_to_nothing(made: dict[str, Any]) -> None:
    counters = [e for e in made["traceEvents"] if e["ph"] == "C"]
    rows = {name: [e["args"] for e in counters if e["name"] == name] for name in ("queue", "arena", "bytes copied")}
    launches = spans(made, 1, 1)[1]["args"]["launches"]
    depths = [row["launches"] for row in rows["queue"]]
    assert max(depths) <= launches and depths[-1] == 0 and depths.count(0) == 2
    assert [row["bytes"] > 0 for row in rows["arena"]] == [True, False] * 2
    assert [set(row) for row in rows["bytes copied"]] == [{"to device", "to host"}] * 2


def test_times_are_those_of_the_report() -> None:
    timeline = Timeline()
    interpreter = Interpreter(sound(), delegates=[CLDelegate(profile=True)], listeners=[timeline])
    prepare(interpreter, {})
    interpreter.invoke()
    kernels = DelegationReport.of(interpreter).kernels
    (region,) = timeline.spans
    assert min(k.queued_ms for k in kernels) == 0.0
    assert all(k.queued_ms <= k.start_ms for k in kernels)
    ends = [k.start_ms + k.duration_ms for k in kernels]
    assert all(end <= after.start_ms + 1e-6 for end, after in zip(ends, kernels[1:], strict=False))
    assert ends[-1] <= 1.02 * (region.end_s - region.start_s) * 1e3  # by a clock that was timed


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, file = tmp_path / "model.tflite", tmp_path / "trace.json"
    model.write_bytes(write(sound()))
    assert main(["trace", str(model), "-o", str(file), "--runs", "1", "--json"]) == 0
    told, written = json.loads(capsys.readouterr().out), json.loads(file.read_text())
    assert told["events"] == len(written["traceEvents"])
    assert written["otherData"]["kind"] == "litecl trace"
    assert written["otherData"]["device"]["driver"]
