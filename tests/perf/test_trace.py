"""litecl trace: what ran lies where it ran, and adds up to what the report says."""

import json
from pathlib import Path
from typing import Any

import pytest

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.opencl import execution
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.perf.cli import main
from litecl.perf.measure.feeds import prepare
from litecl.perf.measure.timeline import Timeline, trace
from litecl.perf.verify.scenarios.images import sound


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


def test_what_is_not_the_program_that_runs_is_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_can_time_itself", lambda device: False)
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
    flows = {ph: sorted(e["id"] for e in made["traceEvents"] if e["ph"] == ph) for ph in "sf"}
    assert flows["s"] == flows["f"] and len(flows["s"]) == len(launches)


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
