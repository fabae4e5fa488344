"""``--numbers`` of the commands that run models."""

import json
from pathlib import Path

import numpy as np
import pytest

from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write_file
from support.command import data, failure, text
from support.micro_models import products
from support.served import started

CASE = products(8)
TFLM = ("--numbers", "tflm")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "model.tflite"
    write_file(CASE.model(), file)
    np.save(tmp_path / "x.npy", CASE.feeds[0])
    return file


def _outputs(capsys: pytest.CaptureFixture[str], path: Path, *flags: str) -> np.ndarray:
    printed = data(capsys, "run", path, "--input", path.parent / "x.npy", "-o", path.parent / "out", *flags)
    assert printed["numbers"] == ("tflm" if TFLM[1] in flags else "reference")
    return np.asarray(np.load(printed["files"][0]))


def test_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    micro, reference = _outputs(capsys, path, "--cpu", *TFLM), _outputs(capsys, path, "--cpu")
    assert (micro != reference).any()
    np.testing.assert_array_equal(_outputs(capsys, path, *TFLM), micro)
    assert "numbers: integers as by tflite-micro" in text(capsys, "run", path, *TFLM)
    assert "numbers:" not in text(capsys, "run", path)


def test_many_inputs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parts of one choice are no parts of the other's job."""
    folder = path.parent / "many"
    flags = "run", path, "--inputs", path.parent / "x.npy", "-o", folder
    assert data(capsys, *flags, *TFLM)["numbers"] == "tflm"
    (name,) = {*np.load(folder / "part-000000.npz")} - {"item"}
    np.testing.assert_array_equal(np.load(folder / "part-000000.npz")[name][0], _outputs(capsys, path, "--cpu", *TFLM))
    assert "another job (numbers differ)" in failure(capsys, *flags)


def test_bench(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = data(capsys, "bench", path, "--runs", "1", "--warmup", "0", *TFLM)
    assert printed["numbers"] == "tflm"
    assert "LiteRT's numbers" in printed["delegation"]["nodes"][0]["reason"]


def test_bisect_and_diff(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = data(capsys, "bisect", path, *TFLM)
    assert (printed["numbers"], printed["verdict"]) == ("tflm", "right")
    assert data(capsys, "diff", path, path, *TFLM)["numbers"] == "tflm"


def test_compile(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is compiled is without the nodes that these numbers leave to the CPU."""
    for_here = "--for", "host", "--threads", "1", "-o", path.parent / "host.pack"
    for flags in ((), for_here):
        printed = data(capsys, "compile", path, *flags, *TFLM)
        assert printed["numbers"] == "tflm"
        assert "LiteRT's numbers" in printed["models"][0]["delegation"]["nodes"][0]["reason"]


def test_trace_and_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = path.parent / "trace.json"
    assert data(capsys, "trace", path, "--runs", "1", "-o", file, *TFLM)["numbers"] == "tflm"
    assert "FULLY_CONNECTED" in {event["name"] for event in json.loads(file.read_text())["traceEvents"]}
    report = data(capsys, "report", path, "--runs", "1", "--no-start", "-o", path.parent / "report.json", *TFLM)
    assert "LiteRT's numbers" in report["runs"][0]["nodes"][0]["reason"]
    assert "integers as by tflite-micro" in report["notes"]


def test_serve(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("litecl.serve.app", reason="litecl[serve] is not installed")
    (detail,) = Interpreter(path).get_input_details()
    values = {
        "name": detail["name"],
        "shape": CASE.feeds[0].shape,
        "datatype": "INT16",
        "data": CASE.feeds[0].ravel().tolist(),
    }
    with started(path, "--cpu", "--name", "micro", *TFLM) as server:
        _, answer = server.client.post({"inputs": [values]}, "/v2/models/micro/infer")
    assert "integers as by tflite-micro" in server.told[-1]
    np.testing.assert_array_equal(answer["outputs"][0]["data"], _outputs(capsys, path, "--cpu", *TFLM).ravel())


@pytest.mark.nightly
def test_verify(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--quick", "--ops", "RELU6,FULLY_CONNECTED", "--keep-cache"
    printed = data(capsys, "verify", "--device", "native", *flags, *TFLM)
    (device,) = printed["devices"]
    refused = [row["reason"] for row in device["rows"] if row["status"] == "refused"]
    assert any("LiteRT's numbers" in reason for reason in refused)
