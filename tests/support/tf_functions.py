"""TensorFlow functions that between them use every operator that the converter has a rule for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array


@dataclass(frozen=True)
class TfFunction:
    """A function and the shapes of its float32 arguments; None in a shape is left open and fed as 3.

    low, high: the range of the arguments' elements.
    autograph: whether its Python loops and branches are to become TensorFlow's.
    reference: the same by other operators, where TensorFlow has kernels for those of ``function`` with oneDNN only.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int | None, ...], ...]
    low: float = -2.0
    high: float = 2.0
    autograph: bool = False
    reference: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return self.name

    @property
    def specs(self) -> list[Any]:
        """Return what the function is traced with."""
        return [tf.TensorSpec(shape, tf.float32, name=f"x{i}") for i, shape in enumerate(self.shapes)]

    def feeds(self, seed: int = 0) -> list[Array]:
        """Arguments."""
        random = np.random.default_rng(seed)
        return [
            random.uniform(self.low, self.high, [3 if d is None else d for d in shape]).astype(np.float32)
            for shape in self.shapes
        ]


def spread_filters(w: Any, dilation: int) -> Any:
    """Return filters with zeros between their elements: a plain convolution with them is a dilated one."""
    height, width, *channels = w.shape
    gap = [0, dilation - 1]
    spread = tf.pad(w[:, None, :, None], [[0, 0], gap, [0, 0], gap, [0, 0], [0, 0]])
    spread = tf.reshape(spread, [height * dilation, width * dilation, *channels])
    return spread[: (height - 1) * dilation + 1, : (width - 1) * dilation + 1]


def _int(x: Any, below: int) -> Any:
    """Integers from 0 up to ``below``, made of floats."""
    return tf.cast(tf.abs(x) * 100, tf.int32) % below


_random = np.random.default_rng(5)


def _weights(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _batch_norm(x: Any) -> Any:
    scale, offset, mean, variance = _weights(3), _weights(3), _weights(3), np.abs(_weights(3)) + 0.5
    return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0]


def _batch_norm_of(x: Any, y: Any) -> Any:
    return tf.compat.v1.nn.fused_batch_norm(x, y, y, y, tf.abs(y), epsilon=0.01, is_training=False)


def _batch_norm_in_training(x: Any, y: Any) -> Any:
    return tf.compat.v1.nn.fused_batch_norm(x, y, y, epsilon=0.01, is_training=True)


def _keras_2_layer_norm(x: Any) -> Any:
    rows = tf.shape(x)[0]
    image, ones = tf.reshape(x, [1, rows, 6, 1]), tf.ones([rows])
    result = tf.raw_ops.FusedBatchNormV3(
        x=image, scale=ones, offset=tf.zeros([rows]), mean=[], variance=[], data_format="NCHW"
    )
    return tf.reshape(result.y, tf.shape(x)) * _weights(6)


def _full(number: float) -> Array:
    return np.full((3, 6), number, np.float32)


_VECTOR = ((None, 6),)
_ROW = ((1, 6),)
_PAIR = ((None, 6), (None, 6))
_IMAGE = ((None, 6, 6, 3),)

