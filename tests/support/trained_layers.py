"""Layers of every kind for models of quantization-aware training, surrounded by FakeQuant operators."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array

IMAGE = (2, 8, 8, 6)
ROWS = (4, 24)


class Weights:
    """Random constants, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def plain(self, *shape: int) -> Array:
        """Return weights that nothing rounds, of about unit gain."""
        return (self._rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def channels(self, *shape: int) -> Any:
        """Return weights that are rounded with a range for each channel, of the last dimension."""
        data = self.plain(*shape)
        most = 0.9 * np.abs(data).max(axis=tuple(range(data.ndim - 1)))
        return tf.quantization.fake_quant_with_min_max_vars_per_channel(data, -most, most, narrow_range=True)

    def whole(self, *shape: int) -> Any:
        """Return weights that are rounded with one range."""
        data = self.plain(*shape)
        most = 0.9 * float(np.abs(data).max())
        return tf.quantization.fake_quant_with_min_max_vars(data, -most, most, narrow_range=True)

    def vector(self, size: int, scale: float = 0.2, middle: float = 0.0) -> Array:
        """Return a bias, or factors around ``middle``."""
        return (self._rng.standard_normal(size) * scale + middle).astype(np.float32)


Layer = Callable[[Any, Weights], Any]


@dataclass(frozen=True)
class Kind:
    """A kind of layer: a function of a tensor and of weights, the tensor's shape, and the range it is rounded to."""

    layer: Layer
    shape: tuple[int, ...] = IMAGE
    low: float = -1.0
    high: float = 1.0


def _conv(activation: Callable[[Any], Any] = tf.identity) -> Layer:
    return lambda x, w: activation(tf.nn.conv2d(x, w.channels(3, 3, 6, 8), 1, "SAME") + w.vector(8))


def _dense(activation: Callable[[Any], Any] = tf.identity) -> Layer:
    return lambda x, w: activation(x @ w.whole(x.shape[-1], 16) + w.vector(16))


def _depthwise(x: Any, w: Weights) -> Any:
    return tf.nn.relu6(tf.nn.depthwise_conv2d(x, w.whole(3, 3, 6, 1), [1, 1, 1, 1], "SAME") + w.vector(6))


def _normalized(x: Any, w: Weights) -> Any:
    """Return a convolution with batch normalization and RELU."""
    y = tf.nn.conv2d(x, w.channels(3, 3, 6, 8), 1, "SAME")
    return tf.nn.relu(y * w.vector(8, middle=1.0) + w.vector(8))


def _transposed(x: Any, w: Weights) -> Any:
    y = tf.nn.conv2d_transpose(x, w.whole(3, 3, 8, 6), [2, 16, 16, 8], 2, "SAME")
    return tf.nn.relu(y + w.vector(8))


def _layer_norm(x: Any, w: Weights) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-3) * w.vector(24, middle=1.0) + w.vector(24)


def _attention(x: Any, w: Weights) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True)), x)


def _squeeze_and_excite(x: Any, w: Weights) -> Any:
    y = tf.nn.relu(tf.reduce_mean(x, [1, 2], keepdims=True) @ w.whole(6, 4))
    return x * tf.nn.sigmoid(y @ w.whole(4, 6))


def _rounded(x: Any, low: float, high: float) -> Any:
    return tf.quantization.fake_quant_with_min_max_vars(x, low, high)


def _conv_relu(x: Any, kernel: Any) -> Any:
    return tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))


def _u_net(x: Any, w: Weights) -> Any:
    """Return a level of a U-Net: down, up, and both joined, each rounded."""
    left = _rounded(_conv_relu(x, w.channels(3, 3, 6, 8)), 0.0, 1.0)
    low = _rounded(
        _conv_relu(_rounded(tf.nn.max_pool2d(left, 2, 2, "SAME"), 0.0, 0.8), w.channels(3, 3, 8, 8)), 0.0, 0.7
    )
    up = tf.nn.relu(tf.nn.conv2d_transpose(low, w.whole(2, 2, 8, 8), [2, 8, 8, 8], 2, "SAME") + w.vector(8))
    joined = _rounded(tf.concat([left, _rounded(up, 0.0, 0.6)], -1), 0.0, 0.9)
    return tf.nn.conv2d(joined, w.channels(1, 1, 16, 4), 1, "SAME")


