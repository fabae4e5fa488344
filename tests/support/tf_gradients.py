"""Gradients of layers by their images and weights, as TensorFlow's tape writes them."""

from dataclasses import replace
from typing import Any

import tensorflow as tf

from support.tf_functions import TfFunction, spread_filters

_IMAGE = (None, 7, 6, 3)
_STATIC_IMAGE = (2, 7, 6, 3)


def gradients(function: Any) -> Any:
    """Return a function that gives the gradients of a function by all its arguments; its result is weighed."""

    def by_all(*arguments: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            y = function(*arguments)
            weights = tf.cos(tf.range(1, 1 + tf.size(y), dtype=tf.float32))
            loss = tf.reduce_sum(y * tf.reshape(weights, tf.shape(y)))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, arguments)]

    return by_all


def _f(name: str, function: Any, *shapes: Any) -> TfFunction:
    return TfFunction(f"gradients of {name}", gradients(function), shapes)


def _pool(pool: Any, *window: Any) -> Any:
    return lambda x: pool(x, *window)


_CONVOLUTIONS = (
    (3, 1, "SAME", 1),
    (3, 1, "VALID", 1),
    (3, 2, "SAME", 1),
    (3, 2, "VALID", 1),
    ((2, 3), 1, "SAME", 2),
    ((2, 3), 1, "VALID", 2),
    (1, 2, "SAME", 1),
    ((5, 4), 3, "SAME", 1),
    (3, 2, [[0, 0], [1, 0], [2, 1], [0, 0]], 1),
)


def _kernel(size: Any) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)


def _convolution(size: Any, stride: int, padding: Any, dilation: int) -> TfFunction:
    def convolve(x: Any, w: Any) -> Any:
        return tf.nn.conv2d(x, w, stride, padding, dilations=dilation)

    def convolve_spread(x: Any, w: Any) -> Any:
        return tf.nn.conv2d(x, spread_filters(w, dilation), stride, padding)

    case = _f(f"conv {size} {stride} {padding} {dilation}", convolve, _IMAGE, (*_kernel(size), 3, 4))
    return case if dilation == 1 else replace(case, reference=gradients(convolve_spread))


CONVOLUTIONS = tuple(_convolution(*options) for options in _CONVOLUTIONS)
DEPTHWISE = tuple(
    _f(
        f"depthwise conv {size} {stride} {padding} {dilation} {multiplier}",
        lambda x, w, s=stride, p=padding, d=dilation: tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], p, dilations=[d, d]),
        _IMAGE,
        (*_kernel(size), 3, multiplier),
    )
    for size, stride, padding, dilation in _CONVOLUTIONS
    for multiplier in (1, 2)
    if not (multiplier == 2 and stride == 1)
)
POOLS = tuple(
    _f(f"{pool.__name__} {size} {stride} {padding}", _pool(pool, size, stride, padding), _IMAGE)
    for pool in (tf.nn.max_pool2d, tf.nn.avg_pool2d)
    for size, stride, padding in ((2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "SAME"), ((2, 3), (3, 1), "VALID"))
)


def _ties(x: Any) -> Any:
    """Return the pool of an image in which many elements are equal."""
    return tf.nn.max_pool2d(tf.minimum(tf.nn.relu(x), 0.5), 2, 2, "SAME")


def _batch_norm(*, training: bool) -> Any:
    def apply(x: Any, scale: Any, offset: Any) -> Any:
        statistics = () if training else (tf.constant([0.1, 0.2, 0.3]), tf.constant([0.5, 1.0, 2.0]))
        y, *_ = tf.compat.v1.nn.fused_batch_norm(x, scale, offset, *statistics, epsilon=0.01, is_training=training)
        return y

    return apply


def _layer_norm(x: Any) -> Any:
    return (x - tf.reduce_mean(x, -1, True)) * tf.math.rsqrt(tf.math.reduce_variance(x, -1, True) + 0.1)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)


