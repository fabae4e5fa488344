"""Recurrent operators against the inputs and outputs published in TFLite's kernel tests."""

import json
import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from litecl.interpreter import Interpreter
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import BUILTINS
from litecl.interpreter.schema import ActivationFunctionType, LSTMKernelType, TensorType
from support.shared import GOLDEN, needs_shared

_RECURRENT = re.compile(r"(lstm|uni_lstm|bidi_lstm|rnn|uni_rnn|bidi_rnn|svdf)_")
_ENUMS = {"fused_activation_function": ActivationFunctionType, "kernel_type": LSTMKernelType}


def _goldens() -> list[tuple[str, str, float]]:
    """Names, variants (of float weights, of integer ones, or of integers alone) and tolerances."""
    found = []
    for path in sorted(GOLDEN.glob("*.json")):
        if _RECURRENT.match(path.name):
            variants = json.loads(path.read_text())["variants"]
            found += [(path.stem, v["name"], v["tolerance"]) for v in variants]
    return found


GOLDENS = _goldens()
FLOAT = [(name, tolerance) for name, variant, tolerance in GOLDENS if variant == "float"]
pytestmark = needs_shared


def test_goldens_are_there() -> None:
    assert len(FLOAT) >= 30
    assert len(GOLDENS) >= 120
    assert sum(variant == "int8" for _, variant, _ in GOLDENS) == 6


@pytest.mark.parametrize(("name", "tolerance"), FLOAT)
def test_graph(name: str, tolerance: float) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    _check(Interpreter(_model(golden)), golden, tolerance)


@pytest.mark.parametrize(("name", "variant", "tolerance"), GOLDENS)
def test_file(name: str, variant: str, tolerance: float) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    _check(Interpreter(GOLDEN / "models" / f"{name}__{variant}.tflite"), golden, tolerance)


def _check(interpreter: Interpreter, golden: dict[str, Any], tolerance: float) -> None:
    """Runs every step, with the states of the step before, and then the first one again after a reset."""
    interpreter.allocate_tensors()
    for step in golden["steps"]:
        _step(interpreter, golden, step, tolerance)
    interpreter.reset_all_variables()
    _step(interpreter, golden, golden["steps"][0], tolerance)


def _step(interpreter: Interpreter, golden: dict[str, Any], step: dict[str, Any], tolerance: float) -> None:
    names = [operand["name"] for operand in golden["op_inputs"] if operand and operand["kind"] == "input"]
    for name, detail in zip(names, interpreter.get_input_details(), strict=True):
        interpreter.set_tensor(detail["index"], np.array(step["feed"][name], detail["dtype"]).reshape(detail["shape"]))
    interpreter.invoke()
    outputs = {
        output["name"]: interpreter.get_tensor(detail["index"])
        for output, detail in zip(golden["op_outputs"], interpreter.get_output_details(), strict=True)
    }
    for name, expected in step["expect"].items():
        actual = _sum(outputs) if name == "_sum" else outputs[name].ravel()
        np.testing.assert_allclose(actual, np.array(expected, actual.dtype).ravel(), rtol=0, atol=tolerance)


def _sum(outputs: dict[str, Array]) -> Array:
    """What some tests compare: the two directions added up."""
    return np.sum(list(outputs.values()), axis=0, dtype=np.float32).ravel()


def _model(golden: dict[str, Any]) -> Model:
    op = BUILTINS[golden["op"]]
    assert isinstance(op, Op)
    operands = [operand for operand in golden["op_inputs"] if operand]
    tensors = [_tensor(operand) for operand in operands]
    feeds = tuple(i for i, operand in enumerate(operands) if operand["kind"] == "input")
    position = {operand["name"]: i for i, operand in enumerate(operands)}
    inputs = tuple(ABSENT if operand is None else position[operand["name"]] for operand in golden["op_inputs"])
    outputs = tuple(range(len(tensors), len(tensors) + len(golden["op_outputs"])))
    tensors += [TensorSpec(TensorType[o["dtype"]], tuple(o["shape"]), o["name"]) for o in golden["op_outputs"]]
    node = Node(op, inputs, outputs, _options(op, golden["attributes"]))
    return Model((Subgraph(tuple(tensors), feeds, outputs, (node,)),))


def _tensor(operand: dict[str, Any]) -> TensorSpec:
    type_, shape = TensorType[operand["dtype"]], tuple(operand["shape"])
    data = np.array(operand["data"], type_.dtype).reshape(shape) if operand["kind"] == "const" else None
    return TensorSpec(type_, shape, operand["name"], data, is_variable=operand["kind"] == "state")


def _options(op: Op, attributes: dict[str, Any]) -> Any:
    values = {re.sub(r"(?=[A-Z])", "_", key).lower(): value for key, value in attributes.items()}
    assert values.keys() <= {field.name for field in fields(op.options)}
    return op.options(**{key: _ENUMS[key][value] if key in _ENUMS else value for key, value in values.items()})
