"""Small Keras models with random weights, one for each rule of the converter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from litecl.interpreter.graph import Array
from support.tf_functions import spread_filters

L = keras.layers


@dataclass(frozen=True)
class KerasModel:
    """A model to build.

    operators: how many operators its conversion may have.
    batches: the sizes of batch that it is run with, one conversion for all of them.
    reference: of the model, one of the same results, where TensorFlow computes the model with oneDNN only.
    """

    name: str
    build: Callable[[], Any]
    operators: int
    batches: tuple[int, ...] = (1, 3)
    reference: Callable[[Any], Any] = lambda model: model

    def __repr__(self) -> str:
        return self.name


def stack(*layers: Any, shape: Sequence[int | None] = (8, 8, 3), **inputs: Any) -> Any:
    """The layers one after the other."""
    x = first = keras.Input(shape, **inputs)
    for layer in layers:
        x = layer(x)
    return keras.Model(first, x)


def _undilated(model: Any) -> Any:
    """Return a transposed convolution with zeros in its filters in place of dilation."""
    filters, bias = model.get_weights()
    filters = np.asarray(spread_filters(filters, 2))
    plain = stack(L.Conv2DTranspose(4, filters.shape[0]))
    plain.set_weights([filters, bias])
    return plain


def randomise(model: Any, seed: int = 1) -> Any:
    """Give a model weights that distinguish all channels, and statistics that aren't neutral."""
    random = np.random.default_rng(seed)
    for weight in model.weights:
        if not str(weight.dtype).startswith("float"):
            continue
        name, shape = weight.path.split("/")[-1], weight.shape
        if name in ("moving_variance", "gamma"):
            value = random.uniform(0.5, 1.5, shape)
        elif name in ("moving_mean", "beta", "bias"):
            value = random.normal(0.0, 0.3, shape)
        else:
            value = random.normal(0.0, 1 / np.sqrt(max(1, np.prod(shape[:-1]))), shape)
        weight.assign(value.astype(np.float32))
    return model


def feeds(model: Any, batch: int, seed: int = 0, length: int = 5) -> list[Array]:
    """Inputs for a model; dimensions other than the batch that are open get ``length``."""
    random = np.random.default_rng(seed)
    shapes = [[batch if i == 0 and d is None else d or length for i, d in enumerate(x.shape)] for x in model.inputs]
    return [
        random.integers(0, 9, shape).astype(x.dtype)
        if "int" in x.dtype
        else random.standard_normal(shape).astype(np.float32)
        for x, shape in zip(model.inputs, shapes, strict=True)
    ]


def outputs(model: Any, values: Sequence[Array]) -> list[Array]:
    """Return Keras' outputs, in the model's order."""
    structure = keras.tree.pack_sequence_as(model.input, [keras.ops.convert_to_tensor(value) for value in values])
    return [np.asarray(y) for y in keras.tree.flatten(model(structure, training=False))]


def _sequence(*layers: Any) -> Callable[[], Any]:
    return lambda: stack(*layers, shape=(6, 3))


def _vector(activation: Any) -> Callable[[], Any]:
    return lambda: stack(L.Dense(4, activation=activation), shape=(5,))


def _attention(length: int | None = 5, **options: Any) -> Any:
    x = keras.Input((length, 8))
    return keras.Model(x, L.MultiHeadAttention(2, 4)(x, x, **options))


def _residual() -> Any:
    x = keras.Input((8, 8, 3))
    a, b = L.Conv2D(4, 1)(x), L.Conv2D(4, 3, padding="same")(x)
    merges = (L.Add(), L.Subtract(), L.Multiply(), L.Maximum(), L.Average(), L.Concatenate())
    return keras.Model(x, [merge([a, b]) for merge in merges])


def _two_inputs() -> Any:
    a, b = keras.Input((6,), name="a"), keras.Input((4,), name="b")
    return keras.Model({"b": b, "a": a}, {"sum": L.Dense(3)(a) + L.Dense(3)(b), "a": L.Dense(2)(a)})


def _steps_of_images() -> Any:
    layers = (L.Conv2D(2, 3), L.GlobalAveragePooling2D(), L.Dense(4))
    return stack(*map(L.TimeDistributed, layers), shape=(None, 4, 5, 2))


def _encoder_decoder() -> Any:
    x, y = keras.Input((6, 3)), keras.Input((5, 3))
    _, h, c = L.LSTM(4, return_state=True)(x)
    return keras.Model([x, y], L.LSTM(4, return_sequences=True)(y, initial_state=[h, c]))


