"""The table of what a runtime computes wrong in many models."""

import json
from pathlib import Path

import numpy as np
import pytest

from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unary import SIN, TANH
from support.build import Graph, model
from tools import bisections


def _hybrid(path: Path) -> None:
    """A model that XNNPACK computes differently: it rounds activations its own way where weights are integers."""
    g, rng = Graph(), np.random.default_rng(7)
    x = g.op(TANH, [g.input((4, 64))], NoOptions())
    weights = g.const(rng.integers(-127, 128, (32, 64)).astype(np.int8), scale=0.01)
    x = g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions())
    path.write_bytes(write(model(g.build(g.op(SIN, [x], NoOptions())))))


def test_what_litert_computes_differently(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert")
    _hybrid(tmp_path / "hybrid.tflite")
    g = Graph()
    (tmp_path / "right.tflite").write_bytes(write(model(g.build(g.op(SIN, [g.input((3,))], NoOptions())))))
    (tmp_path / "broken.tflite").write_bytes(b"TFL3")
    assert bisections.main([str(tmp_path), "--json", str(tmp_path / "found.json")]) == 1
    rows = {row["file"]: row for row in json.loads((tmp_path / "found.json").read_text())}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "broken.tflite": "refused",
        "hybrid.tflite": "fault",
        "right.tflite": "right",
    }
    assert rows["hybrid.tflite"]["wrong"] == "FULLY_CONNECTED (FLOAT32, INT8)"
    assert 1e-4 < rows["hybrid.tflite"]["error"] < 0.02
    assert "3 models" in capsys.readouterr().out