OTHERS = (
    _f("max pool of ties", _ties, _IMAGE),
    _f("batch norm", _batch_norm(training=True), _IMAGE, (3,), (3,)),
    _f("batch norm of known size", _batch_norm(training=True), _STATIC_IMAGE, (3,), (3,)),
    _f("batch norm of given statistics", _batch_norm(training=False), _IMAGE, (3,), (3,)),
    _f("transposed conv", lambda x, w: tf.nn.conv2d_transpose(x, w, (2, 14, 12, 4), 2), _STATIC_IMAGE, (3, 3, 4, 3)),
    _f("dense", lambda x, w, b: tf.nn.relu(tf.matmul(x, w) + b), (None, 6), (6, 4), (4,)),
    _f("broadcasting", lambda x, y: x * y, (None, 6), (None, 1)),
    _f("broadcasting of a row", lambda x, y: x * y, (None, 6), (1, 6)),
    _f("broadcasting to a higher rank", lambda x, y: x * y + y, (None, 2, 6), (None, 1, 1)),
    _f("mean", lambda x: tf.reduce_mean(x**2, 0), (None, 6)),
    _f("sum over the middle", lambda x: tf.reduce_sum(x**2, 1), (None, 5, 6)),
    _f("product", lambda x: tf.reduce_prod(x, 1), (3, 4)),
    _f("largest", lambda x: tf.reduce_max(x, 1), (None, 6)),
    _f("embedding", lambda x: tf.gather(x, [[1, 3], [1, 0]]) ** 2, (5, 4)),
    _f("slice with steps, dots and a new axis", lambda x: x[:, tf.newaxis, 1:6:2, ..., 1] ** 2, _IMAGE),
    _f("self-attention", lambda x: _attention(x, x, x), (None, 4, 3)),
    _f("slice", lambda x: x[:, 1:4] ** 2, (None, 6)),
    _f("layer norm", _layer_norm, (None, 6)),
    _f("attention", _attention, *[(None, 4, 3)] * 3),
    _f("cross entropy", lambda x, y: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(y), x), *[(None, 6)] * 2),
    _f("sparse cross entropy", lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([1, 5, 0], x), (3, 6)),
    _f("sigmoid cross entropy", lambda x: tf.nn.sigmoid_cross_entropy_with_logits(tf.ones_like(x), x), (None, 6)),
    _f("gelu", tf.nn.gelu, (None, 6)),
    _f("swish", tf.nn.swish, (None, 6)),
    _f("pad", lambda x: tf.pad(x, [[0, 0], [1, 2], [2, 1], [0, 0]]) ** 2, _IMAGE),
    _f("transpose", lambda x: tf.transpose(x, [0, 3, 1, 2]) ** 2, _IMAGE),
    _f("upsampling", lambda x: tf.repeat(tf.repeat(x, 2, 1), 2, 2) ** 2, _IMAGE),
    _f("nearest resize", lambda x: tf.image.resize(x, [14, 12], "nearest") ** 2, _IMAGE),
    _f("bilinear resize", lambda x: tf.image.resize(x, [14, 12]) ** 2, _IMAGE),
    _f("einsum", lambda x, y: tf.einsum("btd,dhk->bthk", x, y), (None, 4, 6), (6, 2, 3)),
    _f("cumsum", lambda x: tf.cumsum(x, 1) ** 2, (None, 6)),
    _f("split", lambda x: tf.split(x, 3, 1)[1] ** 2, (None, 6)),
    _f("stack", lambda x, y: tf.stack([x, y], 1) ** 2, (None, 6), (None, 6)),
    _f("where", lambda x, y: tf.where(x > 0, x * y, y), (None, 6), (None, 6)),
    _f("power", lambda x: tf.abs(x) ** 1.5, (None, 6)),
    _f("norm", lambda x: tf.norm(x, axis=1), (None, 6)),
    _f("clipping by norm", lambda x: tf.clip_by_norm(x, 1.0), (None, 6)),
    _f("tile", lambda x: tf.tile(x, [1, 2]) ** 2, (None, 6)),
    _f("broadcast to", lambda x: tf.broadcast_to(x, (3, 6)) ** 2, (1, 6)),
    _f("conv 1d", lambda x, w: tf.nn.conv1d(x, w, 2, "SAME"), (None, 9, 3), (3, 3, 4)),
    _f("top k", lambda x: tf.math.top_k(x, 2)[0] ** 2, (3, 6)),
)

LAYER_GRADIENTS = (*CONVOLUTIONS, *DEPTHWISE, *POOLS, *OTHERS)
