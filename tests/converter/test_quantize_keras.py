"""Quantized Keras models: as near to the model in float as TFLiteConverter's, and TFLiteConverter's attributes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support import oracle  # noqa: E402
from support.conversion import invoke, litert  # noqa: E402
from support.keras_models import randomise, stack  # noqa: E402

L = keras.layers
DEFAULT = [tf.lite.Optimize.DEFAULT]


def _block() -> Any:
    """A residual block of a mobile network, and what joins and gates its result."""
    x = inputs = keras.Input((12, 12, 3))
    x = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)))
    y = L.ReLU(6.0)(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same", use_bias=False)(x)))
    x = L.Add()([x, L.BatchNormalization()(L.Conv2D(8, 1, use_bias=False)(y))])
    x = L.Concatenate()([x, L.Conv2D(8, 1, activation="sigmoid")(x), L.MaxPooling2D(3, 1, "same")(y)])
    x = L.Multiply()([x, L.Conv2D(24, 1, activation="tanh")(x)])
    return keras.Model(inputs, L.Dense(5, activation="softmax")(L.GlobalAveragePooling2D()(x)))


def _attention() -> Any:
    x = inputs = keras.Input((8, 16))
    y = L.LayerNormalization()(L.Dense(16)(x))
    y = L.Dense(16, activation="gelu")(L.MultiHeadAttention(2, 8)(y, y))
    return keras.Model(inputs, L.Dense(4)(L.Flatten()(y)))


def _sequence() -> Any:
    return stack(L.Conv1D(8, 5, activation="relu"), L.MaxPooling1D(2), L.LSTM(6), L.Dense(3), shape=(24, 4))


def _samples(model: Any, count: int, seed: int) -> list[list[Array]]:
    rng = np.random.default_rng(seed)
    return [[rng.standard_normal((1, *x.shape[1:])).astype(np.float32) for x in model.inputs] for _ in range(count)]


def _ratio_db(wanted: Array, got: Array) -> float:
    return float(10 * np.log10(np.square(wanted).sum() / np.square(wanted - got).sum()))


def _peer(model: Any, samples: Any, kind: str) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = DEFAULT
    converter.representative_dataset = lambda: iter(samples)
    if kind == "int16":
        wide = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [wide, tf.lite.OpsSet.TFLITE_BUILTINS]
    content: bytes = converter.convert()
    return content


@pytest.mark.parametrize(
    ("build", "kind", "with_peer"),
    [(_block, "int8", True), (_block, "int16", False), (_attention, "int8", True), (_sequence, "int8", False)],
)
def test_accuracy(build: Callable[[], Any], kind: Any, with_peer: bool) -> None:
    model = randomise(build())
    samples, tried = _samples(model, 16, 1), _samples(model, 12, 2)
    content = Converter.from_keras_model(model, quantize=Quantization(activations=kind, data=samples)).convert()
    wanted = np.concatenate([np.asarray(model(*x, training=False)) for x in tried])
    found = [oracle.run(content, x)[0] for x in tried]
    runner = Interpreter(model_content=content).get_signature_runner()
    (name,) = runner.get_input_details()
    for (x,), expected in zip(tried, found, strict=True):
        (got,) = runner(**{name: x}).values()
        np.testing.assert_allclose(got, expected, rtol=0, atol=0 if build is not _sequence else 1e-6)
    ours = _ratio_db(wanted, np.concatenate(found))
    assert ours > 28
    if with_peer:
        peer = _peer(model, samples, kind)
        theirs = _ratio_db(wanted, np.concatenate([oracle.run(peer, x)[0] for x in tried]))
        assert ours > theirs - 1.0


def _pooled() -> Any:
    return stack(L.Conv2D(4, 3, activation="relu"), L.Flatten(), L.Dense(5), shape=(8, 8, 3))


def _attentive() -> Any:
    inputs = keras.Input((None, 8))
    return keras.Model(inputs, L.Dense(3)(L.MultiHeadAttention(2, 4)(inputs, inputs)))


def _scales(content: bytes) -> set[tuple[float, int]]:
    """Return scale and zero point of what is rounded to int8 as a whole, activations in the main."""
    tensors = read(content).subgraphs[0].tensors
    found = [spec.quantization for spec in tensors if spec.type == TensorType.INT8 and spec.quantization is not None]
    return {(float(f"{q.scale[0]:.5g}"), int(q.zero_point[0])) for q in found if len(q.scale) == 1}


@pytest.mark.parametrize("build", [_pooled, _attentive])
def test_batches_of_samples(build: Callable[[], Any]) -> None:
    """Scales are TFLiteConverter's for the same batches (it adds biases apart), and numbers LiteRT's."""
    model, rng = randomise(build()), np.random.default_rng(1)
    shapes = [tuple(size or length for size in model.inputs[0].shape[1:]) for length in (6, 6, 9)]
    data = [[rng.standard_normal((batch, *s)).astype(np.float32)] for batch, s in zip((4, 3, 4), shapes, strict=True)]
    converter = Converter.from_keras_model(model, quantize=Quantization(activations="int8", data=lambda: iter(data)))
    content = converter.convert()
    assert _scales(content) <= _scales(_peer(model, data, "int8"))
    report = converter.report.quantization
    assert report is not None and all(layer.own_sqnr_db > 25 for layer in report.layers if layer.own_sqnr_db)
    for sample in data:
        got = invoke(Interpreter(content), sample)
        np.testing.assert_array_equal(got[0], invoke(litert(content, "reference"), sample)[0])
        assert _ratio_db(np.asarray(model(*sample)), got[0]) > 28


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_samples_of_several_lengths(kind: Any) -> None:
    inputs, rng = keras.Input((None, 8)), np.random.default_rng(1)
    model = randomise(keras.Model(inputs, L.Dense(3)(L.LSTM(6)(inputs))))
    data = [[rng.standard_normal(shape).astype(np.float32)] for shape in ((4, 6, 8), (1, 9, 8), (2, 3, 8))]
    how = Quantization(activations=kind, data=data, bias_correction=True, sensitivity=True)
    content = Converter.from_keras_model(model, quantize=how).convert()
    for sample in data:
        assert _ratio_db(np.asarray(model(*sample)), invoke(Interpreter(content), sample)[0]) > 28


def test_batches_for_a_model_of_single_samples() -> None:
    inputs, rng = keras.Input((8, 8, 3), batch_size=1), np.random.default_rng(1)
    model = randomise(keras.Model(inputs, L.Dense(5)(L.Flatten()(L.Conv2D(4, 3)(inputs)))))
    batch = rng.standard_normal((4, 8, 8, 3)).astype(np.float32)
    files = [
        Converter.from_keras_model(model, quantize=Quantization(activations="int8", data=data)).convert()
        for data in ([[batch]], [[sample[None]] for sample in batch])
    ]
    assert files[0] == files[1]


def _converted(model: Any, **attributes: Any) -> Any:
    """The subgraph of a conversion with attributes set as a script does; ``ops`` and ``types`` are target_spec's."""
    converter = Converter.from_keras_model(model)
    for name, value in attributes.items():
        if name in ("ops", "types"):
            setattr(converter.target_spec, f"supported_{name}", value)
        else:
            setattr(converter, name, value)
    return read(converter.convert()).subgraphs[0]


