"""``litecl quantize``, and recipes of ``litecl convert``."""

import json
from pathlib import Path
from xml.etree import ElementTree

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


@pytest.mark.parametrize("command", ["quantize", "convert"])
def test_weights_that_stay_as_they_are_are_told(command: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once, twice = (path.parent / name for name in ("once.tflite", "twice.tflite"))
    assert "no weights" not in text(capsys, command, path, "--quantize", "int8", "-o", once)
    assert "note: no weights became int8" in text(capsys, command, once, "--quantize", "int8", "-o", twice)


@pytest.mark.parametrize(("flag", "value"), [("--budget", "12kb"), ("--min-sqnr", "20")])
def test_a_search(flag: str, value: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recipe makes the same file again, and the picture is a picture."""
    out, recipe, picture = (path.parent / name for name in ("out.tflite", "recipe.json", "frontier.svg"))
    arguments = ("quantize", path, flag, value, "--calibrate", path.parent / "samples.npz", "-o", out)
    found = data(capsys, *arguments, "--save-recipe", recipe, "--frontier", picture)
    chosen = found["quantization"]["frontier"]["chosen"]
    assert chosen["size_bytes"] == out.stat().st_size and chosen["sqnr_db"] >= 20
    root = ElementTree.fromstring(picture.read_text())
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == len(found["quantization"]["frontier"]["points"])
    again = path.parent / "again.tflite"
    data(capsys, "quantize", path, "--recipe", recipe, "--calibrate", path.parent / "samples.npz", "-o", again)
    assert again.read_bytes() == out.read_bytes()
    assert "(chosen)" in text(capsys, *arguments)


def test_errors(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, samples = path.parent / "out.tflite", path.parent / "samples.npz"
    for arguments, message in (
        ((), "expected --recipe, --quantize, --budget or --min-sqnr"),
        (
            ("--recipe", "dynamic_wi8_afp32", "--quantize", "int8"),
            "--quantize, --recipe, --budget, --min-sqnr: expected one of them",
        ),
        (("--recipe", "static_wi8_ai8"), "this recipe needs representative data"),
        (("--recipe", "dynamic_wi8_afp32", "--block", "32"), "block: no effect with a recipe"),
        (("--recipe", path), "expected JSON"),
        (("--budget", "9KB"), "--budget, --min-sqnr: expected --calibrate DATA.npz with them"),
        (("--budget", "9 KB", "--min-sqnr", "30"), "expected one of them"),
        (
            ("--recipe", "dynamic_wi8_afp32", "--save-recipe", path.parent / "recipe.json"),
            "--save-recipe: no effect without --budget or",
        ),
        (("--budget", "9XB", "--calibrate", samples), "expected budget as bytes or like '40MB' or '40MiB', got '9XB'"),
        (("--budget", "900", "--calibrate", samples), "budget of 900 bytes: the smallest file has"),
    ):
        assert message in " ".join(failure(capsys, "quantize", path, "-o", out, *arguments).split())
    assert not out.exists()
