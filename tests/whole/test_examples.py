"""The examples run, and show what they say."""

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
