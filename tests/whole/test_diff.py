"""``litecl diff``: what differs between two models."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litecl.cli.parser import main
from litecl.diff import diff_models
from litecl.diff.values import error
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import ABSENT, Model, Quantization, Subgraph
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE, real
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import EXP, SIN, TANH
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support.build import Graph, model, randn
from support.shared import MODELS, needs_shared

RELU = ActivationFunctionType.RELU


def _graph(
    beta: float = 1.0, scale: float = 1.0, activation: ActivationFunctionType = RELU, *, more: bool = False
) -> Model:
    """Two branches of an input that are added, and a SOFTMAX behind. more: an operator between."""
    rng, g = np.random.default_rng(17), Graph()
    x = g.input((2, 8))
    weights = g.const(randn(rng, 5, 8) * np.float32(scale))
    left = g.op(TANH, [g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions(activation))], NoOptions())
    right = g.op(
        FULLY_CONNECTED, [g.op(SIN, [x], NoOptions()), g.const(randn(rng, 5, 8)), None], FullyConnectedOptions()
    )
    both = g.op(ADD, [left, right], AddOptions())
    both = g.op(EXP, [both], NoOptions()) if more else both
    return model(g.build(g.op(SOFTMAX, [both], SoftmaxOptions(beta))))


def _renumbered(made: Model) -> Model:
    """The same graph with its tensors in reverse, and the nodes in another order that is valid."""
    (graph,) = made.subgraphs
    place = {t: len(graph.tensors) - 1 - t for t in range(len(graph.tensors))} | {ABSENT: ABSENT}
    moved = [
        replace(node, inputs=tuple(place[t] for t in node.inputs), outputs=tuple(place[t] for t in node.outputs))
        for node in graph.nodes
    ]
    order = [2, 3, 0, 1, 4, 5]  # the other branch first
    inputs, outputs = (tuple(place[t] for t in tensors) for tensors in (graph.inputs, graph.outputs))
    return model(Subgraph(graph.tensors[::-1], inputs, outputs, tuple(moved[i] for i in order), "main"))


def test_the_same_model_whatever_its_numbers() -> None:
    for other in (_graph(), _renumbered(_graph())):
        found = diff_models(write(_graph()), write(other))
        assert found.same_structure
        assert (len(found.layers), found.outputs) == (6, (0.0,))
        assert {layer.relative for layer in found.layers} == {0.0}


def test_options_and_constants() -> None:
    found = diff_models(write(_graph()), write(_graph(beta=2.0, scale=1.5, activation=ActivationFunctionType.NONE)))
    told = {(row.op, text) for row in found.changed for text in row.what}
    assert told == {
        ("SOFTMAX", "beta: 1.0 -> 2.0"),
        ("FULLY_CONNECTED", "fused_activation_function: RELU -> NONE"),
        ("FULLY_CONNECTED", "operand 1: 40 of 40 elements"),
    }
    wrong = {layer.op: layer.relative for layer in found.layers if layer.relative}
    assert {*wrong} == {"FULLY_CONNECTED", "TANH", "ADD", "SOFTMAX"}
    assert found.outputs[0] > 0.01


def test_nodes_that_one_model_has() -> None:
    found = diff_models(write(_graph()), write(_graph(more=True)))
    assert found.only_a == {}
    assert [name.partition(" ")[0] for name in found.only_b.values()] == ["EXP"]
    assert not found.same_structure
    back = diff_models(write(_graph(more=True)), write(_graph()))
    assert [name.partition(" ")[0] for name in back.only_a.values()] == ["EXP"]


def test_quantized_elements_are_the_numbers_that_they_stand_for() -> None:
    by = Quantization(np.array([0.5, 2.0], np.float32), np.array([1, 0], np.int64), quantized_dimension=1)
    numbers = real(np.array([[1, 3], [-3, -1]], np.int8), by)
    np.testing.assert_array_equal(numbers, [[0.0, 6.0], [-2.0, -2.0]])
    assert error(np.array([3.0, 4.0]), np.array([3.0, 3.0])) == pytest.approx(np.sqrt(0.5) / np.sqrt(12.5))
    assert error(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])) == 0.0
    assert error(np.array([1.0]), np.array([np.nan])) == np.inf
    assert error(np.zeros(2), np.zeros(3)) == np.inf


@needs_shared
def test_a_float_model_against_its_integers() -> None:
    folder = MODELS / "mlcommons-tiny"
    found = diff_models(folder / "ad01_fp32.tflite", folder / "ad01_int8.tflite")
    assert (found.only_a, found.only_b, len(found.layers)) == ({}, {}, 10)
    assert "input input_1: FLOAT32 -> INT8" in found.ends
    assert 0.001 < found.outputs[0] < 0.2


@needs_shared
def test_random_inputs_are_numbers_that_both_models_hold() -> None:
    """The integers of vww hold 0 to 1 alone."""
    folder = MODELS / "mlcommons-tiny"
    compared = diff_models(folder / "vww_96_float.tflite", folder / "vww_96_int8.tflite")
    assert compared.layers[0].relative < 0.1


def test_models_that_cannot_be_compared() -> None:
    g = Graph()
    narrow = write(model(g.build(g.op(TANH, [g.input((2, 7))], NoOptions()))))
    with pytest.raises(ShapeError, match=r"expected \[2, 8\] as in the other model, got \[2, 7\]"):
        diff_models(write(_graph()), narrow)
    with pytest.raises(ModelError, match="there is no input 'z'"):
        diff_models(write(_graph()), write(_graph()), {"z": np.zeros(1)})
    with pytest.raises(ModelError):
        diff_models(b"nothing", write(_graph()))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / name for name in ("a.tflite", "b.tflite", "c.tflite")]
    for path, made in zip(paths, (_graph(), _renumbered(_graph()), _graph(beta=0.5)), strict=True):
        path.write_bytes(write(made))
    a, b, c = map(str, paths)
    assert main(["diff", a, b]) == 0
    assert "the same structure" in capsys.readouterr().out
    assert main(["diff", a, c, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [row["what"] for row in found["changed"]] == [["beta: 1.0 -> 0.5"]]
    assert main(["diff", a, c]) == 1
    assert "beta: 1.0 -> 0.5" in capsys.readouterr().out


def _scores(*names: str, suffix: str = "") -> Model:
    """A TANH, an EXP and a SIN of an input, as outputs of these names in this order."""
    g = Graph()
    x = g.input((2, 8))
    ops = {"Identity": TANH, "Identity_1": EXP, "Identity_2": SIN}
    outputs = [g.op(ops[name], [x], NoOptions()) for name in names]
    for tensor, name in zip(outputs, names, strict=True):
        g.tensors[tensor] = replace(g.tensors[tensor], name=name + suffix)
    return model(g.build(*outputs))


def test_outputs_of_one_name_are_compared_whatever_type_it_ends_in() -> None:
    found = diff_models(_scores("Identity", "Identity_1"), _scores("Identity_1", "Identity", suffix="_int8"))
    assert found.outputs == (0.0, 0.0)
    assert found.ends == (
        "output Identity -> Identity_int8: position 0 -> 1",
        "output Identity_1 -> Identity_1_int8: position 1 -> 0",
    )


def test_an_output_of_one_model_is_compared_with_none() -> None:
    whole, part = _scores("Identity", "Identity_1", "Identity_2"), _scores("Identity", "Identity_2")
    found, back = diff_models(whole, part), diff_models(part, whole)
    assert found.outputs == back.outputs == (0.0, 0.0)
    assert "output Identity_1: only in A" in found.ends and "output Identity_1: only in B" in back.ends
    assert not found.is_within(0.0)


def test_random_inputs_are_numbers_that_a_quantize_holds() -> None:
    """The scale holds 0 to 1 alone, which standard normal numbers leave."""

    def graph(*, quantized: bool) -> Model:
        g = Graph()
        held = x = g.input((4, 64))
        if quantized:
            by = Quantization(np.full(1, 1 / 255, np.float32), np.full(1, -128, np.int64))
            spec = replace(g.tensors[x], type=TensorType.INT8, quantization=by)
            (stored,) = g.node(QUANTIZE, [x], [spec], QUANTIZE.options())
            g.tensors[stored] = spec
            held = g.op(DEQUANTIZE, [stored], DEQUANTIZE.options())
        return model(g.build(g.op(TANH, [held], NoOptions())))

    assert 0 <= diff_models(graph(quantized=False), graph(quantized=True)).outputs[0] < 0.01
