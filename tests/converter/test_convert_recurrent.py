"""Recurrent layers of Keras 3, from the model and from its export, against Keras in LiteRT and litecl."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

from ai_edge_litert.interpreter import Interpreter as LiteRT  # noqa: E402
from ai_edge_litert.interpreter import OpResolverType  # noqa: E402

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from support.conversion import assert_all_close, assert_computes, converter_of, invoke, runtimes, sizes  # noqa: E402
from support.keras_models import KerasModel, feeds, randomise, stack  # noqa: E402
from support.keras_recurrent import FUSED, LOOPS, STATEFUL  # noqa: E402

L = keras.layers
_EXPORTED = ("gru", "gru sequence", "masked lstm", "convolutional lstm")


def _check(content: bytes, model: Any, batches: tuple[int, ...]) -> None:
    fed = [feeds(model, batch, seed) for seed, batch in enumerate(batches)]
    wanted = [[np.asarray(model(*values, training=False))] for values in fed]
    assert_computes(content, fed, wanted)


@pytest.mark.parametrize("case", LOOPS, ids=repr)
def test_loop(case: KerasModel) -> None:
    model = randomise(case.build())
    content = Converter.from_keras_model(model).convert()
    found = sizes(read(content))
    assert sum(found) <= case.operators, found
    _check(content, model, case.batches)


@pytest.mark.parametrize("case", [case for case in LOOPS if case.name in _EXPORTED], ids=repr)
def test_exported_loop(case: KerasModel, tmp_path: Path) -> None:
    model = randomise(case.build())
    model.export(tmp_path, verbose=False)
    _check(Converter.from_saved_model(tmp_path).convert(), model, case.batches)


def test_input_shapes_give_back_what_an_export_lost(tmp_path: Path) -> None:
    model = randomise(stack(L.Masking(), L.GRU(5, return_sequences=True), shape=(None, 6), name="x"))
    model.export(tmp_path, verbose=False)
    content = Converter.from_saved_model(tmp_path, input_shapes={"x": (1, 8, 6)}).convert()
    tensors = [tensor for graph in read(content).subgraphs for tensor in graph.tensors]
    assert all(tensor.shape is not None and tensor.shape_signature is None for tensor in tensors)
    (values,) = feeds(model, 1, length=8)
    expected = [np.asarray(model(values, training=False))]
    assert_computes(content, [[values]], [expected])


@pytest.mark.parametrize("case", STATEFUL, ids=repr)
def test_stateful_layers_go_on_where_they_stopped(case: KerasModel) -> None:
    model = randomise(case.build())
    (layer,) = [layer for layer in model.layers if getattr(layer, "stateful", False)]
    content = Converter.from_keras_model(model).convert()
    assert sum(sizes(read(content))) <= case.operators
    for runtime in runtimes(content):
        layer.reset_states()
        _check_in_turn(runtime, model)


def test_stateful_layers_over_an_open_number_of_steps_are_refused() -> None:
    inner = stack(L.Bidirectional(L.LSTM(3, stateful=True)), shape=(4, 2), batch_size=2)
    model = stack(L.TimeDistributed(inner), shape=(None, 4, 2), batch_size=2, name="x")
    with pytest.raises(ConversionError, match="steps of a stateful layer run in turn"):
        Converter.from_keras_model(model).convert()
    assert Converter.from_keras_model(model, input_shapes={"x": (2, 3, 4, 2)}).convert()


_MIXING = {
    "softmax": lambda: L.Softmax(axis=0),
    "less the mean": lambda: L.Lambda(lambda x: x - keras.ops.mean(x, axis=0, keepdims=True)),
    "less the first": lambda: L.Lambda(lambda x: x - x[:1]),
    "less the last": lambda: L.Lambda(lambda x: x - x[-1:]),
    "sums so far": lambda: L.Lambda(lambda x: keras.ops.cumsum(x, axis=0)),
    "small": lambda: L.Lambda(lambda x: 1e-6 * (x - x[:1])),
}


@pytest.mark.parametrize("layer", _MIXING.values(), ids=_MIXING)
def test_layers_that_mix_rows_over_an_open_number_of_steps_are_refused(layer: Any) -> None:
    model = stack(L.TimeDistributed(layer()), shape=(None, 7), name="x")
    with pytest.raises(
        ConversionError, match="mixes the rows of a batch, or draws at random; give the number of steps"
    ):
        Converter.from_keras_model(model).convert()
    x = np.random.default_rng(0).standard_normal((2, 3, 7)).astype(np.float32)
    content = Converter.from_keras_model(model, input_shapes={"x": (2, 3, 7)}).convert()
    assert_computes(content, [[x]], [[np.asarray(model(x))]])


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_integers_whose_rows_a_layer_mixes(dtype: str) -> None:
    layer = L.Lambda(lambda x: keras.ops.cast(x, "float32") - keras.ops.cast(x[:1], "float32"))
    model = stack(L.TimeDistributed(layer), shape=(None, 7), name="x", dtype=dtype)
    with pytest.raises(ConversionError, match="mixes the rows"):
        Converter.from_keras_model(model).convert()


class _Noisy(L.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.seeds = keras.random.SeedGenerator(3)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape

    def call(self, x: Any) -> Any:
        return x + keras.random.normal(keras.ops.shape(x), seed=self.seeds)


def test_trying_a_layer_leaves_its_random_state() -> None:
    layer = _Noisy()
    model = stack(L.TimeDistributed(layer), shape=(None, 7), name="x")
    before = np.asarray(layer.seeds.state)
    with pytest.raises(ConversionError, match="draws at random"):
        Converter.from_keras_model(model).convert()
    assert (np.asarray(layer.seeds.state) == before).all()


def test_a_layer_too_large_to_be_tried() -> None:
    model = stack(L.TimeDistributed(stack(L.Conv1D(2, 40), shape=(None, 3))), shape=(None, None, 3), name="x")
    with pytest.raises(ConversionError, match="could not be tried on 4 rows, open dimensions 32; give input_shapes"):
        Converter.from_keras_model(model).convert()


@keras.saving.register_keras_serializable("litecl")
class _AllSteps(L.Layer):  # type: ignore[misc]
    """Applies a layer to every step at once, by ``tf.vectorized_map``."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def build(self, shape: Any) -> None:
        self.layer.build((shape[0], *shape[2:]))

    def compute_output_shape(self, shape: Any) -> Any:
        return (*shape[:2], self.layer.units)

    def call(self, x: Any) -> Any:
        steps = tf.transpose(x, (1, 0, 2, 3))
        rows = tf.vectorized_map(lambda i: self.layer.call(steps[i]), tf.range(tf.shape(steps)[0]))
        return tf.ensure_shape(tf.transpose(rows, (1, 0, 2)), self.compute_output_shape(x.shape))


