"""Keras models, from a file or made up. Keras is an optional dependency, imported only when it is needed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array


def load(path: Path) -> Any:
    """Return the model in a .keras or .h5 file. Raises ConversionError for a file that Keras does not load."""
    import keras

    try:
        return keras.models.load_model(path, compile=False)
    except (ValueError, TypeError) as error:
        raise ConversionError(f"{path}: Keras does not load it: {error}") from error


def spectrogram_classifier(shape: Sequence[int], rng: np.random.Generator) -> Any:
    """Convolutions with residuals, then two LSTMs over time; random weights everywhere.

    shape: of the input ``spectrogram``: batch, time, frequency, channel; time and frequency are multiples of 4.
    """
    from keras import Model, layers

    batch, time, frequency, _ = shape
    x = inputs = layers.Input(shape[1:], batch_size=batch, name="spectrogram")
    x = _convolution(layers, x, filters=16, strides=2)
    x = _residual(layers, x)
    x = _convolution(layers, x, filters=32, strides=2)
    x = _residual(layers, x)
    x = layers.Reshape((time // 4, frequency // 4 * 32))(x)
    x = layers.LSTM(64, return_sequences=True)(x)
    x = layers.LSTM(64)(x)
    model = Model(inputs, layers.Dense(12, activation="softmax", name="classes")(x))
    model.set_weights([_weights(rng, variable) for variable in model.weights])
    return model


def _convolution(layers: Any, x: Any, filters: int, strides: int) -> Any:
    x = layers.Conv2D(filters, 3, strides, padding="same", use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization()(x))


def _residual(layers: Any, x: Any) -> Any:
    y = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    y = layers.Conv2D(x.shape[-1], 1, use_bias=False)(y)
    return layers.ReLU()(layers.Add()([x, layers.BatchNormalization()(y)]))


def _weights(rng: np.random.Generator, variable: Any) -> Array:
    """Random values that keep activations of order one, so that a wrong kernel shows."""
    shape = tuple(variable.shape)
    if variable.name in ("gamma", "moving_variance"):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    depthwise = len(shape) == 4 and shape[-1] == 1
    fan_in = 25 if len(shape) == 1 else np.prod(shape[:2] if depthwise else shape[:-1])
    values: Array = rng.standard_normal(shape) * np.sqrt(2 / fan_in)
    return values.astype(np.float32)
