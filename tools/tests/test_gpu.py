"""Measuring a GPU, on whatever device there is: results are compared, and every figure ends in the files."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate, disk
from litecl.delegate.devices import choose
from litecl.delegate.tuning import load
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import KernelBuildError, LiteclError, OutOfDeviceMemory
from litecl.interpreter.graph import Array
from litecl.perf import tiles
from litecl.perf.feeds import outputs_of
from support import devices
from support.fault_models import raises
from support.planned_gpu import PlannedGpu
from tools import gpu_page as gpu
from tools.gpu import peers as gpu_peers
from tools.gpu.onnx_peer import OnnxModel


def test_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model within rounding of the interpreter, with launches, waits and the share of each kernel."""
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    files = ["--json", str(tmp_path / "gpu.json"), "--page", str(tmp_path / "gpu.md")]
    assert gpu.main(["--small", "--only", "1,000", "--batch", "1", "--batch", "16", "--runs", "1", *files]) == 0
    data = json.loads((tmp_path / "gpu.json").read_text())
    (row,) = data["rows"]
    assert (row["name"], row["batch"], row["launches"], row["waits"]) == ("loop of 1,000, small", 1, 1, 1)
    assert row["difference"] < 1e-5
    assert {"elementwise", "binary"} <= {kernel["kernel"] for kernel in row["kernels"]}
    assert data["device"]["name"] in (tmp_path / "gpu.md").read_text()


def test_tiles_are_measured_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where runs find them."""
    devices.as_on_a_gpu(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    monkeypatch.setattr(tiles, "_ROUNDS", 1)
    arguments = ["--small", "--only", "dense", "--batch", "16", "--runs", "1", "--tune"]
    assert gpu.main([*arguments, "--device", devices.tested()[0].name]) == 0
    assert load(disk.own(tmp_path / "litecl"), choose(devices.tested()[0]).identity).tiles.keys() == {
        "1 x 16 x 32 x 64 of rows, fp32"
    }


class _Peer:
    """Another runtime, as if it were installed: it computes what the interpreter does."""

    runs_on = "CUDA"

    def __init__(self, content: bytes) -> None:
        self._interpreter = gpu._prepared(content, [])

    def prepare(self, inputs: Sequence[Array]) -> None:
        for detail, value in zip(self._interpreter.get_input_details(), inputs, strict=True):
            self._interpreter.set_tensor(detail["index"], value)

    def run(self) -> list[Array]:
        self._interpreter.invoke()
        return outputs_of(self._interpreter)


@pytest.mark.parametrize("subject", gpu.SUBJECTS, ids=lambda subject: subject.name)
def test_every_model_is_claimed_whole(subject: gpu.Subject) -> None:
    """So that a GPU runs all of it; small ones of the same kinds are planned here, and nothing runs."""
    device = PlannedGpu("nvidia")
    content = subject.small(2)
    Interpreter(model_content=content, delegates=[CLDelegate(device=device, strict=True)]).allocate_tensors()
    assert len(device.plans) == 1


def _missing(content: bytes) -> _Peer:
    raise LiteclError("it is not installed")


def test_peers_run_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their times stand beside litecl's; one that computes something else has none, and all who have none say why."""
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    monkeypatch.setattr(gpu_peers, "PEERS", {"PyTorch": _Peer, "ONNX Runtime": _missing})
    arguments = ["--small", "--only", "dense", "--batch", "1", "--runs", "1", "--json", str(tmp_path / "gpu.json")]
    assert gpu.main(arguments) == 0
    (row,) = json.loads((tmp_path / "gpu.json").read_text())["rows"]
    assert row["peers"]["PyTorch"]["ms"] > 0
    assert row["peers"]["ONNX Runtime"] == {"ms": None, "runs_on": "", "problem": "it is not installed"}
    assert "it is not installed" in capsys.readouterr().out
    monkeypatch.setattr(_Peer, "run", lambda peer: [np.full((1, 32), np.nan, np.float32)])
    assert gpu.main([*arguments, "--page", str(tmp_path / "gpu.md")]) == 0
    (row,) = json.loads((tmp_path / "gpu.json").read_text())["rows"]
    assert row["peers"]["PyTorch"]["ms"] is None
    written = (tmp_path / "gpu.md").read_text()
    assert "| dense 1280 x 1000, small | 1 |" in written and "its results differ by inf" in written