@pytest.mark.parametrize("options", [{}, {"go_backwards": True}, {"activation": "relu"}], ids=repr)
def test_an_lstm_that_vectorized_map_rewrites(options: dict[str, Any]) -> None:
    model = randomise(stack(_AllSteps(L.LSTM(4, **options)), shape=(None, 6, 3)))
    x = np.random.default_rng(0).standard_normal((3, 5, 6, 3)).astype(np.float32)
    assert_computes(Converter.from_keras_model(model).convert(), [[x]], [[np.asarray(model(x))]])


def _check_in_turn(runtime: Any, model: Any) -> None:
    for seed in range(3):
        values = feeds(model, 1, seed)
        assert_all_close(invoke(runtime, values), [np.asarray(model(*values, training=False))])


@pytest.mark.parametrize("case", FUSED, ids=repr)
def test_fused_layer(case: KerasModel, tmp_path: Path) -> None:
    model = randomise(case.build())
    model.export(tmp_path, verbose=False)
    for converter in (Converter.from_keras_model(model), Converter.from_saved_model(tmp_path)):
        content = converter.convert()
        assert "WHILE" not in converter.report.operators
        assert all(fusion.made for fusion in converter.report.fusions) and converter.report.fusions
        assert sum(converter.report.subgraphs) <= case.operators + 5 * (case.batches == (1,))
        _check(content, model, case.batches)
        _check_that_litert_resets(content, model)