def _given_state() -> Any:
    x, h, c = keras.Input((6, 3)), keras.Input((4,)), keras.Input((4,))
    return keras.Model([x, h, c], [*L.LSTM(4, return_sequences=True, return_state=True)(x, initial_state=[h, c]), h])


FEED_FORWARD = (
    KerasModel("dense gelu", _vector("gelu"), 2),
    KerasModel("dense gelu by tanh", _vector(lambda x: keras.activations.gelu(x, approximate=True)), 2),
    KerasModel("dense silu", _vector("silu"), 3),
    KerasModel("dense hard_sigmoid", _vector("hard_sigmoid"), 2),
    KerasModel("dense hard_silu", _vector("hard_silu"), 2),
    KerasModel("dense mish", _vector("mish"), 8),
    KerasModel("dense softplus", _vector("softplus"), 11),
    KerasModel("dense softsign", _vector("softsign"), 4),
    KerasModel("dense selu", _vector("selu"), 4),
    KerasModel("dense elu", _vector("elu"), 2),
    KerasModel("dense relu6", _vector("relu6"), 1),
    KerasModel("dense leaky_relu", _vector("leaky_relu"), 2),
    KerasModel("dense tanh", _vector("tanh"), 2),
    KerasModel("dense exponential", _vector("exponential"), 2),
    KerasModel("dense log_softmax", _vector("log_softmax"), 2),
    KerasModel("dense celu", _vector("celu"), 6),
    KerasModel("dense glu", _vector("glu"), 4),
    KerasModel("dense on rank 3", lambda: stack(L.Dense(4, activation="relu"), shape=(5, 6)), 1),
    KerasModel("dense on rank 4", lambda: stack(L.Dense(4), shape=(5, 6, 3)), 1),
    KerasModel("dense on unknown length", lambda: stack(L.Dense(3), shape=(None, 5)), 1),
    KerasModel("flatten", lambda: stack(L.Flatten(), L.Dense(3, activation="softmax")), 3),
    KerasModel("softmax along axis 1", lambda: stack(L.Softmax(axis=1), shape=(5, 4)), 3),
    KerasModel("conv bn relu6", lambda: stack(L.Conv2D(4, 3), L.BatchNormalization(), L.ReLU(6.0)), 1),
    KerasModel("conv without bias", lambda: stack(L.Conv2D(4, 3, strides=2, padding="same", use_bias=False)), 1),
    KerasModel(
        "dilated conv bn", lambda: stack(L.Conv2D(4, 3, dilation_rate=2, padding="same"), L.BatchNormalization()), 1
    ),
    KerasModel("dilated valid conv", lambda: stack(L.Conv2D(4, 3, dilation_rate=(2, 3))), 1),
    KerasModel(
        "dilated depthwise", lambda: stack(L.DepthwiseConv2D(3, dilation_rate=2, padding="same", depth_multiplier=2)), 1
    ),
    KerasModel(
        "dilated causal conv 1d", lambda: stack(L.Conv1D(4, 3, dilation_rate=2, padding="causal"), shape=(9, 3)), 4
    ),
    KerasModel("grouped conv", lambda: stack(L.Conv2D(6, 3, groups=3), L.BatchNormalization(), L.ReLU()), 1),
    KerasModel(
        "separable", lambda: stack(L.SeparableConv2D(4, 3, padding="same"), L.BatchNormalization(), L.ReLU()), 2
    ),
    KerasModel("transposed conv", lambda: stack(L.Conv2DTranspose(4, 3, strides=2, padding="same")), 5),
    KerasModel(
        "dilated transposed conv", lambda: stack(L.Conv2DTranspose(4, 3, dilation_rate=2)), 5, reference=_undilated
    ),
    KerasModel("conv 3d", lambda: stack(L.Conv3D(2, 2, activation="relu"), shape=(4, 4, 4, 2)), 1),
    KerasModel("conv 3d of groups", lambda: stack(L.Conv3D(6, 2, groups=3, activation="relu"), shape=(4, 4, 4, 6)), 6),
    KerasModel(
        "conv 1d",
        lambda: stack(L.Conv1D(4, 3, activation="relu"), L.MaxPooling1D(), L.GlobalMaxPooling1D(), shape=(8, 3)),
        6,
    ),
    KerasModel("padded conv", lambda: stack(L.ZeroPadding2D(1), L.Conv2D(4, 3), L.Cropping2D(1)), 2),
    KerasModel("padding kept", lambda: stack(L.ZeroPadding2D(3), L.Conv2D(4, 3, strides=2)), 2),
    KerasModel("batch norm alone", lambda: stack(L.BatchNormalization()), 2),
    KerasModel("layer norm", lambda: stack(L.LayerNormalization(), shape=(5, 6)), 10),
    KerasModel("group norm", lambda: stack(L.GroupNormalization(3)), 12),
    KerasModel("rms norm", lambda: stack(L.RMSNormalization(), shape=(5, 6)), 6),
    KerasModel("unit norm", lambda: stack(L.UnitNormalization(), shape=(5,)), 5),
    KerasModel("attention", lambda: _attention(), 16),
    KerasModel("causal attention", lambda: _attention(use_causal_mask=True), 20),
    KerasModel("attention of any length", lambda: _attention(length=None), 22),
    KerasModel("einsum dense", lambda: stack(L.EinsumDense("abc,cd->abd", (None, 7), bias_axes="d"), shape=(4, 5)), 1),
    KerasModel(
        "embedding", lambda: stack(L.Embedding(10, 4), L.GlobalAveragePooling1D(), shape=(5,), dtype="int32"), 5
    ),
    KerasModel("upsample nearest", lambda: stack(L.UpSampling2D((2, 3))), 1),
    KerasModel("upsample bilinear", lambda: stack(L.UpSampling2D(2, interpolation="bilinear")), 1),
    KerasModel("resize and rescale", lambda: stack(L.Resizing(4, 4), L.Rescaling(1 / 255.0)), 2),
    KerasModel(
        "pools", lambda: stack(L.MaxPooling2D(), L.AveragePooling2D(2, padding="same"), L.GlobalMaxPooling2D()), 3
    ),
    KerasModel("prelu", lambda: stack(L.LeakyReLU(), L.PReLU(), L.PReLU(shared_axes=[1, 2])), 3),
    KerasModel("relu with threshold", lambda: stack(L.ReLU(4.0, 0.1, 0.2)), 7),
    KerasModel("permute and reshape", lambda: stack(L.Permute((3, 1, 2)), L.Reshape((-1, 4)), L.Dense(2)), 4),
    KerasModel("merges", _residual, 8),
    KerasModel("two inputs by name", _two_inputs, 4),
    KerasModel("dropout", lambda: stack(L.Dropout(0.4), L.GaussianNoise(0.1), L.Dense(2), shape=(5,)), 1),
    KerasModel(
        "image of any size", lambda: stack(L.Conv2D(3, 3), L.GlobalAveragePooling2D(), shape=(None, None, 2)), 2
    ),
    KerasModel("time distributed", lambda: stack(L.TimeDistributed(L.Dense(3)), shape=(5, 6)), 13),
    KerasModel("time distributed over any length", _steps_of_images, 23),
    KerasModel("unrolled rnn", lambda: stack(L.SimpleRNN(4, unroll=True), shape=(3, 5)), 18),
    KerasModel("unrolled gru", lambda: stack(L.GRU(4, unroll=True), shape=(3, 5)), 57),
)

