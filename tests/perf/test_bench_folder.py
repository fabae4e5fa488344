"""litecl bench FOLDER: measures the files below it, lists the slowest against a peer first, and reports failures."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from litecl.cli import main, peers
from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.matrix_diag import MATRIX_DIAG
from litecl.perf.isolated import isolated
from litecl.perf.models import layers
from litecl.perf.models.build import Graph, model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "dense.tflite").write_bytes(layers.dense(8, 4))
    (tmp_path / "below" / "wide.tflite").write_bytes(layers.dense(64, 32))
    (tmp_path / "broken.tflite").write_bytes(b"this is no model")
    return tmp_path


def test_measures_what_both_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bench", str(folder), "--against", "litert", "--threads", "1", "--runs", "3"]
    assert main([*asked, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [Path(case["model"]).name for case in found["cases"]] == ["wide.tflite", "dense.tflite"]
    (left_out,) = found["left_out"]
    assert Path(left_out["model"]).name == "broken.tflite"
    assert left_out["reason"].startswith("ModelError: ")
    (peer,) = found["peers"]
    ratios = sorted(case["comparisons"][0]["min_ratio"] for case in found["cases"])
    assert (peer["name"], peer["num_threads"]) == ("litert", 1)
    assert (peer["models"], peer["ours"]) == (2, 1)
    assert peer["median"] == pytest.approx(sum(ratios) / 2)
    assert peer["tenth"] == pytest.approx(0.9 * ratios[0] + 0.1 * ratios[1])
    assert peer["below_1"] == sum(ratio < 1 for ratio in ratios)
    (folder / "broken.tflite").unlink()
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "2 models: median x" in shown


def test_a_model_that_the_cpu_takes_part_of_is_left_out_where_that_is_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--require-device`` leaves out the models that would measure the CPU."""
    graph = Graph()
    y = graph.op(MATRIX_DIAG, [graph.input((4,))], NoOptions())
    (folder / "broken.tflite").write_bytes(write(model(graph.build(y))))
    assert main(["bench", str(folder), "--require-device", "--runs", "1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert len(found["cases"]) == 2
    (left_out,) = found["left_out"]
    assert "the CPU runs 1 of 1 nodes. MATRIX_DIAG" in left_out["reason"]


def test_a_folder_without_models_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(tmp_path)]) == 1
    assert "expected .tflite files in this folder, found none" in capsys.readouterr().err


def test_slowest_come_first() -> None:
    def case(model: str, ratio: float) -> dict[str, Any]:
        compared = {"name": "litert", "num_threads": 2, "median_ratio": 1.0, "median_low": 0.9, "median_high": 1.1}
        compared |= {"min_ratio": ratio, "difference": 0.0, "agrees": True}
        subjects = [{"num_threads": None}]
        device = {"name": "d"}
        return {"model": model, "device": device, "subjects": subjects, "comparisons": [compared], "fastest": compared}

    table, overview = peers.comparisons([case("fast", 3.0), case("slow", 0.5), case("middle", 1.0)])
    (_, rows) = table.renderables  # type: ignore[union-attr]
    assert [str(cell) for cell in rows.columns[0].cells] == ["slow", "middle", "fast"]
    assert str(overview) == "3 models: median x1.00, lowest tenth below x0.60, 1 below 1"


def test_a_process_that_dies_costs_one_call() -> None:
    pid, *rest = isolated([os.getpid, partial(os._exit, 1), os.getpid, os.getpid])
    assert rest[0] is None
    assert len({pid, rest[1], os.getpid()}) == 3
    assert rest[1] == rest[2]
