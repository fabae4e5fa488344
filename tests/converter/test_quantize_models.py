"""Quantized models: scales that operators share, borders to float, data in every form, reports."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.converter import Converter, Quantization
from litecl.converter.quantization.observers import Range, observer
from litecl.converter.quantization.quantize import quantize
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Signature
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.binary import ADD, MAXIMUM, SQUARED_DIFFERENCE, AddOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.control import WhileOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.pool_2d import MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.quantize import quantize as stored
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import TensorType
from support import oracle
from support.build import Graph, model, randn
from support.loop_models import below, int32, subgraph, while_node

SHAPE = (1, 6, 5, 4)


class Net(Graph):
    """A graph with layers of random weights."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def conv(self, x: int, channels: int = 8, scale: float = 1.0, offset: float = 0.0) -> int:
        shape = self.tensors[x].static_shape
        weights = randn(self.rng, channels, 3, 3, shape[3], scale=scale / np.sqrt(9 * shape[3]))
        bias = randn(self.rng, channels, scale=0.1) + np.float32(offset)
        options = Conv2DOptions(stride_w=1, stride_h=1)
        return self.op(CONV_2D, [x, self.const(weights), self.const(bias)], options)

    def dense(self, x: int, outputs: int, scale: float = 1.0) -> int:
        depth = self.tensors[x].static_shape[-1]
        weights = randn(self.rng, outputs, depth, scale=scale / np.sqrt(depth))
        return self.op(FULLY_CONNECTED, [x, self.const(weights), None], FullyConnectedOptions())

    def unary(self, op: Any, x: int) -> int:
        return self.op(op, [x], op.options())


def _samples(model: Model, count: int = 8, seed: int = 1) -> list[list[Array]]:
    rng = np.random.default_rng(seed)
    specs = [model.subgraphs[0].tensors[t] for t in model.subgraphs[0].inputs]
    return [[randn(rng, *spec.static_shape) for spec in specs] for _ in range(count)]


def _quantized(of: Model, **options: Any) -> tuple[Model, Any]:
    how = Quantization(**{"activations": "int8", "data": _samples(of), **options})
    return quantize(of, how)


def _names(model: Model) -> list[str]:
    return [node.op.name for node in model.subgraphs[0].nodes]


def _run(runtime: Any, feeds: Sequence[Array]) -> list[Array]:
    runtime.allocate_tensors()
    for detail, feed in zip(runtime.get_input_details(), feeds, strict=True):
        runtime.set_tensor(detail["index"], feed)
    runtime.invoke()
    return [runtime.get_tensor(detail["index"]) for detail in runtime.get_output_details()]


def _assert_good(before: Model, after: Model, least_db: float = 25.0) -> None:
    """The quantized model computes the same integers here, in LiteRT and on a device, near those in float."""
    content, (graph,) = write(after), after.subgraphs[:1]
    specs = [graph.tensors[t] for t in graph.inputs]
    for sample in _samples(before, 3, seed=2):
        feeds = [
            x if s.quantization is None else stored(x, s.quantization, s.type)
            for x, s in zip(sample, specs, strict=True)
        ]
        expected = oracle.run(content, feeds)
        for delegates in ([], [CLDelegate()]):
            got = _run(Interpreter(content, delegates=delegates), feeds)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max() if a.dtype.kind == "f" else 0)
        for t, value, wanted in zip(graph.outputs, expected, _run(Interpreter(before), sample), strict=True):
            known = graph.tensors[t].quantization
            number = value if known is None else known.scale[0] * (value.astype(np.float64) - known.zero_point[0])
            noise = np.square(wanted - number).sum()
            assert 10 * np.log10(np.square(wanted).sum() / noise) > least_db


