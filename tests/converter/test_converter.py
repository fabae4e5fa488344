"""Conversion: every model against Keras, run by ai_edge_litert and by litecl, again and again on one interpreter."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from litecl.converter import Converter  # noqa: E402
from litecl.delegate import CLDelegate  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM  # noqa: E402
from support.compare import assert_close  # noqa: E402
from support.conversion import TOLERANCE, invoke, litert, operators, runtimes  # noqa: E402
from support.keras_models import FEED_FORWARD, LSTMS, KerasModel, feeds, outputs, randomise, stack  # noqa: E402
from support.tf_functions import FUNCTIONS, TfFunction  # noqa: E402

L = keras.layers


def _check(content: bytes, model: Any, batches: tuple[int, ...]) -> None:
    """Every runtime gives what Keras gives, for sequences that follow each other in one interpreter."""
    fed = [feeds(model, batch, seed) for seed, batch in enumerate((*batches, batches[0]))]
    wanted = [outputs(model, values) for values in fed]
    for runtime in (*runtimes(content), litert(content, "default")):
        for values, results in zip(fed, wanted, strict=True):
            for got, expected in zip(invoke(runtime, values), results, strict=True):
                assert_close(got, expected, TOLERANCE)


@pytest.mark.parametrize("case", [*FEED_FORWARD, *LSTMS], ids=repr)
def test_keras_model(case: KerasModel) -> None:
    model = randomise(case.build())
    content = Converter.from_keras_model(model).convert()
    found = operators(read(content))
    assert found.total() <= case.operators, found
    _check(content, case.reference(model), case.batches)


def test_mobilenet_v2_has_no_batch_norm_and_no_pad() -> None:
    """65 operators, and every tensor that one of them makes is what a layer of the Keras model makes."""
    network = keras.applications.MobileNetV2(weights=None)
    # A softmax over 1000 random logits is nearly uniform, whatever they are: the logits are a layer of their own.
    logits = L.Dense(1000)(L.GlobalAveragePooling2D()(network.get_layer("out_relu").output))
    model = randomise(keras.Model(network.inputs, L.Softmax()(logits)))
    content = Converter.from_keras_model(model).convert()
    converted = read(content)
    found = operators(converted)
    assert found.total() <= 65
    assert not {"PAD", "MUL", "SUB"} & set(found)
    values = feeds(model, 1)
    layers: dict[tuple[int, ...], list[Array]] = {}
    for y in keras.Model(model.inputs, [layer.output for layer in model.layers])([values[0]], training=False):
        layers.setdefault(tuple(y.shape), []).append(np.asarray(y))
    _check(content, model, (1,))
    made = [t for node in converted.subgraphs[0].nodes for t in node.outputs]
    for delegates in ([], [CLDelegate()]):
        runtime = Interpreter(content, delegates=delegates, experimental_preserve_all_tensors=True)
        invoke(runtime, values)
        for tensor in made:
            got = runtime.get_tensor(tensor)
            assert min(_relative_difference(got, y) for y in layers[got.shape]) <= TOLERANCE, tensor


def _relative_difference(got: Array, expected: Array) -> float:
    """To the largest magnitude expected."""
    return float(np.abs(got - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("case", [c for c in LSTMS if c.name not in ("lstm unrolled", "lstm of one batch")], ids=repr)
def test_exported_lstm(case: KerasModel, tmp_path: Path) -> None:
    model = randomise(case.build())
    model.export(tmp_path, verbose=False)
    content = Converter.from_saved_model(tmp_path).convert()
    found = operators(read(content))
    assert found["WHILE"] == 0
    assert found.total() <= case.operators + 1, found
    _check(content, case.reference(model), case.batches)


def test_fused_lstm_starts_anew_and_does_not_clip() -> None:
    model = Converter.from_keras_model(stack(L.LSTM(4), shape=(6, 3), batch_size=1)).convert_to_model()
    (graph,) = model.subgraphs
    (lstm,) = [node for node in graph.nodes if node.op is UNIDIRECTIONAL_SEQUENCE_LSTM]
    assert lstm.options.cell_clip == lstm.options.proj_clip == 0
    for position in UNIDIRECTIONAL_SEQUENCE_LSTM.states:
        state = lstm.inputs[position]
        assert graph.tensors[state].is_variable
        assert any(state in node.outputs for node in graph.nodes), "nothing sets the state before the LSTM runs"


@pytest.fixture(scope="module")
def small() -> Any:
    image = keras.Input((8, 8, 3), name="image")
    x = L.BatchNormalization()(L.Conv2D(4, 3, padding="same")(image))
    return randomise(keras.Model(image, L.Dense(2, name="scores")(L.Flatten()(x))))


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = L.Dense(3)

    def call(self, x: Any) -> Any:
        return self.dense(x)


class _Module(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = tf.Variable(np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32))
        self.count = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32, name="x")], autograph=False)
    def scores(self, x: Any) -> dict[str, Any]:
        self.count.assign_add(1)
        return {"scores": tf.matmul(x, self.weights), "sizes": tf.reduce_sum(x, 1)}

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32, name="x")], autograph=False)
    def counted(self, x: Any) -> Any:
        self.count.assign_add(1)
        return x * tf.cast(self.count, tf.float32)


def test_saved_model_and_its_signature(small: Any, tmp_path: Path) -> None:
    small.export(tmp_path, verbose=False)
    converter = Converter.from_saved_model(tmp_path)
    _check(converter.convert(), small, (1, 3))
    interpreter = Interpreter(model_content=converter.convert())
    assert interpreter.get_signature_list() == {"serving_default": {"inputs": ["image"], "outputs": ["output_0"]}}
    (detail,) = interpreter.get_input_details()
    assert detail["name"] == "serving_default_image:0"
    assert detail["shape"].tolist() == [1, 8, 8, 3]
    assert detail["shape_signature"].tolist() == [-1, 8, 8, 3]


def test_input_shapes(small: Any, tmp_path: Path) -> None:
    small.export(tmp_path, verbose=False)
    shapes = {"image": (2, 8, 8, 3)}
    for converter in (
        Converter.from_saved_model(tmp_path, input_shapes=shapes),
        Converter.from_keras_model(small, input_shapes=shapes),
    ):
        (graph,) = converter.convert_to_model().subgraphs
        assert graph.tensors[graph.inputs[0]].shape == (2, 8, 8, 3)
        assert all(tensor.shape_signature is None for tensor in graph.tensors)
        _check(converter.convert(), small, (2,))


def test_signatures_of_a_module(tmp_path: Path) -> None:
    module = _Module()
    tf.saved_model.save(module, tmp_path, signatures={"a": module.scores, "b": module.scores})
    content = Converter.from_saved_model(tmp_path, ["a", "b"]).convert()
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    for runtime in (litert(content), Interpreter(model_content=content)):
        assert sorted(runtime.get_signature_list()) == ["a", "b"]
        for key in ("a", "b"):
            results = runtime.get_signature_runner(key)(x=x)
            assert_close(results["scores"], x @ module.weights.numpy(), TOLERANCE)
            assert_close(results["sizes"], x.sum(1), TOLERANCE)


def test_concrete_function() -> None:
    module = _Module()
    content = Converter.from_concrete_functions([module.scores.get_concrete_function()], module).convert()
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    scores, sizes = invoke(litert(content), [x])
    assert_close(scores, x @ module.weights.numpy(), TOLERANCE)
    assert_close(sizes, x.sum(1), TOLERANCE)


def test_frozen_graph(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, (None, 4), "x")
        tf.nn.relu(tf.matmul(x, tf.constant(np.eye(4, 2, dtype=np.float32))), "y")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    content = Converter.from_frozen_graph(path, ["x"], ["y"], {"x": (2, 4)}).convert()
    value = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
    (y,) = invoke(litert(content), [value])
    assert_close(y, np.maximum(value[:, :2], 0), TOLERANCE)


def test_subclassed_model() -> None:
    model = Subclassed()
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    expected = np.asarray(model(x))
    (got,) = invoke(litert(Converter.from_keras_model(model).convert()), [x])
    assert_close(got, expected, TOLERANCE)


def _unsupported(x: Any) -> Any:
    return tf.math.special.spence(x)


def _of_no_file_type(x: Any) -> Any:
    return tf.cast(tf.bitcast(tf.cast(x, tf.float32), tf.qint32), tf.float32)


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (
            lambda: Converter.from_keras_model(stack(L.Lambda(_unsupported, name="special"), shape=(3, 3))),
            "Spence .*special",
        ),
        (lambda: Converter.from_keras_model(stack(L.Dense(2), shape=(3,)), {"y": (1, 3)}), "names .*y"),
        (lambda: Converter.from_keras_model(stack(L.Dense(2), shape=(3,), name="x"), {"x": (1, 4)}), "does not fit"),
        (lambda: Converter.from_keras_model(Subclassed()), "call it once"),
        (lambda: Converter.from_keras_model(_Module()), "expected a keras.Model"),
        (lambda: Converter.from_concrete_functions([_Module().scores]), "get_concrete_function"),
        (lambda: Converter.from_saved_model("/nowhere"), "nowhere"),
        (lambda: Converter.from_keras_model(stack(L.Lambda(_of_no_file_type), shape=(3,))), "qint32"),
    ],
)
def test_what_cannot_be_converted_says_where_and_why(convert: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        convert().convert()


@pytest.mark.parametrize("case", FUNCTIONS, ids=repr)
def test_tensorflow_function(case: TfFunction) -> None:
    function = tf.function(case.function, autograph=False)
    content = Converter.from_concrete_functions([function.get_concrete_function(*case.specs)]).convert()
    for runtime in (litert(content), Interpreter(model_content=content)):
        values = case.feeds()
        expected = [np.asarray(y) for y in tf.nest.flatten(function(*values))]
        for got, wanted in zip(invoke(runtime, values), expected, strict=True):
            assert_close(got, wanted, TOLERANCE if wanted.dtype == np.float32 else 0.0)


@pytest.mark.parametrize(("name", "sign"), [("softplus", 1), ("log_sigmoid", -1)])
def test_softplus_neither_overflows_nor_vanishes(name: str, sign: int) -> None:
    content = Converter.from_keras_model(stack(L.Activation(name), shape=(9,))).convert()
    x = np.array([[-200, -50, -20, -13, -5, 0, 3, 100, 200]], np.float32)
    expected = np.logaddexp(0, x.astype(np.float64))
    for runtime in (litert(content, "reference"), Interpreter(model_content=content)):
        (got,) = invoke(runtime, [sign * x])
        np.testing.assert_allclose(sign * got, expected, rtol=4e-7, atol=1e-30)
