"""An interpreter in a prompt and in a notebook."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.unary import TANH
from support.build import Graph, model, randn

RNG = np.random.default_rng(3)


def _content() -> bytes:
    g = Graph()
    x = g.input((1, 4), signature=(-1, 4))
    y = g.op(TANH, [g.op(ADD, [x, g.const(randn(RNG, 4))], AddOptions())], NoOptions())
    return write(model(g.build(y)))


def test_repr_tells_source_tensors_and_where_nodes_run(tmp_path: Path) -> None:
    path = tmp_path / "small.tflite"
    path.write_bytes(_content())
    interpreter = Interpreter(path)
    name, result = (interpreter.get_input_details()[0]["name"], interpreter.get_output_details()[0]["name"])
    told = f"<Interpreter of small.tflite: {name} float32[-1,4] -> {result} float32"
    assert repr(interpreter).startswith(told) and repr(interpreter).endswith("; not allocated>")
    interpreter.allocate_tensors()
    assert repr(interpreter).endswith("; 2 nodes>")
    content = path.read_bytes()
    assert repr(Interpreter(model_content=content)).startswith(f"<Interpreter of {len(content):,} bytes: ")
    assert repr(Interpreter(read(content))).startswith("<Interpreter of a Model: ")
    delegated = Interpreter(path, delegates=[CLDelegate(deny_ops=["TANH"], num_threads=1)])
    assert "not allocated" in repr(delegated)
    delegated.allocate_tensors()
    assert repr(delegated).endswith("; 1 of 2 nodes on the device>")
    assert (repr(delegated), str(delegated)) == (f"{delegated}", f"{delegated!r}")
    report = delegated.delegation_report()
    assert repr(report) == str(report) and "TANH" in str(report)


def test_a_runner_shows_its_signature() -> None:
    model_ = replace(read(_content()), signatures=(Signature("go", {"b": 0}, {"y": 3}, 0),))
    assert repr(Interpreter(model_).get_signature_runner()) == "<SignatureRunner of 'go': b -> y>"


def test_a_closed_interpreter_and_a_failed_one_have_a_repr() -> None:
    interpreter = Interpreter(_content())
    interpreter.close()
    assert repr(interpreter) == "<Interpreter: closed>"
    assert "closed" in interpreter._repr_html_()
    assert repr(object.__new__(Interpreter)) == "<Interpreter: closed>"


def test_a_notebook_shows_tensors_and_the_delegates_report(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = Interpreter(_content(), delegates=[CLDelegate(deny_ops=["TANH"], num_threads=1)])
    assert "denied by deny_ops" not in interpreter._repr_html_()
    interpreter.allocate_tensors()
    shown = interpreter._repr_html_()
    assert shown.count("<td>float32</td><td>[-1,4]</td>") >= 1
    assert "denied by deny_ops" in shown and "<script" not in shown
    details = [{"name": "<b>x</b>", "dtype": np.float32, "shape": np.array([2]), "shape_signature": np.array([2])}]
    monkeypatch.setattr(interpreter, "get_input_details", lambda: details)
    assert "<b>x" not in interpreter._repr_html_() and "&lt;b&gt;x" in interpreter._repr_html_()


def test_many_inputs_and_long_names_stay_short() -> None:
    g = Graph()
    inputs = [g.input((2,)) for _ in range(9)]
    total = inputs[0]
    for other in inputs[1:]:
        total = g.op(ADD, [total, other], AddOptions())
    told = repr(Interpreter(write(model(g.build(total)))))
    assert ", ... -> " in told and told.count("float32[2]") == 5