def _tree() -> Model:
    """A concatenation of what has a scale of its own, what has a prescribed one, and what takes one over."""
    g = Net()
    x = g.conv(g.input(SHAPE))
    a = g.unary(unary.LOGISTIC, g.conv(x))
    b = g.op(MAX_POOL_2D, [g.conv(x, scale=3)], Pool2DOptions(stride_w=1, stride_h=1, filter_width=2, filter_height=2))
    joined = g.op(CONCATENATION, [a, b], ConcatenationOptions(axis=3))
    return model(g.build(g.op(MAXIMUM, [joined, g.const(np.float32(-1e9))], NoOptions()), a))


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("border", ["float32", "same"])
def test_operators_that_share_a_scale(kind: str, border: str) -> None:
    of = _tree()
    types = {} if border == "float32" else {"input_type": kind, "output_type": kind}
    after, report = _quantized(of, activations=kind, **types)
    (graph,) = after.subgraphs
    joined = next(node for node in graph.nodes if node.op is CONCATENATION)
    tied = {graph.tensors[t].quantization.scale[0] for t in (*joined.inputs, *joined.outputs)}  # type: ignore[union-attr]
    assert len(tied) == 1
    assert 0.01 < tied.pop() * (1 if kind == "int8" else 256) < 0.2, "the constant must not widen the range"
    logistic = next(node for node in graph.nodes if node.op is unary.LOGISTIC)
    prescribed = graph.tensors[logistic.outputs[0]].quantization
    assert prescribed is not None and prescribed.scale[0] == (1 / 256 if kind == "int8" else 1 / 32768)
    assert _names(after).count("QUANTIZE") == (2 if border == "float32" else 1)
    assert all(layer.reason is None for layer in report.layers)
    _assert_good(of, after)


def test_what_has_no_integer_kernel_stays_in_float() -> None:
    g = Net()
    x = g.unary(unary.SIN, g.conv(g.input(SHAPE)))
    y = g.op(RESHAPE, [x, g.const(np.array([30, 8], np.int32))], ReshapeOptions())
    of = model(g.build(g.dense(y, 5), g.unary(unary.SIN, y)))
    after, report = _quantized(of)
    assert _names(after) == [
        *("QUANTIZE", "CONV_2D", "DEQUANTIZE", "SIN", "RESHAPE", "QUANTIZE", "FULLY_CONNECTED", "SIN", "DEQUANTIZE")
    ]
    assert {layer.op: layer.reason for layer in report.layers if layer.reason} == {
        "SIN": "it has no integer kernel",
        "RESHAPE": "only moves what is in float before and after it",
    }
    _assert_good(of, after)
    with pytest.raises(ConversionError, match=r"strict.*\n  SIN 'SIN_\d+': it has no integer kernel"):
        _quantized(of, strict=True)


def test_layers_that_are_skipped() -> None:
    g = Net()
    x = g.conv(g.input(SHAPE))
    y = g.conv(x)
    g.tensors[y] = replace(g.tensors[y], name="model/second/Relu;model/second/Conv2D")
    of = model(g.build(g.unary(unary.TANH, y)))
    for name, left in (("second", {"CONV_2D"}), ("model/sec*", {"CONV_2D"}), ("TANH", {"TANH"})):
        after, report = _quantized(of, skip=(name,))
        assert {layer.op for layer in report.layers if layer.reason == "it is named in skip"} == left
        _assert_good(of, after)
    with pytest.raises(ConversionError, match="no operator and no layer is named 'third'"):
        _quantized(of, skip=("third",))


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_integer_borders_of_what_stays_in_float(kind: str) -> None:
    g = Net()
    of = model(g.build(g.unary(unary.SIN, g.input(SHAPE)), g.unary(unary.TANH, g.conv(g.inputs[0]))))
    after, _ = _quantized(of, input_type=kind, output_type=kind)
    (graph,) = after.subgraphs
    assert {graph.tensors[t].type for t in (*graph.inputs, *graph.outputs)} == {TensorType[kind.upper()]}
    _assert_good(of, after)


