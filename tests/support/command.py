"""The command ``litecl`` in this process: a model to run, and the output."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli import main
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.graph import Signature
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from support.build import Graph, model, randn

RNG = np.random.default_rng(9)


def small_model(folder: Path) -> Path:
    """Write a file of softmax(x * w + b), with an open batch dimension and a signature."""
    g = Graph()
    x = g.input((1, 4), signature=(-1, 4))
    scaled = g.op(MUL, [x, g.const(randn(RNG, 4))], MulOptions())
    y = g.op(SOFTMAX, [g.op(ADD, [scaled, g.const(randn(RNG, 4))], AddOptions())], SoftmaxOptions(1.0))
    file = folder / "small.tflite"
    write_file(model(g.build(y), signatures=[Signature("serving_default", {"x": x}, {"y": y})]), file)
    return file


def data(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """Return the ``--json`` output of a command, which must succeed."""
    assert main([*map(str, arguments), "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def text(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the output of a command, which must succeed."""
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def failure(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the error message of a command, which must fail without a traceback."""
    assert main([*map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err
