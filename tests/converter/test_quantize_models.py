"""Quantized models: scales that operators share, borders to float, data in every form, reports."""

from dataclasses import replace

import numpy as np
import pytest

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.binary import ADD, DIV, SQUARED_DIFFERENCE, AddOptions, DivOptions
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.control import WhileOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType
from support import oracle
from support.build import model, randn
from support.loop_models import below, int32, subgraph, while_node
from support.quantize_models import SHAPE, Net, assert_good, names_of, quantized, run, tree


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("border", ["float32", "same"])
def test_operators_that_share_a_scale(kind: str, border: str) -> None:
    of = tree()
    types = {} if border == "float32" else {"input_type": kind, "output_type": kind}
    after, report = quantized(of, activations=kind, **types)
    (graph,) = after.subgraphs
    joined = next(node for node in graph.nodes if node.op is CONCATENATION)
    tied = {graph.tensors[t].quantization.scale[0] for t in (*joined.inputs, *joined.outputs)}  # type: ignore[union-attr]
    assert len(tied) == 1
    assert 0.01 < tied.pop() * (1 if kind == "int8" else 256) < 0.2, "the constant must not widen the range"
    logistic = next(node for node in graph.nodes if node.op is unary.LOGISTIC)
    prescribed = graph.tensors[logistic.outputs[0]].quantization
    assert prescribed is not None and prescribed.scale[0] == (1 / 256 if kind == "int8" else 1 / 32768)
    assert names_of(after).count("QUANTIZE") == (2 if border == "float32" else 1)
    assert all(layer.reason is None for layer in report.layers)
    assert_good(of, after)


def test_what_has_no_integer_kernel_stays_in_float() -> None:
    g = Net()
    x = g.unary(unary.SIN, g.conv(g.input(SHAPE)))
    y = g.op(RESHAPE, [x, g.const(np.array([30, 8], np.int32))], ReshapeOptions())
    of = model(g.build(g.dense(y, 5), g.unary(unary.SIN, y)))
    after, report = quantized(of)
    assert names_of(after) == [
        *("QUANTIZE", "CONV_2D", "DEQUANTIZE", "SIN", "RESHAPE", "QUANTIZE", "FULLY_CONNECTED", "SIN", "DEQUANTIZE")
    ]
    assert {layer.op: layer.reason for layer in report.layers if layer.reason} == {
        "SIN": "it has no integer kernel",
        "RESHAPE": "only moves what is in float before and after it",
    }
    assert_good(of, after)
    with pytest.raises(ConversionError, match=r"strict.*\n  SIN 'SIN_\d+': it has no integer kernel"):
        quantized(of, strict=True)


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_a_strict_model_that_only_moves_elements(kind: str) -> None:
    g = Net()
    of = model(g.build(g.op(RESHAPE, [g.input(SHAPE), g.const(np.array([30, 4], np.int32))], ReshapeOptions())))
    assert names_of(quantized(of, activations=kind)[0]) == ["RESHAPE"]
    after, _ = quantized(of, activations=kind, strict=True)
    assert names_of(after) == ["QUANTIZE", "RESHAPE", "DEQUANTIZE"]
    assert_good(of, after)


def test_layers_that_are_skipped() -> None:
    g = Net()
    x = g.conv(g.input(SHAPE))
    y = g.conv(x)
    g.tensors[y] = replace(g.tensors[y], name="model/second/Relu;model/second/Conv2D")
    of = model(g.build(g.unary(unary.TANH, y)))
    for name, left in (("second", {"CONV_2D"}), ("model/sec*", {"CONV_2D"}), ("TANH", {"TANH"})):
        after, report = quantized(of, skip=(name,))
        assert {layer.op for layer in report.layers if layer.reason == "it is named in skip"} == left
        assert_good(of, after)
    with pytest.raises(ConversionError, match="no operator and no layer is named 'third'"):
        quantized(of, skip=("third",))


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_integer_borders_of_what_stays_in_float(kind: str) -> None:
    g = Net()
    of = model(g.build(g.unary(unary.SIN, g.input(SHAPE)), g.unary(unary.TANH, g.conv(g.inputs[0]))))
    after, _ = quantized(of, input_type=kind, output_type=kind)
    (graph,) = after.subgraphs
    assert {graph.tensors[t].type for t in (*graph.inputs, *graph.outputs)} == {TensorType[kind.upper()]}
    assert_good(of, after)


def test_a_bias_that_outgrows_its_scale() -> None:
    """Weights of 1e-9 with a bias of 1: in the scale of the sums that bias has more than 32 bits."""
    g = Net()
    of = model(g.build(g.conv(g.input(SHAPE), scale=1e-9, offset=1.0)))
    after, _ = quantized(of)
    assert_good(of, after)


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_operators_that_take_the_place_of_others(kind: str) -> None:
    g = Net()
    x = g.unary(unary.SQUARE, g.conv(g.input(SHAPE)))
    y = g.op(SUM, [g.unary(unary.NEG, x), g.const(np.array([1, 2], np.int32))], ReducerOptions(keep_dims=True))
    z = g.op(SQUARED_DIFFERENCE, [x, g.const(np.float32(0.5))], NoOptions())
    of = model(g.build(g.op(ADD, [z, y], AddOptions())))
    after, report = quantized(of, activations=kind)
    assert all(layer.reason is None for layer in report.layers), str(report)
    assert_good(of, after)