def _efficient_net(x: Any, w: Weights) -> Any:
    """Return a block of an EfficientNet, in which each result is rounded."""
    y = _rounded(tf.nn.silu(tf.nn.conv2d(x, w.channels(1, 1, 6, 12), 1, "SAME") + w.vector(12)), -0.2, 1.0)
    y = _rounded(tf.nn.silu(tf.nn.depthwise_conv2d(y, w.whole(3, 3, 12, 1), [1, 1, 1, 1], "SAME")), -0.2, 0.9)
    gate = _rounded(tf.reduce_mean(y, [1, 2], keepdims=True), -0.1, 0.3)
    gate = _rounded(tf.nn.silu(gate @ w.whole(12, 4)), -0.1, 0.3)
    y = _rounded(y * _rounded(tf.nn.sigmoid(gate @ w.whole(4, 12)), 0.0, 1.0), -0.2, 0.5)
    return x + _rounded(tf.nn.conv2d(y, w.channels(1, 1, 12, 6), 1, "SAME"), -0.5, 0.5)


def _two_ranges(x: Any, w: Weights) -> Any:
    """Return what two readers round differently, and a third one not at all."""
    y = tf.nn.conv2d(x, w.channels(3, 3, 6, 6), 1, "SAME")
    return _rounded(y, -0.3, 0.3) + _rounded(y, -1.0, 1.0) * 0.5 + 0.1 * tf.nn.relu(y)


def _loop(x: Any, w: Weights) -> Any:
    """Return the result of a loop, which stays in float, and which rounds."""

    def body(i: Any, v: Any) -> Any:
        return i + 1, _rounded(1.7 * tf.nn.silu(v), -0.2, 0.5)

    return tf.nn.relu(tf.while_loop(lambda i, v: i < 3, body, [0, x])[1])


def _unary(function: Callable[[Any], Any], low: float = -3.0, high: float = 3.0) -> Kind:
    return Kind(lambda x, w: function(x), IMAGE, low, high)


KINDS: Mapping[str, Kind] = {
    "nothing": _unary(tf.identity),
    "relu": _unary(tf.nn.relu),
    "relu6": _unary(tf.nn.relu6, -8, 8),
    "leaky_relu": _unary(lambda x: tf.nn.leaky_relu(x, 0.1)),
    "sigmoid": _unary(tf.nn.sigmoid),
    "tanh": _unary(tf.nn.tanh),
    "swish": _unary(tf.nn.silu),
    "hard_swish": _unary(lambda x: x * tf.nn.relu6(x + 3) / 6),
    "gelu": _unary(tf.nn.gelu),
    "softplus": _unary(tf.nn.softplus),
    "softsign": _unary(tf.nn.softsign),
    "elu": _unary(tf.nn.elu),
    "selu": _unary(tf.nn.selu),
    "exp": _unary(tf.exp),
    "log": _unary(lambda x: tf.math.log(x + 0.2), 0, 4),
    "sqrt": _unary(tf.sqrt, 0, 4),
    "rsqrt": _unary(lambda x: tf.math.rsqrt(x + 0.2), 0, 4),
    "abs": _unary(tf.abs),
    "negative": _unary(tf.negative),
    "square": _unary(tf.square),
    "clip": _unary(lambda x: tf.clip_by_value(x, -0.7, 1.2)),
    "prelu": Kind(lambda x, w: tf.nn.relu(x) - w.vector(6) * tf.nn.relu(-x)),
    "softmax": Kind(lambda x, w: tf.nn.softmax(x), ROWS, -3, 3),
    "log_softmax": Kind(lambda x, w: tf.nn.log_softmax(x), ROWS, -3, 3),
    "l2_normalize": Kind(lambda x, w: tf.nn.l2_normalize(x, -1), ROWS, -3, 3),
    "conv": Kind(_conv()),
    "conv_relu": Kind(_conv(tf.nn.relu)),
    "conv_swish": Kind(_conv(tf.nn.silu)),
    "conv_sigmoid": Kind(_conv(tf.nn.sigmoid)),
    "conv_norm_relu": Kind(_normalized),
    "depthwise": Kind(_depthwise),
    "transposed_conv": Kind(_transposed),
    "dense": Kind(_dense(), ROWS),
    "dense_relu": Kind(_dense(tf.nn.relu), ROWS),
    "dense_gelu": Kind(_dense(tf.nn.gelu), ROWS),
    "dense_tanh": Kind(_dense(tf.nn.tanh), ROWS),
    "two_dense": Kind(lambda x, w: tf.nn.relu(x @ w.whole(24, 16)) @ w.whole(16, 8), ROWS),
    "layer_norm": Kind(_layer_norm, ROWS, -2, 2),
    "attention": Kind(_attention, (2, 5, 8)),
    "squeeze_and_excite": Kind(_squeeze_and_excite),
    "add_constant": Kind(lambda x, w: x + w.vector(6)),
    "multiply_constant": Kind(lambda x, w: x * w.vector(6)),
    "add": Kind(lambda x, w: x + tf.reverse(x, [2])),
    "subtract": Kind(lambda x, w: x - tf.reverse(x, [2])),
    "multiply": Kind(lambda x, w: x * tf.reverse(x, [2])),
    "divide": Kind(lambda x, w: x / (tf.abs(tf.reverse(x, [2])) + 0.5)),
    "maximum": Kind(lambda x, w: tf.maximum(x, w.vector(6))),
    "squared_difference": Kind(lambda x, w: tf.math.squared_difference(x, w.vector(6))),
    "mean": Kind(lambda x, w: tf.reduce_mean(x, [1, 2])),
    "sum": Kind(lambda x, w: tf.reduce_sum(x, [1, 2])),
    "reduce_max": Kind(lambda x, w: tf.reduce_max(x, [1, 2])),
    "cumsum": Kind(lambda x, w: tf.cumsum(x, 1)),
    "max_pool": Kind(lambda x, w: tf.nn.max_pool2d(x, 2, 2, "SAME")),
    "average_pool": Kind(lambda x, w: tf.nn.avg_pool2d(x, 2, 2, "SAME")),
    "resize_bilinear": Kind(lambda x, w: tf.image.resize(x, [13, 13])),
    "resize_nearest": Kind(lambda x, w: tf.image.resize(x, [16, 16], "nearest")),
    "reshape": Kind(lambda x, w: tf.reshape(x, [2, 16, 24])),
    "transpose": Kind(lambda x, w: tf.transpose(x, [0, 3, 1, 2])),
    "pad": Kind(lambda x, w: tf.pad(x, [[0, 0], [1, 1], [1, 2], [0, 0]])),
    "mirror_pad": Kind(lambda x, w: tf.pad(x, [[0, 0], [1, 1], [1, 2], [0, 0]], "REFLECT")),
    "concatenation": Kind(lambda x, w: tf.concat([x, tf.reverse(x, [2])], -1)),
    "split": Kind(lambda x, w: tf.split(x, 3, -1)[1]),
    "slice": Kind(lambda x, w: x[:, 1:-1, ::2]),
    "gather": Kind(lambda x, w: tf.gather(x, [4, 0, 2], axis=1)),
    "tile": Kind(lambda x, w: tf.tile(x, [1, 2, 1, 1])),
    "stack": Kind(lambda x, w: tf.stack([x, tf.reverse(x, [2])], 1)),
    "depth_to_space": Kind(lambda x, w: tf.nn.depth_to_space(tf.concat([x, x], -1), 2)),
    "space_to_depth": Kind(lambda x, w: tf.nn.space_to_depth(x, 2)),
    "u_net": Kind(_u_net),
    "efficient_net": Kind(_efficient_net),
    "two_ranges": Kind(_two_ranges),
    "loop": Kind(_loop),
    "where": Kind(lambda x, w: tf.where(x > 0.1, x, 0.5 * x)),
}


