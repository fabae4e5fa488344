"""What users do with any device, done with ``native`` by its name: limits, preparing, times, traces, commands."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli import main
from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write_file
from support import compare, small_models
from support.command import failure
from support.small_models import native, reference, run

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
CHAIN, LSTM = small_models.chain(), small_models.lstm()
X = np.random.default_rng(13).standard_normal((2, 5)).astype(np.float32)
_SOON_S = 30.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A model's file."""
    write_file(CHAIN, tmp_path / "model.tflite")
    return str(tmp_path / "model.tflite")


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_limit(threads: int) -> None:
    """A region counts; one that doesn't fit is left to the CPU; and the number is the same for every invoke."""
    delegate = CLDelegate("native", num_threads=threads)
    small = Interpreter(CHAIN, delegates=[delegate], memory_limit=400)
    small.allocate_tensors()
    report = small.delegation_report()
    assert report.claimed == 0
    assert "memory_limit" in str(report)
    enough = Interpreter(CHAIN, delegates=[delegate], memory_limit=1 << 20)
    enough.allocate_tensors()
    assert enough.delegation_report().claimed == 4
    results = [run(enough, X) for _ in range(3)]
    compare.assert_close(results[2], run(reference(CHAIN), X), compare.DEVICE["float32"])


def test_time_limit_that_is_kept_costs_nothing() -> None:
    """A region without long loops stays one function."""
    interpreter = Interpreter(CHAIN, delegates=[CLDelegate("native", strict=True)], time_limit=60.0)
    interpreter.allocate_tensors()
    compare.assert_close(run(interpreter, X), run(reference(CHAIN), X), compare.DEVICE["float32"])
    assert [str(part.manner) for part in interpreter.delegation_report().partitions] == ["one kernel"]


@pytest.mark.parametrize("options", [{}, {"num_threads": 2}, {"profile": True}, {"queue_loops": True}], ids=str)
def test_warm_up_in_the_background(options: dict[str, Any]) -> None:
    """The CPU runs the model with its states, then the device continues."""
    rng, wanted = np.random.default_rng(4), reference(LSTM)
    interpreter = native(LSTM, warm_up="background", cache_dir=None, **options)
    end_s, after = time.monotonic() + _SOON_S, 0
    while after < 3 and time.monotonic() < end_s:
        x = rng.standard_normal((1, 3, 4)).astype(np.float32)
        compare.assert_close(run(interpreter, x), run(wanted, x), compare.DEVICE["float32"])
        report = DelegationReport.of(interpreter)
        after += report.claimed == len(report.nodes)
    assert after == 3
    assert report.warm_up is not None
    assert report.warm_up.ready


@pytest.mark.parametrize("threads", [1, 2])
def test_profile(threads: int) -> None:
    """Every launch has a time within the invoke, also where states change from one to the next."""
    interpreter = native(LSTM, num_threads=threads, profile=True)
    x = np.ones((1, 3, 4), np.float32)
    for _ in range(2):
        start_s = time.perf_counter()
        run(interpreter, x)
        took_ms = 1e3 * (time.perf_counter() - start_s)
        rows = interpreter.delegation_report().kernels
        assert rows
        assert all(0 < row.duration_ms < took_ms for row in rows)


def test_trace(path: str, tmp_path: Path) -> None:
    assert main(["trace", path, "--device", "native", "-o", str(tmp_path / "trace.json")]) == 0
    made = json.loads((tmp_path / "trace.json").read_text())
    assert made["otherData"]["device"]["name"] == "native"
    spans = [event for event in made["traceEvents"] if event["ph"] == "X"]
    (region, *_) = [event for event in spans if event["name"] == "region 0"]
    assert region["args"]["runs as"] == "one kernel"
    launches = [event for event in spans if event["tid"] == 2]
    assert len(launches) % region["args"]["launches"] == 0
    assert launches


@pytest.mark.long
def test_verify_quickly(capsys: pytest.CaptureFixture[str]) -> None:
    """Of few operators, as all of them take a minute."""
    assert main(["verify", "--device", "native", "--quick", "--ops", "SOFTMAX,WHILE", "--json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert device["device"]["name"] == "native"
    assert {row["op"] for row in device["rows"]} == {"SOFTMAX", "WHILE"}
    assert {row["status"] for row in device["rows"]} == {"pass"}


def test_tune_is_for_gpus(path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = failure(capsys, "tune", path, "--device", "native", "--cache", tmp_path)
    assert "`tune` needs a GPU; got native" in said