def test_a_bias_that_outgrows_its_scale() -> None:
    """Weights of 1e-9 with a bias of 1: in the scale of the sums that bias has more than 32 bits."""
    g = Net()
    of = model(g.build(g.conv(g.input(SHAPE), scale=1e-9, offset=1.0)))
    after, _ = _quantized(of)
    _assert_good(of, after)


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_operators_that_take_the_place_of_others(kind: str) -> None:
    g = Net()
    x = g.unary(unary.SQUARE, g.conv(g.input(SHAPE)))
    y = g.op(SUM, [g.unary(unary.NEG, x), g.const(np.array([1, 2], np.int32))], ReducerOptions(keep_dims=True))
    z = g.op(SQUARED_DIFFERENCE, [x, g.const(np.float32(0.5))], NoOptions())
    of = model(g.build(g.op(ADD, [z, y], AddOptions())))
    after, report = _quantized(of, activations=kind)
    assert all(layer.reason is None for layer in report.layers), str(report)
    _assert_good(of, after)


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
    after, report = _quantized(of)
    assert _names(after) == ["QUANTIZE", "CONV_2D", "DEQUANTIZE", "WHILE", "QUANTIZE", "CONV_2D", "DEQUANTIZE"]
    assert {spec.type for spec in after.subgraphs[2].tensors} == {TensorType.INT32, TensorType.FLOAT32}
    assert isinstance(after.subgraphs[0].nodes[3].options, WhileOptions)
    assert [layer.op for layer in report.layers if layer.reason] == ["WHILE"]
    _assert_good(of, after)


def test_any_batch() -> None:
    g = Net()
    x = g.input((1, 6), signature=(-1, 6))
    of = model(g.build(g.dense(g.unary(unary.RELU, g.dense(x, 8)), 3)))
    after, _ = _quantized(of, data=[[randn(np.random.default_rng(i), n, 6)] for i, n in enumerate((1, 4, 2))])
    content, feed = write(after), randn(np.random.default_rng(9), 5, 6)
    interpreter = Interpreter(content)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], feed.shape)
    np.testing.assert_array_equal(_run(interpreter, [feed])[0], oracle.run(content, [feed])[0])


def test_signatures() -> None:
    g = Net()
    one = g.dense(g.input((1, 6)), 3)
    h = Net(1)
    two = h.dense(h.input((1, 4)), 2)
    signatures = [Signature("one", {"x": g.inputs[0]}, {"y": one}), Signature("two", {"z": h.inputs[0]}, {"y": two}, 1)]
    of = model(g.build(one), h.build(two), signatures=signatures)
    first, second = randn(g.rng, 1, 6), randn(g.rng, 1, 4)
    after, _ = _quantized(of, data=[("one", {"x": first}), ("two", [second])], output_type="int8")
    assert [len(graph.nodes) for graph in after.subgraphs] == [2, 2]
    for key, name, value in (("one", "x", first), ("two", "z", second)):
        got = Interpreter(write(after)).get_signature_runner(key)(**{name: value})["y"]
        assert got.dtype == np.int8 and np.abs(got.astype(int)).max() > 100
    with pytest.raises(ConversionError, match=r"no samples for signatures \['two'\]"):
        _quantized(of, data=[[first]])
    with pytest.raises(ConversionError, match=r"expected a signature of \['one', 'two'\], got 'three'"):
        _quantized(of, data=[("three", [first])])