def test_the_attributes_of_tflite_converter() -> None:
    model = randomise(stack(L.Conv2D(16, 3, activation="relu"), L.Flatten(), L.Dense(8)))
    samples = _samples(model, 4, 1)
    data = {"optimizations": DEFAULT, "representative_dataset": lambda: iter(samples)}

    def types(**attributes: Any) -> tuple[str, str, set[str]]:
        graph = _converted(model, **attributes)
        first, last = (graph.tensors[t[0]].type.name for t in (graph.inputs, graph.outputs))
        return first, last, {spec.type.name for spec in graph.tensors if spec.type.name != "INT32"}

    floats = ("FLOAT32", "FLOAT32")
    assert types() == (*floats, {"FLOAT32"})
    assert types(optimizations=DEFAULT) == (*floats, {"FLOAT32", "INT8"})
    assert types(optimizations=DEFAULT, types=[tf.float16]) == (*floats, {"FLOAT32", "FLOAT16"})
    assert types(**data) == (*floats, {"FLOAT32", "INT8"})
    borders = {"inference_input_type": tf.int8, "inference_output_type": tf.uint8}
    integers = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    assert types(**data, **borders, ops=integers) == ("INT8", "UINT8", {"INT8", "UINT8"})
    wide = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    spec = tf.lite.TargetSpec(supported_ops=[wide])
    assert types(**data, target_spec=spec, inference_input_type=np.int16) == (
        *("INT16", "FLOAT32"),
        {"INT16", "INT8", "INT64", "FLOAT32"},
    )
    assert types(_experimental_disable_per_channel=True, **data)[2] == {"FLOAT32", "INT8"}
    assert types(allow_custom_ops=True, experimental_new_converter=True) == (*floats, {"FLOAT32"})


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"representative_dataset": list}, "representative_dataset: no effect without optimizations"),
        ({"inference_input_type": "int8"}, "inference_input_type: no effect without optimizations"),
        ({"optimizations": DEFAULT, "inference_input_type": "int8"}, "need a representative_dataset"),
        ({"optimizations": DEFAULT, "types": ["float16"], "inference_input_type": "int8"}, "no effect with weights"),
        ({"optimizations": tf.lite.Optimize.DEFAULT}, "optimizations: "),
        ({"optimizations": [tf.lite.Optimize.EXPERIMENTAL_SPARSITY]}, "expected a list of DEFAULT"),
        ({"types": [tf.bfloat16]}, "target_spec.supported_types: expected a list of float32"),
        ({"representative_dataset": [[1]]}, "expected a function that returns samples"),
        ({"experimental_new_converter": False}, "experimental_new_converter: expected True"),
        ({"inference_type": tf.uint8}, "inference_type is not supported"),
        ({"quantize": "int8"}, "quantize is not supported"),
    ],
)
def test_attributes_that_cannot_be_honoured(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        _converted(stack(L.Dense(2), shape=(3,)), **attributes)


def test_attributes_beside_an_option() -> None:
    converter = Converter.from_keras_model(stack(L.Dense(2), shape=(3,)), quantize="int8")
    converter.optimizations = DEFAULT
    with pytest.raises(ConversionError, match="pass one of them"):
        converter.convert()


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_a_vision_transformer_is_wholly_on_integers(kind: Any) -> None:
    """Keras cuts patches with a filter that it computes, which float files leave to be computed."""
    inputs = keras.Input((16, 16, 3))
    x = L.Dense(8)(L.Reshape((4, 192))(keras.ops.image.extract_patches(inputs, size=8)))
    y = L.LayerNormalization()(x)
    x = L.Add()([x, L.MultiHeadAttention(2, 4)(y, y)])
    x = L.Add()([x, L.Dense(8)(L.Dense(16, activation="gelu")(L.LayerNormalization()(x)))])
    model = randomise(keras.Model(inputs, L.Dense(3)(L.Flatten()(x))))
    data = _samples(model, 4, 1)
    plain = Converter.from_keras_model(model).convert_to_model().subgraphs[0]
    assert "MATRIX_DIAG" in {node.op.name for node in plain.nodes}
    how = Quantization(activations=kind, data=data, strict=True)
    content = Converter.from_keras_model(model, quantize=how).convert()
    graph = read(content).subgraphs[0]
    floats = {i for i, spec in enumerate(graph.tensors) if spec.type == TensorType.FLOAT32}
    assert floats == {*graph.inputs, *graph.outputs}
    for sample in data:
        got = invoke(Interpreter(content), sample)
        np.testing.assert_array_equal(got[0], invoke(litert(content, "reference"), sample)[0])
        assert _ratio_db(np.asarray(model(*sample)), got[0]) > 20


def _heads() -> Any:
    return stack(L.EinsumDense("abc,cde->abde", output_shape=(None, 4, 16), bias_axes="de"), shape=(5, 64))


def _merged() -> Any:
    return stack(L.EinsumDense("abcd,cde->abe", output_shape=(None, 32), bias_axes="e"), shape=(5, 4, 16))


def _tied() -> Any:
    ids = keras.Input((5,), dtype="int32")
    table = L.ReversibleEmbedding(50, 32)
    return keras.Model(ids, table(L.Dense(32)(table(ids)), reverse=True))


def _low_rank() -> Any:
    dense = L.Dense(32, activation="relu")
    model = stack(dense, shape=(64,))
    dense.enable_lora(4)
    return model


_QUANTIZED_BY_KERAS: dict[str, Callable[[], Any]] = {
    "dense": lambda: stack(L.Dense(96, activation="relu"), shape=(64,)),
    "dense of sequences": lambda: stack(L.Dense(96, use_bias=False), shape=(5, 64)),
    "many inputs": lambda: stack(L.Dense(16), shape=(3000,)),
    "heads": _heads,
    "merged": _merged,
    "attention": _attention,
    "tied embedding": _tied,
    "low rank": _low_rank,
}


@pytest.mark.parametrize("name", _QUANTIZED_BY_KERAS)
def test_what_keras_has_quantized_keeps_its_integers(name: str) -> None:
    """Layers multiply the integers of Keras, rounding what they read by rows as it does, and are as small."""
    model = randomise(_QUANTIZED_BY_KERAS[name]())
    model.quantize("int8")
    rng, (given,) = np.random.default_rng(4), model.inputs
    shape = (3, *given.shape[1:])
    x = rng.integers(0, 50, shape).astype(np.int32) if given.dtype == "int32" else rng.standard_normal(shape)
    x = np.asarray(x, given.dtype)
    x[0] = 0  # rows without a largest magnitude
    content = Converter.from_keras_model(model).convert()
    graph = read(content).subgraphs[0]
    assert not {"ROUND", "SUM"} & {node.op.name for node in graph.nodes}
    stored = [spec.data.nbytes for spec in graph.tensors if spec.data is not None and spec.data.ndim > 1]
    assert sum(stored) <= sum(w.numpy().nbytes for w in model.weights) + 32 * 50  # a tied table is stored twice
    expected = np.asarray(model(x, training=False))
    for found in (oracle.run(content, [x])[0], invoke(Interpreter(model_content=content), [x])[0]):
        np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("quantize", ["int8", "float16", "int4", "activations"])
def test_what_keras_has_quantized_is_not_quantized_again(quantize: Any) -> None:
    model = randomise(stack(L.Dense(64, activation="relu"), L.Dense(16, activation="tanh"), shape=(64,)))
    model.quantize("int8")
    x = np.random.default_rng(4).standard_normal((1, 64)).astype(np.float32)
    how = Quantization(activations="int8", data=[[x]]) if quantize == "activations" else quantize
    content = Converter.from_keras_model(model, quantize=how).convert()
    expected = np.asarray(model(x, training=False))
    np.testing.assert_allclose(oracle.run(content, [x])[0], expected, atol=2 / 128)
    np.testing.assert_allclose(invoke(Interpreter(model_content=content), [x])[0], expected, atol=2 / 128)


def test_four_bits_of_keras_are_right_and_float8_is_refused() -> None:
    x = np.random.default_rng(4).standard_normal((3, 5, 64)).astype(np.float32)
    model = randomise(_heads())
    model.quantize("int4")
    content = Converter.from_keras_model(model).convert()
    np.testing.assert_allclose(oracle.run(content, [x])[0], model(x), atol=2e-5)
    model = randomise(_heads())
    model.quantize("float8")
    with pytest.raises(ConversionError, match="float8_e4m3fn, which a"):
        Converter.from_keras_model(model).convert()
