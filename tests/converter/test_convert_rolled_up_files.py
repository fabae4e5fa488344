"""The command on files of PyTorch and on ``.tflite`` files with unrolled layers."""

import sys
from pathlib import Path

import pytest

from litecl.converter import Converter
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write_file
from support.command import data, failure
from support.unrolled import Sizes, unrolled


def test_convert_without_litert_torch_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.pt2").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "litert_torch", None)
    said = failure(capsys, "convert", tmp_path / "model.pt2", "-o", tmp_path / "out.tflite")
    assert "pip install 'litecl[torch]'" in said


def test_convert_rolls_up_what_is_unrolled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "unrolled.tflite", tmp_path / "out.tflite"
    write_file(unrolled("LSTM"), path)
    found = data(capsys, "convert", path, "-o", out)["conversion"]
    assert found["operators"]["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    assert [fusion["name"] for fusion in found["fusions"]] == ["unrolled LSTM"]
    found = data(capsys, "convert", path, "-o", out, "--keep-unrolled")["conversion"]
    assert found["operators"]["LOGISTIC"] == 11
    quantized = data(capsys, "quantize", path, "-o", out, "--quantize", "float16")
    assert quantized["quantization"] is None
    assert any(node.op.name == "LOGISTIC" for node in read(out).subgraphs[0].nodes)


@pytest.mark.parametrize(("sizes", "rolls"), [(Sizes(1, 50, 4, 32), True), (Sizes(1, 50, 4, 16), False)])
def test_short_and_narrow_loops_would_be_slower(sizes: Sizes, rolls: bool) -> None:
    converter = Converter.from_tflite(unrolled("GRU", sizes))
    operators = [node.op.name for node in converter.convert_to_model().subgraphs[0].nodes]
    assert ("WHILE" in operators) == rolls == bool(converter.report.fusions)