def test_data_in_every_form(tmp_path: Path) -> None:
    g = Net()
    of = model(g.build(g.dense(g.input((1, 6)), 3)))
    name = of.subgraphs[0].tensors[of.subgraphs[0].inputs[0]].name
    values = randn(np.random.default_rng(5), 4, 6)
    np.savez(tmp_path / "data.npz", **{name: values})
    rows = [[row[None]] for row in values]
    forms: list[Any] = [rows, lambda: iter(rows), iter(rows), [row for (row,) in rows], {name: values}, values]
    forms += [[{name: row} for (row,) in rows], str(tmp_path / "data.npz"), values.astype(np.float64)]
    files = {write(_quantized(of, data=form)[0]) for form in forms}
    assert len(files) == 1
    assert write(_quantized(of, data=rows, samples=2)[0]) not in files
    for wrong, message in (
        ([], "has no samples"),
        (None, "need representative data"),
        ([[values[:1], values[:1]]], f"expected inputs \\['{name}'\\], got 2 arrays"),
        ([{"y": values}], "expected inputs"),
        ([[values[0]]], r"expected float32 \[1, 6\], got float32 \[6\]"),
        ([[values[:1].astype(np.int32)]], "got int32"),
        ({name: values, "y": values[:1]}, "differ in their first dimension"),
        (str(tmp_path / "none.npz"), "cannot be read"),
    ):
        with pytest.raises(ConversionError, match=message):
            _quantized(of, data=wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activations": "int4"}, "activations one of"),
        ({"activations": "int8", "weights": "float16"}, "int8 activations need int8 weights"),
        ({"activations": "int16", "input_type": "int8"}, "input_type one of"),
        ({"skip": ("SOFTMAX",)}, "skip need activations"),
        ({"activations": "int8", "skip": "SOFTMAX"}, "tuple of names"),
        ({"activations": "int8", "percentile": 10}, "percentile over 50"),
        ({"activations": "int8", "momentum": 1.0}, "momentum"),
        ({"activations": "int8", "samples": 0}, "samples of at least 1"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        Quantization(**options)


def test_ranges() -> None:
    """Each method on values of which one in a thousand is far away, in runs of growing size."""
    rng = np.random.default_rng(0)
    runs = [rng.standard_normal(2000) * (1 + i / 10) for i in range(10)]
    runs[7][:20] = 40
    runs[3][0] = np.inf
    values = np.concatenate(runs)
    values = values[np.isfinite(values)]

    def found(**options: Any) -> Range:
        seeing = observer(Quantization(activations="int8", data=[], **options))()
        for run in runs:
            seeing.see(run.astype(np.float32))
        result = seeing.range()
        assert result is not None
        return result

    np.testing.assert_allclose(found(), (values.min(), values.max()), rtol=1e-6)
    low, high = found(method="percentile", percentile=99.5)
    np.testing.assert_allclose((low, high), np.percentile(values, (0.5, 99.5)), atol=0.03)
    best = min(
        np.linspace(0.1, 1, 91) * 40,
        key=lambda top: np.square(values - _rounded(values, values.min(), top)).sum(),
    )
    got = found(method="mse")
    errors = [np.square(values - _rounded(values, low, top)).sum() for low, top in ((values.min(), best), got)]
    assert errors[1] < 1.1 * errors[0]
    ends = [(run[np.isfinite(run)].min(), run[np.isfinite(run)].max()) for run in runs]
    average = np.array(ends[0])
    for end in ends[1:]:
        average = 0.5 * average + 0.5 * np.array(end)
    np.testing.assert_allclose(found(method="moving_average", momentum=0.5), average, rtol=1e-5)


def _rounded(values: Array, low: float, high: float) -> Array:
    step = (high - low) / 255
    return np.asarray(np.rint((np.clip(values, low, high) - low) / step) * step + low)


@pytest.mark.parametrize("method", ["moving_average", "percentile", "mse"])
def test_methods_give_good_models(method: str) -> None:
    of = _tree()
    after, _ = _quantized(of, method=method, data=_samples(of, 24))
    _assert_good(of, after, 15.0)


def test_the_report() -> None:
    of = _tree()
    _, report = _quantized(of, sensitivity=True, measured=4)
    convolutions = [layer for layer in report.layers if layer.op == "CONV_2D"]
    assert [layer.node for layer in convolutions] == [0, 1, 3]
    first = convolutions[0]
    assert first.own_sqnr_db == pytest.approx(first.sqnr_db, abs=0.1), "nothing went before it but the input"
    samples = _samples(of)[:4]
    specs = of.subgraphs[0].tensors
    tensor = of.subgraphs[0].nodes[0].outputs[0]
    found = Interpreter(of, experimental_preserve_all_tensors=True)
    numbers = []
    for sample in samples:
        _run(found, sample)
        numbers.append(found.get_tensor(tensor))
    assert first.name == specs[tensor].name
    assert first.low <= np.min(numbers) and first.high >= np.max(numbers)
    assert all(layer.output_sqnr_db > report.outputs[0].sqnr_db - 1 for layer in convolutions)
    assert report.most_sensitive()[0].output_sqnr_db == min(
        layer.output_sqnr_db for layer in report.layers if layer.output_sqnr_db is not None
    )
    assert json.loads(report.to_json())["layers"][0]["op"] == "CONV_2D"
    assert "CONV_2D" in str(report) and "dB" in str(report)


def test_constants_in_halves_are_widened() -> None:
    g = Net()
    of = model(g.build(g.dense(g.input((1, 64)), 32)))
    halves, _ = quantize(of, Quantization(weights="float16"))
    assert [node.op for node in halves.subgraphs[0].nodes] == [DEQUANTIZE, FULLY_CONNECTED]
    after, _ = _quantized(halves, data=_samples(of))
    assert _names(after) == ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE"]
    content = Converter.from_tflite(write(halves), Quantization(activations="int8", data=_samples(of))).convert()
    assert content == write(after)


def _dynamic(of: Model, feeds: Sequence[Array]) -> tuple[Model, Array]:
    """The model with int8 weights, and its output: the same here and in LiteRT up to float arithmetic."""
    after, _ = quantize(of, Quantization(weights="int8"))
    content = write(after)
    (expected,) = oracle.run(content, feeds)
    (got,) = _run(Interpreter(content), feeds)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    (wanted,) = _run(Interpreter(of), feeds)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=0.04 * np.abs(wanted).max())
    return after, got


def test_dynamic_range_of_a_transposed_convolution() -> None:
    g = Net()
    x, size = g.input((1, 4, 4, 16)), g.const(np.array([1, 8, 8, 24], np.int32))
    filters, bias = g.const(randn(g.rng, 24, 3, 3, 16, scale=0.1)), g.const(randn(g.rng, 24))
    y = g.op(TRANSPOSE_CONV, [size, filters, x, bias], TransposeConvOptions(stride_w=2, stride_h=2))
    after, _ = _dynamic(model(g.build(y)), [randn(g.rng, 1, 4, 4, 16)])
    quantization = after.subgraphs[0].tensors[filters].quantization
    assert quantization is not None and quantization.scale.size == 24


@pytest.mark.parametrize("op", [GATHER, EMBEDDING_LOOKUP])
@pytest.mark.parametrize("tied", [False, True])
def test_dynamic_range_of_an_embedding(op: Any, tied: bool) -> None:
    """A table of words is also the matrix that gives each word's score."""
    g = Net()
    table, ids = g.const(randn(g.rng, 80, 16)), g.input((5,), TensorType.INT32)
    inputs = [table, ids] if op is GATHER else [ids, table]
    g.tensors.append(replace(g.tensors[table], shape=(5, 16), data=None, name="rows"))
    rows = len(g.tensors) - 1
    g.nodes.append(Node(op, tuple(inputs), (rows,), GatherOptions() if op is GATHER else NoOptions()))
    weights = table if tied else g.const(randn(g.rng, 80, 16))
    y = g.op(FULLY_CONNECTED, [rows, weights, None], FullyConnectedOptions())
    after, _ = _dynamic(model(g.build(y)), [np.array([3, 79, 0, 11, 40], np.int32)])
    narrow = [s for s in after.subgraphs[0].tensors if s.data is not None and s.size >= 1024]
    assert [s.type for s in narrow] == [TensorType.INT8] * (1 if tied else 2)


def test_dynamic_range_of_weights_that_something_else_reads() -> None:
    g = Net()
    weights, x = g.const(randn(g.rng, 64, 32)), g.input((3, 32))
    begin, size = g.const(np.array([2, 0], np.int32)), g.const(np.array([3, 32], np.int32))
    part = g.op(SLICE, [weights, begin, size], NoOptions())
    y = g.op(FULLY_CONNECTED, [g.op(ADD, [x, part], AddOptions()), weights, None], FullyConnectedOptions())
    after, _ = _dynamic(model(g.build(y)), [randn(g.rng, 3, 32)])
    assert _names(after) == ["DEQUANTIZE", "SLICE", "ADD", "FULLY_CONNECTED"]