def test_a_loop_stays_in_float() -> None:
    g = Net()
    x = g.conv(g.input(SHAPE), channels=4)
    state = [((), TensorType.INT32), (SHAPE, TensorType.FLOAT32)]
    _, y = while_node(g, [g.const(int32(0)), x], 1, 2)
    twice = subgraph(
        "body",
        state,
        lambda b, v: [b.op(ADD, [v[0], b.const(int32(1))], AddOptions()), b.op(ADD, [v[1], v[1]], AddOptions())],
    )
    of = model(g.build(g.conv(y)), subgraph("cond", state, below(3)), twice)
    after, report = quantized(of)
    assert names_of(after) == ["QUANTIZE", "CONV_2D", "DEQUANTIZE", "WHILE", "QUANTIZE", "CONV_2D", "DEQUANTIZE"]
    assert {spec.type for spec in after.subgraphs[2].tensors} == {TensorType.INT32, TensorType.FLOAT32}
    assert isinstance(after.subgraphs[0].nodes[3].options, WhileOptions)
    assert [layer.op for layer in report.layers if layer.reason] == ["WHILE"]
    assert_good(of, after)


def test_any_batch() -> None:
    g = Net()
    x = g.input((1, 6), signature=(-1, 6))
    of = model(g.build(g.dense(g.unary(unary.RELU, g.dense(x, 8)), 3)))
    after, _ = quantized(of, data=[[randn(np.random.default_rng(i), n, 6)] for i, n in enumerate((1, 4, 2))])
    content, feed = write(after), randn(np.random.default_rng(9), 5, 6)
    interpreter = Interpreter(content)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], feed.shape)
    np.testing.assert_array_equal(run(interpreter, [feed])[0], oracle.run(content, [feed])[0])


def test_a_shape_that_follows_from_the_batch() -> None:
    g = Net()
    x = g.unary(unary.RELU, g.input((4, 8), signature=(-1, 8)))
    y = g.op(RESHAPE, [x, g.const(np.array([2, -1, 16], np.int32))], ReshapeOptions())
    of = model(g.build(g.dense(y, 3)))
    after, report = quantized(of, data=[[randn(np.random.default_rng(i), n, 8)] for i, n in enumerate((12, 4))])
    assert names_of(after) == ["QUANTIZE", "RELU", "RESHAPE", "FULLY_CONNECTED", "DEQUANTIZE"]
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 25 for layer in report.layers)
    with pytest.raises(ConversionError, match=r"cannot be run on sample 1: RESHAPE: 24 elements \(shape \[3, 8\]\)"):
        quantized(of, data=[[np.ones((n, 8), np.float32)] for n in (4, 3)])


@pytest.mark.parametrize("least", [0.001, 5.0])
@pytest.mark.parametrize("known", ["given", "computed", "constant"])
def test_divisors_that_would_be_rounded_to_zero(known: str, least: float) -> None:
    """The division stays in float, and so does what computes its divisor."""
    g, wide = Net(), randn(np.random.default_rng(3), 1, 6) ** 2 * 50 + np.float32(least)
    wide[0, :2] = least, 90
    x, given = g.input((1, 6)), g.input((1, 6))
    divisor = {"given": given, "computed": g.unary(unary.ABS, given), "constant": g.const(wide)}[known]
    of = model(g.build(g.dense(g.op(DIV, [g.dense(x, 6), divisor], DivOptions()), 3), g.dense(given, 2)))
    samples = [[randn(np.random.default_rng(i), 1, 6), wide] for i in range(4)]
    after, report = quantized(of, data=samples)
    reasons = {layer.op: layer.reason for layer in report.layers if layer.reason}
    if least > 1:
        assert not reasons
    else:
        blamed = {"ABS": "its result is a divisor, which would be rounded to zero"} if known == "computed" else {}
        assert reasons == {"DIV": "its divisor would be rounded to zero", **blamed}
        assert "rounded to zero" in str(report)
    got = run(Interpreter(write(after)), samples[0])
    for value, exact, wanted in zip(
        got, oracle.run(write(after), samples[0]), run(Interpreter(of), samples[0]), strict=True
    ):
        np.testing.assert_allclose(value, exact, rtol=1e-5)
        np.testing.assert_allclose(value, wanted, atol=0.05 * np.abs(wanted).max())


def test_signatures() -> None:
    g = Net()
    one = g.dense(g.input((1, 6)), 3)
    h = Net(1)
    two = h.dense(h.input((1, 4)), 2)
    signatures = [Signature("one", {"x": g.inputs[0]}, {"y": one}), Signature("two", {"z": h.inputs[0]}, {"y": two}, 1)]
    of = model(g.build(one), h.build(two), signatures=signatures)
    first, second = randn(g.rng, 1, 6), randn(g.rng, 1, 4)
    after, _ = quantized(of, data=[("one", {"x": first}), ("two", [second])], output_type="int8")
    assert [len(graph.nodes) for graph in after.subgraphs] == [2, 2]
    for key, name, value in (("one", "x", first), ("two", "z", second)):
        got = Interpreter(write(after)).get_signature_runner(key)(**{name: value})["y"]
        assert got.dtype == np.int8 and np.abs(got.astype(int)).max() > 100
    with pytest.raises(ConversionError, match=r"no samples for signatures \['two'\]"):
        quantized(of, data=[[first]])
    with pytest.raises(ConversionError, match=r"expected a signature of \['one', 'two'\], got 'three'"):
        quantized(of, data=[("three", [first])])