@dataclass(frozen=True)
class Trained:
    """A model of quantization-aware training: its function, inputs of which some exceed the ranges, and the step that
    its output is rounded with.
    """

    function: Any
    inputs: list[Array]
    step: float


def inputs_of(kind: Kind, count: int = 4) -> list[Array]:
    """Return inputs for a kind of layer of which about one in twenty lies outside of its range."""
    rng, middle, half = np.random.default_rng(7), (kind.low + kind.high) / 2, (kind.high - kind.low) / 2
    return [(middle + 0.5 * half * rng.standard_normal(kind.shape)).astype(np.float32) for _ in range(count)]


def trained(kind: Kind, *, bits: int = 8, narrow: bool = False, cut: float = 0.08, seed: int = 5) -> Trained:
    """Return a layer between FakeQuant operators, the last of which cuts off a part of its values at either end."""
    inputs = inputs_of(kind)

    def rounded(x: Any, low: float, high: float) -> Any:
        return tf.quantization.fake_quant_with_min_max_vars(x, low, high, bits, narrow)

    def inside(x: Any) -> Any:
        return kind.layer(rounded(x, kind.low, kind.high), Weights(seed))

    values = np.concatenate([np.asarray(inside(x)).ravel() for x in inputs])
    low, high = (float(end) for end in np.quantile(values, [cut, 1 - cut]))
    low, high = min(low, 0.0), max(high, 0.0)

    @tf.function(input_signature=[tf.TensorSpec(kind.shape)], autograph=False)  # type: ignore[untyped-decorator]
    def function(x: Any) -> Any:
        return rounded(inside(x), low, high)

    return Trained(function.get_concrete_function(), inputs, (high - low) / ((1 << bits) - 1 - narrow))
