"""Calibration, its methods and its data; weights alone in integers."""

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
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import TensorType
from support import oracle
from support.build import model, randn
from support.quantize_models import Net, assert_good, names_of, quantized, run, samples_of, tree


def test_data_in_every_form(tmp_path: Path) -> None:
    g = Net()
    of = model(g.build(g.dense(g.input((1, 6)), 3)))
    name = of.subgraphs[0].tensors[of.subgraphs[0].inputs[0]].name
    values = randn(np.random.default_rng(5), 4, 6)
    np.savez(tmp_path / "data.npz", **{name: values})
    rows = [[row[None]] for row in values]
    forms: list[Any] = [rows, lambda: iter(rows), iter(rows), [row for (row,) in rows], {name: values}, values]
    forms += [[{name: row} for (row,) in rows], str(tmp_path / "data.npz"), values.astype(np.float64)]
    files = {write(quantized(of, data=form)[0]) for form in forms}
    assert len(files) == 1
    assert write(quantized(of, data=rows, samples=2)[0]) not in files
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
            quantized(of, data=wrong)


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
        for values in runs:
            seeing.see(values.astype(np.float32))
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
    of = tree()
    after, _ = quantized(of, method=method, data=samples_of(of, 24))
    assert_good(of, after, 15.0)


def test_the_report() -> None:
    of = tree()
    _, report = quantized(of, sensitivity=True, measured=4)
    convolutions = [layer for layer in report.layers if layer.op == "CONV_2D"]
    assert [layer.node for layer in convolutions] == [0, 1, 3]
    first = convolutions[0]
    assert first.own_sqnr_db == pytest.approx(first.sqnr_db, abs=0.1), "nothing went before it but the input"
    samples = samples_of(of)[:4]
    specs = of.subgraphs[0].tensors
    tensor = of.subgraphs[0].nodes[0].outputs[0]
    found = Interpreter(of, experimental_preserve_all_tensors=True)
    numbers = []
    for sample in samples:
        run(found, sample)
        numbers.append(found.get_tensor(tensor))
    assert first.name == specs[tensor].name
    assert first.low <= np.min(numbers) and first.high >= np.max(numbers)
    worst = min(output.sqnr_db for output in report.outputs)
    assert all(layer.output_sqnr_db > worst - 1 for layer in convolutions)
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
    after, _ = quantized(halves, data=samples_of(of))
    assert names_of(after) == ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE"]
    content = Converter.from_tflite(write(halves), Quantization(activations="int8", data=samples_of(of))).convert()
    assert content == write(after)


def _dynamic(of: Model, feeds: Sequence[Array]) -> tuple[Model, Array]:
    """The model with int8 weights, and its output: the same here and in LiteRT up to float arithmetic."""
    after, _ = quantize(of, Quantization(weights="int8"))
    content = write(after)
    (expected,) = oracle.run(content, feeds)
    (got,) = run(Interpreter(content), feeds)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    (wanted,) = run(Interpreter(of), feeds)
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
    assert names_of(after) == ["DEQUANTIZE", "SLICE", "ADD", "FULLY_CONNECTED"]
