"""LiteRT's custom operators: the inputs that they refuse. Cases compare their results with LiteRT's."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from litecl.cases import Case, hadamard, moe, numeric_verify
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError, ShapeError, UnsupportedOp
from litecl.interpreter.file.options import decode_custom_options
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.hadamard import HADAMARD_ROTATION
from litecl.interpreter.options import CustomOptions, unknown_op
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import run_on
from support.build import Graph, model

FLOATS, BYTES, NIBBLES = (next(c for c in moe.CASES if c.name == name) for name in ("floats", "8 bits", "4 bits"))


def _changed(case: Case, position: int | None = None, value: Any = None, **options: Any) -> Case:
    inputs = [value if i == position else x for i, x in enumerate(case.inputs)]
    return replace(case, inputs=inputs, options=replace(case.options, **options))


def _run(case: Case) -> None:
    content = write(case.model())
    interpreter = Interpreter(model_content=content)
    run_on(interpreter, case.feeds)


REFUSED = [
    (_changed(FLOATS, activation="silu"), UnsupportedOp, "expected activation gelu or gelu_tanh, got 'silu'"),
    (_changed(FLOATS, weight_type="fp16"), UnsupportedOp, "expected weight_type fp32, int8, int4, got 'fp16'"),
    (_changed(FLOATS, num_active_experts=5), ShapeError, "no more active experts than experts"),
    (_changed(FLOATS, hidden_dim=0), ShapeError, "expected sizes of at least 1"),
    (_changed(FLOATS, model_dim=7), ShapeError, r"expected tokens of 7 numbers, got shape \[1, 5, 8\]"),
    (_changed(FLOATS, hidden_dim=5), ShapeError, "expected gate_weight of 160 elements, got shape"),
    (_changed(FLOATS, weight_type="int8"), ShapeError, "expected 10 inputs with weights int8, got 7"),
    (_changed(FLOATS, 6, np.ones(3, np.float32)), ShapeError, "expected per_expert_scale of 4 elements"),
    (_changed(FLOATS, 1, np.ones((5, 3), np.float32)), ShapeError, "expected routes of 10 elements"),
    (_changed(BYTES, 4, np.ones(48, np.float32)), ShapeError, "expected gate_scale of a multiple of 24 numbers"),
    (_changed(NIBBLES, 4, np.ones(25, np.float32)), ShapeError, "expected gate_scale of a multiple of 24 numbers"),
    (_changed(hadamard.CASES[0], hadamard_size=3), ShapeError, "expected rows of blocks of a power of two, got 3"),
    (_changed(hadamard.CASES[0], hadamard_size=16), ShapeError, r"got 16 for shape \[3, 8\]"),
]


@pytest.mark.parametrize("case, error, message", REFUSED, ids=[message for _, _, message in REFUSED])
def test_refused_at_preparation(case: Case, error: type[Exception], message: str) -> None:
    specs = [
        TensorSpec(case.types.get(i, TensorType.of(x.dtype)), x.shape, f"input_{i}")
        for i, x in enumerate(case.inputs)
        if x is not None
    ]
    with pytest.raises(error, match=message):
        case.op.infer(case.options, specs)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("num_experts", "four", "expected num_experts of type int, got 'four'"),
        ("num_experts", None, "expected num_experts of type int, got None"),
        ("num_experts", float("inf"), "expected num_experts of type int, got inf"),
        ("num_experts", {"a": 1}, "expected num_experts of type int, got {'a': 1}"),
        ("weight_type", 4, "expected weight_type of type str, got 4"),
    ],
)
def test_options_of_another_type_are_refused(name: str, value: Any, message: str) -> None:
    options = flexbuffers.Dumps({**vars(FLOATS.options), name: value})
    model_ = FLOATS.model()
    (graph,) = model_.subgraphs
    nodes = (replace(graph.nodes[0], options=CustomOptions(bytes(options))),)
    content = write(replace(model_, subgraphs=(replace(graph, nodes=nodes),)))
    with pytest.raises(ModelError, match=re.escape(f"moe: {message}")):
        Interpreter(model_content=content)


@pytest.mark.parametrize("vector", [7, "text", {"a": 1}])
def test_a_list_of_another_type_is_refused(vector: Any) -> None:
    with pytest.raises(ModelError, match=r"aeq.hadamard_rotation: expected random_binary_vector of type tuple"):
        decode_custom_options(HADAMARD_ROTATION, bytes(flexbuffers.Dumps({"random_binary_vector": vector})))


@pytest.mark.parametrize("vector", [[1, [2, 3]], [1, "text"], [1, None], [1, {"a": 1}], [1, float("nan")]])
def test_a_list_with_an_item_of_another_type_is_refused(vector: Any) -> None:
    with pytest.raises(ModelError, match=r"aeq.hadamard_rotation: expected random_binary_vector\[1\] of type int, got"):
        decode_custom_options(HADAMARD_ROTATION, bytes(flexbuffers.Dumps({"random_binary_vector": vector})))


@pytest.mark.parametrize("expert", [4, -5])
def test_moe_refuses_experts_that_there_are_not(expert: int) -> None:
    with pytest.raises(ModelError, match=r"moe: index .* out of range for dimension 4"):
        _run(_changed(FLOATS, 2, np.full((5, 2), expert, np.int32)))


def test_numeric_verify_refuses_what_quantization_made_too_different() -> None:
    case = next(c for c in numeric_verify.CASES if c.options.refuses)
    with pytest.raises(ModelError, match=r"NumericVerify: expected differences of at most 0.03 by quantization, got 1"):
        _run(_changed(case, 1, np.asarray(case.inputs[1]) + 1))


def test_an_operator_that_only_litert_has_is_named_with_what_to_do() -> None:
    name = "odml.scaled_dot_product_attention"
    g = Graph()
    x = g.input((1, 2, 3, 4))
    (y,) = g.node(unknown_op(name, True), [x], [TensorSpec(TensorType.FLOAT32, (1, 2, 3, 4))], CustomOptions(b""))
    interpreter = Interpreter(model_content=write(model(g.build(y))))
    with pytest.raises(UnsupportedOp, match=rf"{name}: no kernel for this custom operator; pass it by Interpreter\("):
        interpreter.allocate_tensors()


def test_operators_of_flex_are_named_once_with_what_to_do() -> None:
    g = Graph()
    x = g.input((2,))
    (y,) = g.node(unknown_op("FlexCumprod", True), [x], [TensorSpec(TensorType.FLOAT32, (2,))], CustomOptions(b""))
    interpreter = Interpreter(model_content=write(model(g.build(y))))
    told = r"^FlexCumprod: the file was made with SELECT_TF_OPS .* operator Cumprod .*litecl convert"
    with pytest.raises(UnsupportedOp, match=told) as error:
        interpreter.allocate_tensors()
    assert str(error.value).count("FlexCumprod") == 1
    assert "custom_ops" not in str(error.value)
