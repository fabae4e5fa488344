"""``litecl diff`` on one network converted by TensorFlow and by litecl: other names, other numbers, the same nodes."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from litecl.converter import Converter
from litecl.diff import diff_models
from litecl.interpreter.file.reader import read


def _network() -> Any:
    """Convolutions with batch normalization, a residual, and attention over what is left."""
    layers = keras.layers
    x = inputs = keras.Input((16, 16, 3), batch_size=1, name="image")
    for filters in (8, 8):
        y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        y = layers.ReLU()(layers.BatchNormalization(moving_mean_initializer="random_normal")(y))
        x = layers.Add()([x, y]) if x.shape[-1] == filters else y
    x = layers.Reshape((64, 32))(x)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x))
    return keras.Model(inputs, layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling1D()(x)))


@pytest.fixture(scope="module")
def pair() -> tuple[bytes, bytes]:
    """What TensorFlow's converter and litecl's make of the network."""
    keras.utils.set_random_seed(3)
    network = _network()
    theirs = tf.lite.TFLiteConverter.from_keras_model(network).convert()
    return theirs, Converter.from_keras_model(network).convert()


def test_two_conversions(pair: tuple[bytes, bytes]) -> None:
    feed = np.random.default_rng(1).standard_normal((1, 16, 16, 3)).astype(np.float32)
    name = read(pair[0]).subgraphs[0].tensors[read(pair[0]).subgraphs[0].inputs[0]].name
    found = diff_models(*pair, {name: feed})
    assert found.outputs[0] < 1e-5
    apart = [(layer.op, round(layer.relative, 4)) for layer in found.layers if layer.relative > 1e-4]
    assert apart == [("MUL", 2.0)]  # TensorFlow adds the negated mean, litecl subtracts the mean
    assert [(row.ops_a, row.ops_b) for row in found.replaced] == [(("ADD",), ("SUB",))]
    assert [name.split()[0] for name in found.only_a.values()] == ["NEG"]
    assert found.only_b == {}
    assert len(found.layers) == len(read(pair[0]).subgraphs[0].nodes) - 1