# A batch that is not fixed costs SHAPE, STRIDED_SLICE and PACK, from which the two FILLs of the state are sized.
LSTMS = (
    KerasModel("lstm", _sequence(L.LSTM(4)), 7),
    KerasModel("lstm sequence", _sequence(L.LSTM(4, return_sequences=True)), 6),
    KerasModel("lstm of one batch", lambda: stack(L.LSTM(4), shape=(6, 3), batch_size=1), 4, (1,)),
    KerasModel("lstm backwards", _sequence(L.LSTM(4, return_sequences=True, go_backwards=True)), 7),
    KerasModel("lstm relu", _sequence(L.LSTM(4, activation="relu")), 7),
    KerasModel("lstm without bias", _sequence(L.LSTM(4, use_bias=False)), 7),
    KerasModel("lstm of any length", lambda: stack(L.LSTM(4, return_sequences=True), shape=(None, 3)), 6),
    KerasModel("lstm unrolled", _sequence(L.LSTM(4, unroll=True)), 7),
    KerasModel("two lstms", _sequence(L.LSTM(4, return_sequences=True), L.LSTM(5), L.Dense(3)), 14),
    KerasModel("bidirectional", _sequence(L.Bidirectional(L.LSTM(4))), 13),
    KerasModel("bidirectional sum", _sequence(L.Bidirectional(L.LSTM(4, return_sequences=True), merge_mode="sum")), 12),
    KerasModel("lstm state", _sequence(L.LSTM(4, return_sequences=True, return_state=True)), 9),
    KerasModel("encoder decoder", _encoder_decoder, 12),
    KerasModel("lstm from a given state", _given_state, 6),
    KerasModel(
        "embedding lstm", lambda: stack(L.Embedding(10, 4), L.LSTM(4, dropout=0.3), shape=(5,), dtype="int32"), 11
    ),
)