FUNCTIONS = (
    *(
        TfFunction(function.__name__, function, _VECTOR)
        for function in (
            tf.abs,
            tf.negative,
            tf.sign,
            tf.square,
            tf.exp,
            tf.sin,
            tf.cos,
            tf.tan,
            tf.math.ceil,
            tf.floor,
            tf.sigmoid,
            tf.tanh,
            tf.math.erf,
            tf.math.erfc,
            tf.math.expm1,
            tf.nn.softsign,
            tf.nn.softplus,
            tf.nn.selu,
            tf.nn.elu,
            tf.nn.relu,
            tf.nn.relu6,
            tf.nn.leaky_relu,
            tf.nn.softmax,
            tf.nn.log_softmax,
            tf.ones_like,
            tf.zeros_like,
            tf.shape,
            tf.size,
            tf.rank,
            tf.math.is_nan,
            tf.nn.gelu,
            tf.nn.swish,
        )
    ),
    *(
        TfFunction(function.__name__, function, _VECTOR, 0.1, 3.0)
        for function in (tf.sqrt, tf.math.rsqrt, tf.math.log, tf.math.log1p, tf.math.reciprocal)
    ),
    *(
        TfFunction(function.__name__, function, _PAIR)
        for function in (
            tf.add,
            tf.subtract,
            tf.multiply,
            tf.divide,
            tf.maximum,
            tf.minimum,
            tf.math.squared_difference,
            tf.math.floordiv,
            tf.math.floormod,
            tf.math.divide_no_nan,
            tf.math.atan2,
            tf.equal,
            tf.not_equal,
            tf.greater,
            tf.greater_equal,
            tf.less,
            tf.less_equal,
        )
    ),
    TfFunction("pow", tf.pow, _PAIR, 0.1, 2.0),
    TfFunction("logic", lambda x, y: tf.logical_or(tf.logical_and(x > 0, y > 0), tf.logical_not(x > y)), _PAIR),
    TfFunction("xor", lambda x, y: tf.math.logical_xor(x > 0, y > 0), _PAIR),
    TfFunction("where", lambda x, y: tf.where(x > y, x, y * 2), _PAIR),
    TfFunction("where broadcasts", lambda x: tf.where(x[:, :1] > 0, x, 0.0), _VECTOR),
    TfFunction("indices", lambda x: tf.where(x > 0), _VECTOR),
    TfFunction("relu that broadcasts", lambda x: tf.maximum(x, _full(0)), _ROW),
    TfFunction("relu6 that broadcasts", lambda x: tf.minimum(tf.nn.relu(x * 4), _full(6)), _ROW),
    TfFunction("gelu that broadcasts", lambda x: 0.5 * x * (_full(1) + tf.math.erf(x * np.float32(0.5**0.5))), _ROW),
    TfFunction("hard swish that broadcasts", lambda x: x * tf.nn.relu6(x + _full(3)) / 6, _ROW),
    TfFunction("prelu that broadcasts", lambda x: tf.nn.relu(x) + _full(0.3) * tf.nn.relu(-x), _ROW),
    TfFunction("clip", lambda x: tf.clip_by_value(x, -0.5, 1.5), _VECTOR),
    TfFunction("add_n", lambda x, y: tf.add_n([x, y, x * y]), _PAIR),
    TfFunction("divide by a constant", lambda x: x / np.float32([1, 2, 3, 4, 5, 6]), _VECTOR),
    TfFunction("constant less", lambda x: 3.0 - x, _VECTOR),
    TfFunction("casts", lambda x: tf.cast(tf.cast(x, tf.int32), tf.int64) * 2, _VECTOR),
    *(
        TfFunction(f"{function.__name__} {keep}", lambda x, f=function, k=keep: f(x, axis=[1, -1], keepdims=k), _IMAGE)
        for function in (tf.reduce_mean, tf.reduce_sum, tf.reduce_max, tf.reduce_min, tf.reduce_prod)
        for keep in (False, True)
    ),
    TfFunction("any and all", lambda x: (tf.reduce_any(x > 1, 1), tf.reduce_all(x > -1, 1)), _VECTOR),
    TfFunction("arg max and min", lambda x: (tf.argmax(x, 1), tf.argmin(x, 1, tf.int32)), _VECTOR),
    TfFunction("cumsum", lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), _VECTOR),
    TfFunction("top k", lambda x: tf.math.top_k(x, 2), _VECTOR),
    TfFunction("one hot", lambda x: tf.one_hot(_int(x, 4), 5, 2.0, -1.0), _VECTOR),
    TfFunction("gather", lambda x, y: tf.gather(x, _int(y, 6), axis=1), ((None, 6), (4,))),
    TfFunction("gather in batches", lambda x, y: tf.gather(x, _int(y, 6), batch_dims=1), ((3, 6), (3, 2))),
    TfFunction("gather_nd", lambda x: tf.gather_nd(x, [[0, 1], [2, 3]]), _VECTOR),
    TfFunction("scatter_nd", lambda x: tf.scatter_nd([[1], [3], [4]], x, [6, 6]), ((3, 6),)),
    TfFunction("reverse", lambda x: tf.reverse(x, [1, 2]), _IMAGE),
    TfFunction("reverse sequence", lambda x: tf.reverse_sequence(x, [1, 6, 4], seq_axis=1), ((3, 6, 2),)),
    TfFunction("pad", lambda x: tf.pad(x, [[0, 0], [1, 2]]), _VECTOR),
    TfFunction("pad with a value", lambda x: tf.pad(x, [[0, 0], [1, 2]], constant_values=3.0), _VECTOR),
    TfFunction("pad reflecting", lambda x: tf.pad(x, [[0, 0], [2, 1]], "REFLECT"), _VECTOR),
    TfFunction("pad symmetric", lambda x: tf.pad(x, [[0, 0], [2, 1]], "SYMMETRIC"), _VECTOR),
    TfFunction("concat and split", lambda x: tf.concat(tf.split(x, 3, 1)[::-1], 1), _VECTOR),
    TfFunction("uneven split", lambda x: tf.split(x, [1, 3, 2], 1), _VECTOR),
    TfFunction("stack and unstack", lambda x: tf.stack(tf.unstack(x, axis=1)[::2], 0), _VECTOR),
    TfFunction("slice", lambda x: tf.slice(x, [0, 1, 2, 0], [-1, 3, 2, 3]), _IMAGE),
    TfFunction("strided slice", lambda x: x[:, 1:5:2, ::-1, 0], _IMAGE),
    TfFunction("slice with dots", lambda x: x[..., 1:], _IMAGE),
    TfFunction("slice with a new axis", lambda x: x[:, tf.newaxis, ..., 2], _IMAGE),
    TfFunction("transpose", lambda x: tf.transpose(x, [0, 3, 1, 2]), _IMAGE),
    TfFunction("reshape", lambda x: tf.reshape(x, [tf.shape(x)[0], -1, 9]), _IMAGE),
    TfFunction("squeeze and expand", lambda x: tf.squeeze(tf.expand_dims(x, 2), [2])[:, None] * 2, _VECTOR),
    TfFunction("tile", lambda x: tf.tile(x, [1, 2]), _VECTOR),
    TfFunction("broadcast", lambda x: tf.broadcast_to(x[:, :1], tf.shape(x)) + x, _VECTOR),
    TfFunction("fill", lambda x: tf.fill(tf.shape(x), 2.0) * x, _VECTOR),
    TfFunction("range", lambda x: tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None] * x, _VECTOR),
    TfFunction("space and depth", lambda x: tf.nn.space_to_depth(tf.nn.depth_to_space(x, 2), 4), ((None, 4, 4, 4),)),
    TfFunction(
        "space and batch",
        lambda x: tf.batch_to_space(tf.space_to_batch(x, [2, 2], [[0, 0], [1, 1]]) * 2, [2, 2], [[1, 0], [0, 1]]),
        _IMAGE,
    ),
    TfFunction("resizes", lambda x: (tf.image.resize(x, [9, 4]), tf.image.resize(x, [9, 4], "nearest")), _IMAGE),
    TfFunction("old resize", lambda x: tf.compat.v1.image.resize_bilinear(x, [11, 3], align_corners=True), _IMAGE),
    TfFunction("pools", lambda x: (tf.nn.max_pool2d(x, 3, 2, "SAME"), tf.nn.avg_pool2d(x, 2, 1, "VALID")), _IMAGE),
    TfFunction(
        "max pool with explicit padding",
        lambda x: tf.nn.max_pool2d(x - 5, 3, 2, [[0, 0], [1, 1], [1, 2], [0, 0]]),
        _IMAGE,
    ),
    TfFunction("max pool over channels", lambda x: tf.nn.max_pool2d(x, [1, 1, 1, 3], [1, 1, 1, 3], "VALID"), _IMAGE),
    TfFunction("local response", lambda x: tf.nn.local_response_normalization(x, 1, 1.5, 0.3, 0.6), _IMAGE),
    TfFunction("batch norm", _batch_norm, _IMAGE),
    TfFunction("batch norm of computed statistics", _batch_norm_of, (*_IMAGE, (3,))),
    TfFunction("batch norm in training", _batch_norm_in_training, ((2, 3, 4, 3), (3,))),
    TfFunction("layer norm as Keras 2 writes it", _keras_2_layer_norm, _VECTOR),
    TfFunction("conv", lambda x: tf.nn.conv2d(x, _weights(3, 3, 3, 4), 2, [[0, 0], [1, 0], [2, 1], [0, 0]]), _IMAGE),
    TfFunction("conv with computed filters", lambda x, y: tf.nn.conv2d(x, y * 2, 1, "SAME"), (*_IMAGE, (3, 3, 3, 4))),
    TfFunction("matmul", lambda x: tf.matmul(_weights(3, 6), x, transpose_b=True), ((4, 6),)),
    TfFunction("matmul of two", lambda x, y: tf.matmul(x, y, transpose_b=True), _PAIR),
    TfFunction("batched matmul", lambda x, y: tf.matmul(x, y, adjoint_a=True), ((2, 5, 4), (2, 5, 3))),
    *(
        TfFunction(f"einsum {equation}", lambda *x, e=equation: tf.einsum(e, *x), shapes)
        for equation, shapes in (
            ("ij->ji", ((2, 3),)),
            ("ijk->ik", ((2, 3, 4),)),
            ("ij,jk->ik", ((2, 3), (3, 4))),
            ("ij,jk->ki", ((2, 3), (3, 4))),
            ("btnh,bsnh->bnts", ((2, 5, 3, 4), (2, 6, 3, 4))),
            ("bnts,bsnh->btnh", ((2, 3, 5, 6), (2, 6, 3, 4))),
            ("abc,abd->acd", ((None, 5, 3), (None, 5, 4))),
            ("abcd,cde->abe", ((None, 5, 3, 4), (3, 4, 6))),
            ("...ij,...jk->...ik", ((2, 4, 3, 5), (2, 4, 5, 2))),
            ("i,j->ij", ((3,), (4,))),
            ("ab,ab->a", ((None, 5), (None, 5))),
            ("abi,i->ab", ((2, 4, 5), (5,))),
            ("...ij,...jk->...ik", ((2, 1, 3, 5), (4, 5, 2))),
            ("...i,...i->...", ((2, 4, 5), (1, 5))),
            ("bii->bi", ((None, 4, 4),)),
            ("ibij->jb", ((3, 2, 3, 4),)),
            ("ii->", ((3, 3),)),
        )
    ),
    TfFunction("einsum with weights", lambda x: tf.einsum("abc,cde->abde", x, _weights(4, 2, 3)), ((None, None, 4),)),
)