@pytest.mark.parametrize("subject", gpu.SUBJECTS, ids=lambda subject: subject.name)
def test_models_in_onnx(subject: gpu.Subject) -> None:
    """Every model but loops is exported, and ONNX Runtime computes what the interpreter does."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    content = subject.small(subject.batches[-1])
    if subject.name.startswith("loop"):
        with pytest.raises(LiteclError, match="expected one subgraph, got 3"):
            OnnxModel(content)
        return
    peer = OnnxModel(content)
    peer.prepare(gpu._feeds(content))
    assert gpu_peers.difference(peer.run(), outputs_of(gpu._prepared(content, []))) < 1e-5


def test_onnx_without_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(LiteclError, match="needs the packages onnx and onnxruntime"):
        OnnxModel(b"")


def test_a_wrong_result_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no number, or far from the interpreter's, ends the command with 1."""
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    for wrong in (float("inf"), 0.01):
        found = gpu.Row("", 1, wrong, 1.0, 1.0, 1, 1, ())
        monkeypatch.setattr(gpu, "row", lambda *given, found=found, **more: found)
        assert gpu.main(["--only", "1,000"]) == 1


def test_one_failure_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that does not build, peaks and times of kernels that cannot be had, a runtime that fails when timed."""
    real, calls = gpu.row, 0

    def row(subject: gpu.Subject, batch: int, *given: Any, **more: Any) -> gpu.Row:
        if subject.name.startswith("LSTM"):
            raise KernelBuildError("lstm.cl does not build\na log of many lines")
        return real(subject, batch, *given, **more)

    def unprofiled(**options: Any) -> CLDelegate:
        if options.get("profile"):
            raise OutOfDeviceMemory("no memory for events")
        return CLDelegate(**options)

    computed = _Peer.run

    def failing(peer: _Peer) -> list[Array]:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise RuntimeError("CUDA is out of memory")
        return computed(peer)

    monkeypatch.setattr(gpu, "measured", raises(KernelBuildError("peak.cl does not build")))
    monkeypatch.setattr(gpu, "row", row)
    monkeypatch.setattr(gpu, "CLDelegate", unprofiled)
    monkeypatch.setattr(_Peer, "run", failing)
    monkeypatch.setattr(gpu_peers, "PEERS", {"PyTorch": _Peer})
    files = ["--json", str(tmp_path / "gpu.json"), "--page", str(tmp_path / "gpu.md")]
    models = ["--only", "lstm", "--only", "loop of 1,000", "--only", "dense"]
    assert gpu.main(["--small", *models, "--batch", "1", "--runs", "2", *files]) == 1
    data = json.loads((tmp_path / "gpu.json").read_text())
    assert data["peaks"] is None
    assert [(one["name"], one["problem"]) for one in data["failures"]] == [
        ("the device's peaks", "peak.cl does not build"),
        ("LSTM 100 x 256, small", "lstm.cl does not build"),
    ]
    dense, loop = data["rows"]
    assert dense["min_ms"] > 0 and dense["without_kernels"] == "no memory for events" and not dense["kernels"]
    assert dense["peers"]["PyTorch"] == {"ms": None, "runs_on": "CUDA", "problem": "CUDA is out of memory"}
    assert loop["min_ms"] > 0
    written, told = (tmp_path / "gpu.md").read_text(), capsys.readouterr().out
    for problem in ("lstm.cl does not build", "Peaks were not measured"):
        assert problem in written
    assert "lstm.cl does not build" in told and "CUDA is out of memory" in told


def test_what_is_not_begun_in_time_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    arguments = ["--small", "--only", "dense", "--minutes", "0", "--json", str(tmp_path / "gpu.json")]
    assert gpu.main(arguments) == 1
    data = json.loads((tmp_path / "gpu.json").read_text())
    assert not data["rows"] and data["failures"][0]["problem"] == "not begun within 0 minutes"


def test_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu.main(["--device", "no such device"])
    assert "no such device" in capsys.readouterr().err


def test_a_model_without_tiles_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    monkeypatch.setattr(gpu, "tuned_model", raises(OutOfDeviceMemory("no memory for tiles")))
    arguments = ["--small", "--only", "dense", "--batch", "1", "--runs", "1", "--tune"]
    assert gpu.main([*arguments, "--json", str(tmp_path / "gpu.json")]) == 1
    data = json.loads((tmp_path / "gpu.json").read_text())
    assert data["rows"][0]["min_ms"] > 0
    assert data["failures"][0]["name"] == "tiles of dense 1280 x 1000, small"
