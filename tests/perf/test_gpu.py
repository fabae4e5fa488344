"""Measuring a GPU, on whatever device there is: results are compared, and every figure ends in the files."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.backend.absent import AbsentDevice
from litecl.delegate.devices import choose
from litecl.delegate.tuning import load
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.perf import gpu
from litecl.perf.measure import gpu_peers, tiles
from litecl.perf.measure.onnx_peer import OnnxModel
from support import devices


def test_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model within rounding of the interpreter, with launches, waits and the share of each kernel."""
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    files = ["--json", str(tmp_path / "gpu.json"), "--page", str(tmp_path / "gpu.md")]
    assert gpu.main(["--small", "--only", "1,000", "--batch", "1", "--batch", "16", "--runs", "1", *files]) == 0
    data = json.loads((tmp_path / "gpu.json").read_text())
    (row,) = data["rows"]
    assert (row["name"], row["batch"], row["launches"], row["waits"]) == ("loop of 1,000, small", 1, 1, 1)
    assert row["difference"] < 1e-5
    assert {"chain", "binary"} <= {kernel["kernel"] for kernel in row["kernels"]}
    assert data["device"]["name"] in (tmp_path / "gpu.md").read_text()


def test_tiles_are_measured_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where runs find them."""
    devices.as_on_a_gpu(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    monkeypatch.setattr(tiles, "_ROUNDS", 1)
    arguments = ["--small", "--only", "dense", "--batch", "16", "--runs", "1", "--tune"]
    assert gpu.main([*arguments, "--device", devices.tested()[0].name]) == 0
    assert load(tmp_path / "litecl", choose(devices.tested()[0]).identity).tiles.keys() == {
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
        return gpu._outputs(self._interpreter)


@pytest.mark.parametrize("subject", gpu.SUBJECTS, ids=lambda subject: subject.name)
def test_every_model_is_claimed_whole(subject: gpu.Subject) -> None:
    """So that a GPU runs all of it; small ones of the same kinds are planned here, and nothing runs."""
    device = AbsentDevice("sm_90")
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
    assert gpu_peers.difference(peer.run(), gpu._outputs(gpu._prepared(content, []))) < 1e-5


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
