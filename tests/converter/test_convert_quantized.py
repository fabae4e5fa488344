"""Weights with fewer bits: smaller files that LiteRT and litecl run, nearly as exact as the model."""

from functools import cache
from typing import Any

import numpy as np
import pytest

keras = pytest.importorskip("keras")

from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support.conversion import invoke, litert, runtimes  # noqa: E402
from support.keras_models import feeds, randomise, stack  # noqa: E402

L = keras.layers


def _network() -> Any:
    return stack(L.Conv2D(16, 3, activation="relu"), L.DepthwiseConv2D(3, depth_multiplier=8), L.Flatten(), L.Dense(40))


_MODELS = {
    "convolutions": _network,
    "lstm": lambda: stack(L.LSTM(24), shape=(5, 12), batch_size=1),
    "bidirectional": lambda: stack(L.Bidirectional(L.LSTM(16, return_sequences=True)), shape=(5, 12), batch_size=1),
    "simple": lambda: stack(L.SimpleRNN(32), shape=(5, 12), batch_size=1),
    "gru": lambda: stack(L.GRU(24), shape=(5, 12)),
}


@cache
def _in_float(name: str) -> tuple[Any, bytes]:
    model = randomise(_MODELS[name]())
    return model, Converter.from_keras_model(model).convert()


@pytest.mark.parametrize("name", _MODELS)
@pytest.mark.parametrize(("how", "tolerance"), [("float16", 2e-3), ("int8", 5e-2)])
def test_quantized(name: str, how: Any, tolerance: float) -> None:
    model, whole = _in_float(name)
    content = Converter.from_keras_model(model, quantize=how).convert()
    assert len(content) < len(whole)
    wanted = TensorType.FLOAT16 if how == "float16" else TensorType.INT8
    assert any(spec.type == wanted for graph in read(content).subgraphs for spec in graph.tensors)
    for runtime in runtimes(content):
        for batch in (1, 3) if model.inputs[0].shape[0] is None else (1, 1):
            values = feeds(model, batch, batch)
            (got,), expected = invoke(runtime, values), np.asarray(model(*values, training=False))
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_lstm_of_any_batch() -> None:
    model = randomise(stack(L.LSTM(24), shape=(5, 12)))
    with pytest.raises(ConversionError, match=r"UNIDIRECTIONAL_SEQUENCE_LSTM.*input_shapes"):
        Converter.from_keras_model(model, quantize="float16").convert()
    for options in ({"quantize": "int8"}, {"quantize": "float16", "lstm": "while"}):
        content = Converter.from_keras_model(model, **options).convert()  # type: ignore[arg-type]
        for runtime in runtimes(content):
            for batch in (1, 3):
                values = feeds(model, batch, batch)
                (got,), expected = invoke(runtime, values), np.asarray(model(*values, training=False))
                np.testing.assert_allclose(got, expected, rtol=0, atol=5e-2 * np.abs(expected).max())


def test_small_weights_stay() -> None:
    model = randomise(stack(L.Dense(3), shape=(4,)))
    for how in ("float16", "int8"):
        quantized = Converter.from_keras_model(model, quantize=how).convert_to_model()  # type: ignore[arg-type]
        assert all(spec.type == TensorType.FLOAT32 for spec in quantized.subgraphs[0].tensors)
    with pytest.raises(ConversionError, match="quantize: expected one of"):
        Converter.from_keras_model(model, quantize="int3")  # type: ignore[arg-type]


