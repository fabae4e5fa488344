"""The rows of the table of conversions: what is converted, by litecl and by TensorFlow's converter, on which inputs."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from litecl.converter import Converter
from litecl.interpreter.graph import Array
from support import tf_composites, tf_v1
from support.keras_models import feeds, outputs, randomise, stack
from support.tf_control_flow import CONTROL_FLOW, Counters

L = keras.layers


@dataclass(frozen=True)
class Row:
    """Something to convert.

    ours, peers: make the two converters; without the latter the peer is not run, for the reason in ``note``.
    values, expected: inputs of invokes that follow each other, and the results of each.
    """

    name: str
    ours: Callable[[], Any]
    peers: Callable[[], Any] | None
    values: Sequence[Sequence[Array]]
    expected: Sequence[Sequence[Array]]
    note: str = ""


_LAYERS: dict[str, tuple[Callable[[], Any], ...]] = {
    "LSTM": (lambda: L.LSTM(5),),
    "LSTM sequence": (lambda: L.LSTM(5, return_sequences=True),),
    "LSTM state": (lambda: L.LSTM(5, return_state=True),),
    "LSTM backwards": (lambda: L.LSTM(5, return_sequences=True, go_backwards=True),),
    "LSTM relu": (lambda: L.LSTM(5, activation="relu"),),
    "LSTM hard sigmoid": (lambda: L.LSTM(5, recurrent_activation="hard_sigmoid"),),
    "LSTM no bias": (lambda: L.LSTM(5, use_bias=False),),
    "LSTM unrolled": (lambda: L.LSTM(5, unroll=True),),
    "LSTM masked": (L.Masking, lambda: L.LSTM(5, return_sequences=True)),
    "LSTM stateful": (lambda: L.LSTM(5, stateful=True),),
    "LSTM two layers": (lambda: L.LSTM(5, return_sequences=True), lambda: L.LSTM(4)),
    "LSTM dropout": (lambda: L.LSTM(5, dropout=0.2, recurrent_dropout=0.2),),
    "GRU": (lambda: L.GRU(5),),
    "GRU sequence": (lambda: L.GRU(5, return_sequences=True),),
    "GRU unrolled": (lambda: L.GRU(5, unroll=True),),
    "SimpleRNN": (lambda: L.SimpleRNN(5),),
    "Bidirectional LSTM": (lambda: L.Bidirectional(L.LSTM(5)),),
    "Bidirectional LSTM sequence": (lambda: L.Bidirectional(L.LSTM(5, return_sequences=True)),),
    "Bidirectional GRU": (lambda: L.Bidirectional(L.GRU(5)),),
    "cells stacked": (lambda: L.RNN([L.LSTMCell(5), L.LSTMCell(4)]),),
    "TimeDistributed Dense": (lambda: L.TimeDistributed(L.Dense(4)),),
}


def _build(name: str, batch: int | None) -> Any:
    inputs = {} if batch is None else {"batch_size": batch}
    if name == "LSTM any length":
        return stack(L.LSTM(5, return_sequences=True), shape=(None, 6), **inputs)
    if name == "LSTM embedding with mask":
        return stack(L.Embedding(10, 4, mask_zero=True), L.LSTM(5), shape=(8,), dtype="int32", **inputs)
    if name == "ConvLSTM2D":
        return stack(L.ConvLSTM2D(3, 3, padding="same"), shape=(4, 6, 6, 2), **inputs)
    return stack(*(make() for make in _LAYERS[name]), shape=(8, 6), **inputs)


def keras_rows(model: Any, name: str, batches: Sequence[int], *, export: bool = True) -> Iterator[Row]:
    """A model, and its export."""
    _reset(model)
    values = [feeds(model, batch, seed) for seed, batch in enumerate(batches)]
    expected = [outputs(model, v) for v in values]
    _reset(model)
    yield Row(
        f"{name}, model",
        lambda: Converter.from_keras_model(model),
        lambda: tf.lite.TFLiteConverter.from_keras_model(model),
        values,
        expected,
    )
    if not export:
        return
    path = Path(tempfile.mkdtemp())
    try:
        model.export(path, verbose=False)
    except Exception:  # Keras refuses to export a stateful layer
        return
    yield Row(
        f"{name}, export",
        lambda: Converter.from_saved_model(path),
        lambda: tf.lite.TFLiteConverter.from_saved_model(str(path)),
        values,
        expected,
    )


def _reset(model: Any) -> None:
    for layer in model.layers:
        if getattr(layer, "stateful", False):
            layer.reset_states()


def recurrent() -> Iterator[Row]:
    """Recurrent layers of Keras 3."""
    for batch in (1, None):
        for name in (*_LAYERS, "LSTM any length", "LSTM embedding with mask", "ConvLSTM2D"):
            if name == "LSTM stateful" and batch is None:
                continue
            model = randomise(_build(name, batch))
            yield from keras_rows(model, f"{name}, batch {batch}", (1, 1) if batch == 1 else (2, 1))


def _concrete(name: str, concrete: Any, values: Sequence[Sequence[Array]], note: str = "", keep: Any = None) -> Row:
    expected = [[np.asarray(y) for y in tf.nest.flatten(concrete(*map(tf.constant, v)))] for v in values]
    ours = lambda: Converter.from_concrete_functions([concrete], keep)  # noqa: E731
    peer = lambda: tf.lite.TFLiteConverter.from_concrete_functions([concrete], keep or tf.Module())  # noqa: E731
    return Row(name, ours, None if note else peer, values, expected, note)


def control_flow() -> Iterator[Row]:
    """Control flow of TensorFlow 2."""
    for case in CONTROL_FLOW:
        concrete = tf.function(case.function, autograph=case.autograph).get_concrete_function(*case.specs)
        yield _concrete(case.name, concrete, [case.feeds(seed) for seed in (0, 1)])


def variables() -> Iterator[Row]:
    """Variables that change."""
    for name in ("straight", "in_branch", "in_loop"):
        path = Path(tempfile.mkdtemp())
        module, fresh = Counters(), Counters()
        tf.saved_model.save(module, path, signatures=getattr(module, name))
        random = np.random.default_rng(0)
        values = [[random.standard_normal((1, 4)).astype(np.float32)] for _ in range(3)]
        expected = [[np.asarray(y) for y in tf.nest.flatten(getattr(fresh, name)(v[0]))] for v in values]
        yield Row(
            f"variable {name}",
            lambda path=path: Converter.from_saved_model(path),
            lambda path=path: tf.lite.TFLiteConverter.from_saved_model(str(path)),
            values,
            expected,
        )


def tensorflow_1() -> Iterator[Row]:
    """Control flow and variables of TensorFlow 1."""
    v1 = tf.compat.v1
    for build, shape in tf_v1.GRAPHS:
        path = Path(tempfile.mkdtemp()) / "graph.pb"
        with tf_v1.old_control_flow() as graph, v1.Session() as session:
            x = v1.placeholder(tf.float32, shape, "x")
            y = tf.identity(build(x), "y")
            values = [[value] for value in tf_v1.feeds(shape)]
            expected = [[session.run(y, {x: value})] for (value,) in values]
            path.write_bytes(graph.as_graph_def().SerializeToString())
        yield Row(
            f"v1 {build.__name__} {shape}",
            lambda p=path: Converter.from_frozen_graph(p, ["x"], ["y"]),
            lambda p=path: v1.lite.TFLiteConverter.from_frozen_graph(str(p), ["x"], ["y"]),
            values,
            expected,
        )
    for build in (tf_v1.read_in_loop, tf_v1.counter, tf_v1.written_in_branch):
        for use_resource in (False, True):
            path = Path(tempfile.mkdtemp()) / "model"
            with tf_v1.old_control_flow(), v1.Session() as session:
                x = v1.placeholder(tf.float32, (3, 4), "x")
                y = tf.identity(build(x, use_resource), "y")
                session.run(v1.global_variables_initializer())
                v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": y})
                values = [[value] for value in tf_v1.feeds((3, 4))]
                expected = [[session.run(y, {x: value})] for (value,) in values]
            kind = "resource" if use_resource else "ref"
            yield Row(
                f"v1 SavedModel {build.__name__} {kind}",
                lambda p=path: Converter.from_saved_model(p),
                lambda p=path: tf.lite.TFLiteConverter.from_saved_model(str(p)),
                values,
                expected,
            )


def composites() -> Iterator[Row]:
    """Composites."""
    random = np.random.default_rng(0)
    ids = [[random.integers(0, 10, 5).astype(np.int32)]]
    for name in ("embedding_matmul", "embedding_lookup"):
        function = tf.function(tf_composites.lookup(name), autograph=False)
        yield _concrete(name, function.get_concrete_function(tf.TensorSpec((5,), tf.int32)), ids)
    x = [[random.standard_normal((2, 3)).astype(np.float32)]]
    for name in ("LSTMCellSimple", "LSTMCellSimple,CoupleInputForgetGates", "LayerNormalizedLstmCellSimple"):
        for projected in (False, True):
            function = tf.function(tf_composites.cell(name, projected, "Layer" in name), autograph=False)
            yield _concrete(
                f"{name}{' projected' if projected else ''}",
                function.get_concrete_function(tf.TensorSpec((2, 3))),
                x,
                note="ends the process",
            )
