"""The speed of all files of a folder: what is timed, what is not and why."""

import json
from pathlib import Path

import pytest

from litecl.perf.models import peer_models
from tools.every_model import main


def test_times_what_both_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dense.tflite").write_bytes(peer_models.dense(8, 4))
    (tmp_path / "broken.tflite").write_bytes(b"this is no model")
    assert main([str(tmp_path), "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())["1"]
    assert [row["name"] for row in found["results"]] == ["dense.tflite"]
    assert found["results"][0]["best_ratio"] > 0
    (left_out,) = found["left_out"]
    assert left_out["name"] == "broken.tflite"
    assert left_out["reason"].startswith("litecl: ")
    assert "1 models, median" in capsys.readouterr().out
