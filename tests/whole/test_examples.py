"""The examples run, and print what they announce."""

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_embedding_lookup(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(_EXAMPLES / "embedding_lookup.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "1 EMBEDDING_LOOKUP" in printed
    assert "fused embedding_lookup" in printed
    assert "agree with TensorFlow" in printed


def test_lstm_cell(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(_EXAMPLES / "lstm_cell.py"), run_name="__main__")
    met, unmet, own = capsys.readouterr().out.strip().split("\n\n")
    assert "1 LSTM" in met
    assert "fused lingvo.LSTMCellSimple" in met
    assert "not fused lingvo.LSTMCellSimple" in unmet
    assert "known shape" in unmet
    assert "1 HARD_SWISH" in own


def test_custom_op(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(_EXAMPLES / "custom_op.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "2 of 2 nodes in 1 partition" in printed
    assert "agrees with TensorFlow, in Python and on the device" in printed


def test_language_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A smaller one, trained for five steps: it writes the files, and says how well each form predicts a text."""
    main = runpy.run_path(str(_EXAMPLES / "language_model.py"), run_name="language_model")["main"]
    smaller = {"WIDTH": 32, "DEPTH": 1, "LENGTH": 40, "FORMS": {"float32": None, "int4": "int4"}}
    main.__globals__.update(smaller)
    main(["--steps", "5", "--folder", str(tmp_path), "--prompt", "def"])
    printed = capsys.readouterr().out
    found = {
        form: float(each) for form, each in re.findall(r"--- (\w+): \d+ kB, ([\d.]+) bits a character\ndef", printed)
    }
    assert found.keys() == smaller["FORMS"].keys()
    assert 4 < found["float32"] < 8  # of 7 bits, without training
    assert abs(found["int4"] - found["float32"]) < 0.5
    assert len([*tmp_path.glob("language_model_*.tflite")]) == 2