@pytest.mark.parametrize("bits", ["int8", "int4"])
def test_a_model_that_keras_has_quantized(bits: str) -> None:
    model = keras.Sequential(
        [keras.Input((5,), dtype="int32"), L.Embedding(10, 8), L.Dense(8, activation="relu"), L.Flatten(), L.Dense(3)]
    )
    randomise(model).quantize(bits)
    values = [np.int32([[0, 9, 3, 1, 2], [4, 5, 6, 7, 8]])]
    expected = np.asarray(model(values[0]))
    content = Converter.from_keras_model(model).convert()
    for runtime in (litert(content), Interpreter(model_content=content)):
        np.testing.assert_allclose(invoke(runtime, values)[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_weights_in_four_bits() -> None:
    """Weights of dense layers and convolutions are int4, those of others int8; litecl and LiteRT compute the same."""
    layers = L.Conv2D(16, 3), L.Conv2D(16, 3), L.DepthwiseConv2D(3, depth_multiplier=8), L.Flatten(), L.Dense(64)
    model = randomise(stack(*layers, shape=(9, 9, 16)))
    content, wide = (Converter.from_keras_model(model, quantize=how).convert() for how in ("int4", "int8"))
    (graph,) = read(content).subgraphs
    types = {node.op.name: graph.tensors[node.inputs[1]].type for node in graph.nodes if len(node.inputs) > 2}
    narrow = dict.fromkeys(("CONV_2D", "FULLY_CONNECTED"), TensorType.INT4)
    assert types == {**narrow, "DEPTHWISE_CONV_2D": TensorType.INT8}
    assert len(content) < 0.7 * len(wide)
    (values,) = feeds(model, 1, 1)
    results = [invoke(runtime, [values])[0] for runtime in runtimes(content)]
    expected = np.asarray(model(values, training=False))
    for got in results:
        np.testing.assert_allclose(got, results[0], rtol=0, atol=0.02 * np.abs(expected).max())
        np.testing.assert_allclose(got, expected, rtol=0, atol=0.3 * np.abs(expected).max())


def test_dense_layers_with_a_scale_for_every_block() -> None:
    """Rows whose parts differ lose less; a row that no block divides has one scale. LiteRT computes the same."""
    model = randomise(stack(L.Dense(64), L.Dense(96, use_bias=False), L.Dense(40), shape=(48,)))
    layers = [layer for layer in model.layers if layer.weights]
    of_parts = np.float32(np.repeat([1, 0.01], 32))
    layers[0].kernel.assign(np.asarray(layers[0].kernel) / of_parts)
    layers[1].kernel.assign(np.asarray(layers[1].kernel) * of_parts[:, None])
    (values,) = feeds(model, 4, 1)
    expected, errors = np.asarray(model(values, training=False)), {}
    for block in (None, 32):
        how = Quantization(weights="int4", block=block)  # type: ignore[arg-type]
        content = Converter.from_keras_model(model, quantize=how).convert()
        (graph,) = read(content).subgraphs
        weights = [graph.tensors[node.inputs[1]] for node in graph.nodes if node.op.name == "FULLY_CONNECTED"]
        sizes = [spec.quantization.block_size for spec in weights if spec.quantization is not None]
        assert sizes == [0, *[block or 0] * 2]
        results = [invoke(runtime, [values])[0] for runtime in runtimes(content)]
        for got in results:
            np.testing.assert_allclose(got, results[0], rtol=0, atol=0.02 * np.abs(expected).max())
        errors[block] = np.abs(results[0] - expected).mean()
    assert errors[32] < errors[None] / 2
    with pytest.raises(ConversionError, match='block needs weights="int4"'):
        Quantization(block=32)


@pytest.mark.parametrize("recipe", ["dynamic_wi8_afp32", "weight_only_wi8_afp32", "weight_only_wi4_afp32"])
@pytest.mark.parametrize("name", _MODELS)
def test_recipes_of_keras_models(name: str, recipe: str) -> None:
    """Recurrent layers, and those in loops, are quantized too."""
    model, whole = _in_float(name)
    converter = Converter.from_keras_model(model, quantize=Quantization(recipe=recipe))
    content = converter.convert()
    assert converter.report.quantization is not None and not converter.report.quantization.notes
    assert len(content) < len(whole) / 1.3
    values = feeds(model, 1, 1)
    expected, (wanted, *others) = np.asarray(model(*values, training=False)), runtimes(content)
    (result,) = invoke(wanted, values)
    np.testing.assert_allclose(
        result, expected, rtol=0, atol=(0.4 if "wi4" in recipe else 0.05) * np.abs(expected).max()
    )
    for runtime in others:
        np.testing.assert_allclose(invoke(runtime, values)[0], result, rtol=0, atol=2e-5 * np.abs(result).max())


def test_recipes_of_lstms_of_any_batch() -> None:
    model = randomise(stack(L.LSTM(24), shape=(5, 12)))
    values = feeds(model, 3, 0)
    with pytest.raises(ConversionError, match=r"widened and UNIDIRECTIONAL_SEQUENCE_LSTM.*input_shapes"):
        Converter.from_keras_model(model, quantize=Quantization(recipe="weight_only_wi8_afp32")).convert()
    for how in (Quantization(recipe="dynamic_wi8_afp32"), Quantization(min_sqnr_db=25, data=values)):
        content = Converter.from_keras_model(model, quantize=how).convert()
        expected = np.asarray(model(*values, training=False))
        for runtime in runtimes(content):
            np.testing.assert_allclose(invoke(runtime, values)[0], expected, rtol=0, atol=0.1 * np.abs(expected).max())
