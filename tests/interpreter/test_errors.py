"""Errors name the operator that they come from, although the guards that raise them don't know it."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.converter import Converter, Quantization
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError, DelegateError, LiteclError, ModelError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, DIV, AddOptions, DivOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import WHILE, WhileOptions
from litecl.interpreter.ops.unary import SIN
from litecl.interpreter.run.executor import Executor
from litecl.interpreter.schema import TensorType
from support.build import Graph, model

INT32 = TensorType.INT32


def test_while_preparing() -> None:
    g = Graph()
    x, y = g.input((2, 3)), g.input((2, 4))
    (z,) = g.node(ADD, [x, y], [TensorSpec(TensorType.FLOAT32, (2, 3))], AddOptions())
    interpreter = Interpreter(model_content=write(model(g.build(z))))
    with pytest.raises(ShapeError) as caught:
        interpreter.allocate_tensors()
    assert str(caught.value) == "ADD: shapes [2, 3], [2, 4] do not broadcast"
    assert caught.value.__notes__ == ["while preparing ADD (subgraph 0, node 0)"]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (ShapeError, str(caught.value))


def test_what_a_kernel_raises_is_a_model_error_that_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> list[object]:
        raise MemoryError

    g = Graph()
    interpreter = Interpreter(model(g.build(g.op(SIN, [g.input((3,))], NoOptions()))))
    interpreter.allocate_tensors()
    (executor,) = (value for value in vars(interpreter).values() if isinstance(value, Executor))
    broken = [tuple(replace(step, run=breaks) for step in steps) for steps in executor._steps]
    monkeypatch.setattr(executor, "_steps", broken)
    with pytest.raises(ModelError, match="not enough memory") as caught:
        interpreter.invoke()
    assert caught.value.__notes__ == ["while running SIN (subgraph 0, node 0)"]


def test_while_running_in_a_loop_the_innermost_operator_is_named() -> None:
    condition, body, main = Graph("condition"), Graph("body"), Graph()
    x, _ = condition.input((), INT32), condition.input((), INT32)
    less = condition.build(condition.op(LESS, [x, condition.const(np.int32(5))], NoOptions()))
    x, y = body.input((), INT32), body.input((), INT32)
    looped = body.build(body.op(DIV, [x, y], DivOptions()), y)
    start = [main.input((), INT32), main.input((), INT32)]
    results = main.node(WHILE, start, [main.tensors[t] for t in start], WhileOptions(1, 2))
    interpreter = Interpreter(model_content=write(model(main.build(*results), less, looped)))
    interpreter.allocate_tensors()
    with pytest.raises(ModelError) as caught:
        interpreter.invoke()
    assert str(caught.value) == "DIV: division by 0"
    assert caught.value.__notes__ == [
        "while running DIV (subgraph 2, node 0)",
        "while running WHILE (subgraph 0, node 0)",
    ]


_CONTENT = "\u00ac" * 300_000


@pytest.mark.parametrize(
    ("given", "most"),
    [
        (lambda: Interpreter(_CONTENT), 5100),
        (lambda: Converter.from_tflite(b"", quantize=_CONTENT.encode()), 400),  # type: ignore[arg-type]
        (lambda: Quantization(activations=_CONTENT), 400),  # type: ignore[arg-type]
        (lambda: setattr(Converter.from_tflite(b""), "optimizations", _CONTENT), 400),
        (lambda: CLDelegate(precision=_CONTENT), 20_100),  # type: ignore[arg-type]
    ],
)
def test_errors_quote_no_whole_files(given: Callable[[], Any], most: int) -> None:
    with pytest.raises(LiteclError) as caught:
        given()
    assert 100 < len(str(caught.value)) < most
    assert caught.value.__cause__ is None or len(str(caught.value.__cause__)) < most


@pytest.mark.parametrize("kind", [ConversionError, DelegateError, ModelError])
def test_long_errors_keep_both_ends(kind: type[LiteclError]) -> None:
    said = str(kind("first" + "." * 100_000 + "last"))
    assert said.startswith("first.")
    assert said.endswith(".last")
    assert " ... 80009 characters ... " in said
    assert str(kind("short")) == "short"
