"""Loops, branches and variables against the graphs and results published in TFLite's control-flow tests."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import BUILTINS
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support.shared import GOLDEN, needs_shared

NAMES = [path.stem for path in sorted(GOLDEN.glob("cf_*.json"))]
BACKENDS: dict[str, Callable[[Any], Interpreter]] = {
    "interpreter": Interpreter,
    "device": lambda source: Interpreter(source, delegates=[CLDelegate()]),
}
on_every_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
each_golden = pytest.mark.parametrize("name", NAMES)
pytestmark = needs_shared


def test_goldens_are_there() -> None:
    assert len(NAMES) >= 30


@on_every_backend
@each_golden
def test_graph(name: str, backend: Callable[[Any], Interpreter]) -> None:
    golden = _golden(name)
    _check(backend(_model(golden["graph"])), golden["steps"])


@on_every_backend
@each_golden
def test_file(name: str, backend: Callable[[Any], Interpreter]) -> None:
    _check(backend(GOLDEN / "models" / f"{name}__graph.tflite"), _golden(name)["steps"])


def _golden(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return content


def _check(interpreter: Interpreter, steps: list[dict[str, Any]]) -> None:
    for step in steps:
        feeds = [_array(value) for value in step["feed"]]
        for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.resize_tensor_input(detail["index"], feed.shape)
        interpreter.allocate_tensors()
        for _ in range(step.get("repeat", 1)):
            for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
                interpreter.set_tensor(detail["index"], feed)
            interpreter.invoke()
            outputs = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
            for output, expected in zip(outputs, step["expect"], strict=True):
                if expected is not None:  # what the published test leaves open
                    np.testing.assert_array_equal(output, _array(expected), strict=True)


def _array(value: dict[str, Any]) -> Array:
    data = [text.encode() for text in value["data"]] if value["dtype"] == "STRING" else value["data"]
    return np.array(data, TensorType[value["dtype"]].dtype).reshape(value["shape"])


def _model(graph: dict[str, Any]) -> Model:
    return Model(tuple(_subgraph(subgraph) for subgraph in graph["subgraphs"]))


def _subgraph(graph: dict[str, Any]) -> Subgraph:
    position = {name: i for i, name in enumerate(graph["tensors"])}
    tensors = tuple(
        TensorSpec(TensorType[t["dtype"]], tuple(t["shape"]), name, _array(t) if "data" in t else None)
        for name, t in graph["tensors"].items()
    )
    nodes = tuple(
        Node(
            op := BUILTINS[node["op"]],
            tuple(position[name] for name in node["in"]),
            tuple(position[name] for name in node["out"]),
            _options(op, node.get("attrs", {})),
        )
        for node in graph["ops"]
    )
    inputs, outputs = (tuple(position[name] for name in graph[side]) for side in ("inputs", "outputs"))
    return Subgraph(tensors, inputs, outputs, nodes, graph["name"])


def _options(op: Op | ControlOp, attributes: dict[str, Any]) -> Any:
    values = {re.sub(r"(?=[A-Z])", "_", key).lower(): value for key, value in attributes.items()}
    if "fused_activation_function" in values:
        values["fused_activation_function"] = ActivationFunctionType[values["fused_activation_function"]]
    return op.options(**values)