def _check_that_litert_resets(content: bytes, model: Any) -> None:
    """``reset_all_variables`` raises where LiteRT learns the shape of a state only as it runs."""
    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_REF):
        interpreter = LiteRT(model_content=content, experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
        interpreter.reset_all_variables()
        (values,) = feeds(model, 1)
        assert_all_close(invoke(interpreter, [values]), [np.asarray(model(values, training=False))])
        interpreter.reset_all_variables()


def test_loops_on_request(tmp_path: Path) -> None:
    model = randomise(stack(L.Bidirectional(L.LSTM(4)), L.RepeatVector(3), L.SimpleRNN(3), shape=(6, 3)))
    model.export(tmp_path, verbose=False)
    for converter in (
        Converter.from_keras_model(model, lstm="while"),
        Converter.from_saved_model(tmp_path, lstm="while"),
    ):
        content = converter.convert()
        assert converter.report.operators["WHILE"] == 3
        assert not converter.report.fusions
        _check(content, model, (1, 2))
    with pytest.raises(ConversionError, match="lstm: expected one of"):
        Converter.from_keras_model(model, lstm="unrolled")  # type: ignore[arg-type]


@pytest.mark.parametrize(("make", "kind"), [(L.GRU, "GRU"), (L.SimpleRNN, "RNN")])
def test_layers_that_keras_unrolls_are_rolled_up(make: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litecl.converter.unrolled.gru.LEAST", 0)
    model = randomise(keras.Sequential([keras.Input((6, 3), batch_size=2), make(5, unroll=True)]))
    for lstm, expected in (("fused", [f"unrolled {kind}"]), ("while", [])):
        converter = Converter.from_keras_model(model, lstm=lstm)
        content = converter.convert()
        assert [fusion.name for fusion in converter.report.fusions] == expected
        _check(content, model, (2,))


_MAPPED = {
    "lstm": lambda: L.LSTM(3),
    "lstm sequence": lambda: L.LSTM(3, return_sequences=True),
    "gru sequence": lambda: L.GRU(3, return_sequences=True),
    "simple": lambda: L.SimpleRNN(3, return_sequences=True),
    "bidirectional": lambda: L.Bidirectional(L.LSTM(3, return_sequences=True)),
}


@pytest.mark.parametrize("shape", [(3, None, 6, 4), (3, 2, None, 4)], ids=["open batch", "open steps"])
@pytest.mark.parametrize("make", _MAPPED.values(), ids=_MAPPED)
def test_layers_mapped_over_sequences_of_open_sizes(make: Any, shape: tuple[int | None, ...]) -> None:
    layer = make()
    layer.build((None, None, 4))

    def function(x: Any) -> Any:
        return tf.map_fn(layer, x)

    content = converter_of(function, tf.TensorSpec(shape), keep=layer).convert()
    random = np.random.default_rng(5)
    fed = [[random.standard_normal([size or open_ for size in shape]).astype(np.float32)] for open_ in (2, 5)]
    assert_computes(content, fed, [[np.asarray(function(tf.constant(x)))] for (x,) in fed])


@pytest.mark.parametrize("turns", [1, 2])
def test_arrays_of_rows_that_an_inner_loop_resizes_are_refused(turns: int) -> None:
    """An inner array has another length than was reserved, which is known only once a row is made."""

    def row(x: Any) -> Any:
        made = tf.TensorArray(tf.float32, tf.shape(x)[0], dynamic_size=True, element_shape=(4,))
        body = lambda i, made: (i + 1, made.write(i, x[i // turns]))  # noqa: E731
        return tf.while_loop(lambda i, _: i < turns * tf.shape(x)[0], body, [0, made])[1].stack()

    converter = converter_of(lambda x: tf.map_fn(row, x), tf.TensorSpec((3, None, 4)))
    with pytest.raises(ConversionError, match="size of its elements is known only once one is written"):
        converter.convert()
