"""``litecl quantize``, and recipes of ``litecl convert``."""

import json
from pathlib import Path

import numpy as np
import pytest

from litecl.converter.quantization.recipes.names import entry
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from support.build import model
from support.command import data, failure, text
from support.quantize_models import Net


@pytest.fixture
def path(tmp_path: Path) -> Path:
    g = Net()
    of = model(g.build(g.dense(g.dense(g.input((1, 64)), 64), 32)))
    (tmp_path / "float.tflite").write_bytes(write(of))
    np.savez(tmp_path / "samples.npz", main_in0=np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32))
    return tmp_path / "float.tflite"


def _types(path: Path) -> list[str]:
    (graph,) = Interpreter(str(path)).model.subgraphs
    return [graph.tensors[node.inputs[1]].type.name for node in graph.nodes]


@pytest.mark.parametrize("command", ["quantize", "convert"])
def test_by_a_name(command: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = path.parent / "out.tflite"
    data(capsys, command, path, "--recipe", "dynamic_wi4b32_afp32", "-o", out)
    assert _types(out) == ["INT4", "INT4"]


def test_by_a_file_with_a_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, recipe, report = (path.parent / name for name in ("out.tflite", "recipe.json", "report.json"))
    recipe.write_text(json.dumps([entry(4, algorithm="GPTQ"), entry(8, regex="nowhere")]))
    arguments = ("quantize", path, "--recipe", recipe, "--calibrate", path.parent / "samples.npz", "-o", out)
    found = data(capsys, *arguments, "--quantize-report", report)
    assert found["size_bytes"] == out.stat().st_size < found["float_bytes"] / 3
    assert found["quantization"] == json.loads(report.read_text())
    assert [row["form"] for row in found["quantization"]["weights"]] == ["int4 by GPTQ"] * 2
    printed = text(capsys, *arguments)
    assert "note: entry 1 (* 'nowhere': dynamic int8) fits no operator" in " ".join(printed.split())
    assert "int4 by GPTQ" in printed and "SQNR" in printed


def test_errors(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = path.parent / "out.tflite"
    for arguments, message in (
        ((), "expected --recipe or --quantize"),
        (("--recipe", "dynamic_wi8_afp32", "--quantize", "int8"), "--recipe, --quantize: expected one of them"),
        (("--recipe", "static_wi8_ai8"), "this recipe needs representative data"),
        (("--recipe", "dynamic_wi8_afp32", "--block", "32"), "block: no effect with a recipe"),
        (("--recipe", path), "expected JSON"),
    ):
        assert message in " ".join(failure(capsys, "quantize", path, "-o", out, *arguments).split())
    assert not out.exists()
