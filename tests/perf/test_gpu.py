"""Measuring a GPU, on whatever device there is: results are compared, and every figure ends in the files."""

import json
from pathlib import Path

import pytest

from litecl.perf import gpu


def test_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model within rounding of the interpreter, with launches, waits and the share of each kernel."""
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    files = ["--json", str(tmp_path / "gpu.json"), "--page", str(tmp_path / "gpu.md")]
    assert gpu.main(["--only", "1,000", "--batch", "1", "--batch", "16", "--runs", "1", *files]) == 0
    data = json.loads((tmp_path / "gpu.json").read_text())
    (row,) = data["rows"]
    assert (row["name"], row["batch"], row["launches"], row["waits"]) == ("loop of 1,000", 1, 1, 1)
    assert row["difference"] < 1e-5
    assert {"chain", "binary"} <= {kernel["kernel"] for kernel in row["kernels"]}
    assert data["device"]["name"] in (tmp_path / "gpu.md").read_text()


def test_a_wrong_result_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no number, or far from the interpreter's, ends the command with 1."""
    monkeypatch.setattr(gpu, "measured", lambda device: gpu.Peaks(1e12, 1e11))
    for wrong in (float("inf"), 0.01):
        found = gpu.Row("", 1, wrong, 1.0, 1.0, 1, 1, ())
        monkeypatch.setattr(gpu, "row", lambda *given, found=found: found)
        assert gpu.main(["--only", "1,000"]) == 1
