"""TensorFlow functions of one operator each that is a composition of TFLite's, or one of the rarer ones."""

from typing import Any

import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array
from support.tf_functions import TfFunction
from support.tf_gradients import LAYER_GRADIENTS
from support.tf_images import DETECTION, IMAGES, SPECTRAL
from support.tf_integers import INTEGERS
from support.tf_places import PLACES
from support.tf_sparse import COMPOSED
from support.tf_spectra import SPECTRA

raw = tf.raw_ops
_VECTOR = ((None, 6),)
_STATIC = ((3, 6),)
_PAIR = ((None, 6), (None, 6))
_STATIC_PAIR = ((3, 6), (3, 6))
_IMAGE = ((None, 6, 6, 3),)
_STATIC_IMAGE = ((2, 6, 6, 3),)
_random = np.random.default_rng(7)


def _int(x: Any, below: int) -> Any:
    """Integers from 0 up to ``below``, made of floats."""
    return tf.cast(tf.abs(x) * 100, tf.int32) % below


def _spread(x: Any) -> Any:
    """Numbers of which some are infinite and some are none."""
    return tf.where(x > 1.5, np.float32(np.inf), tf.where(x < -1.5, np.float32(np.nan), x))


def _zeros(x: Any) -> Any:
    """Numbers of which some are 0."""
    return tf.where(x > 0, x, 0.0)


def _weights(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _f(name: str, function: Any, shapes: Any = _VECTOR, low: float = -2.0, high: float = 2.0) -> TfFunction:
    return TfFunction(name, function, shapes, low, high)


_IDS = np.int32([0, 0, 1, 3, 3, 3])
_SORTED = np.float32([-1.0, -0.5, 0.25, 1.0])
_PLACES = np.int32([[0], [2], [5]])

ELEMENTWISE = (
    *(
        _f(function.__name__, function)
        for function in (
            tf.math.rint,
            tf.math.lgamma,
            tf.math.digamma,
            tf.math.asinh,
            tf.math.sinh,
            tf.math.cosh,
            tf.math.atan,
        )
    ),
    *(_f(f.__name__, f, _VECTOR, -0.99, 0.99) for f in (tf.math.asin, tf.math.acos, tf.math.atanh, tf.math.erfinv)),
    _f("acosh", tf.math.acosh, _VECTOR, 1.01, 3.0),
    _f("atan2 that broadcasts", lambda x: (tf.atan2(x, x[:, :1]), tf.atan2(x[:1], x))),
    _f("atan2 of a number", lambda x: (tf.atan2(x, 2.0), tf.atan2(0.5, x)), _STATIC),
    _f("ndtri", tf.math.ndtri, _VECTOR, 0.01, 0.99),
    _f("is finite", lambda x: tf.math.is_finite(_spread(x))),
    _f("is inf", lambda x: tf.math.is_inf(_spread(x))),
    _f("xlogy", lambda x, y: tf.math.xlogy(_zeros(x), _zeros(tf.abs(y) * _zeros(x))), _PAIR),
    _f("xlog1py", lambda x, y: tf.math.xlog1py(_zeros(x), tf.abs(y)), _PAIR),
    _f("xdivy", lambda x, y: tf.math.xdivy(_zeros(x), y * _zeros(x)), _PAIR),
    _f("multiply no nan", lambda x, y: tf.math.multiply_no_nan(x / _zeros(y), _zeros(y)), _PAIR),
    _f("truncatediv", lambda x, y: tf.truncatediv(_int(x, 50) - 25, _int(y, 5) + 1), _PAIR),
    _f("truncatemod", lambda x, y: tf.truncatemod(_int(x, 50) - 25, _int(y, 5) + 1), _PAIR),
    _f("truncatemod of floats", tf.truncatemod, _PAIR),
    _f("l2 loss", tf.nn.l2_loss),
    _f("approximately equal", lambda x, y: raw.ApproximateEqual(x=x, y=x + y * 1e-5, tolerance=1e-5), _PAIR),
    _f("bitcast", lambda x: tf.bitcast(x, tf.int32)),
    _f("invert", lambda x: tf.bitwise.invert(_int(x, 50))),
    _f("left shift", lambda x: tf.bitwise.left_shift(_int(x, 50), 3)),
    _f("right shift", lambda x: tf.bitwise.right_shift(_int(x, 50), 2)),
    _f("bitwise xor", lambda x, y: tf.bitwise.bitwise_xor(_int(x, 50), _int(y, 50)), _PAIR),
    _f("relu n1 to 1", lambda x: tf.clip_by_value(x, -1.0, 1.0)),
    _f("hard sigmoid", lambda x: tf.nn.relu6(x + 3) / 6),
    _f("log sigmoid", tf.math.log_sigmoid),
    _f("mish", lambda x: x * tf.tanh(tf.nn.softplus(x))),
    _f("crelu", tf.nn.crelu),
    _f("polyval", lambda x: tf.math.polyval([1.0, 2.0, 3.0], x)),
    _f("l2 normalize", lambda x: tf.math.l2_normalize(x, -1)),
    _f("normalize", lambda x: tf.linalg.normalize(x, axis=1)),
    _f("moments", lambda x: tf.nn.moments(x, [0, 1])),
    _f("logsumexp", lambda x: tf.reduce_logsumexp(x, 1)),
    _f("euclidean norm", lambda x: tf.math.reduce_euclidean_norm(x, 1)),
    _f("standard deviation", lambda x: tf.math.reduce_std(x, 1)),
    _f("zero fraction", tf.math.zero_fraction, _STATIC),
    _f("ceil of int division", lambda x: tf.math.floordiv(_int(x, 50) - 25, 7)),
    _f("sign of ints", lambda x: tf.sign(_int(x, 50) - 25)),
    _f("abs of ints", lambda x: tf.abs(_int(x, 50) - 25)),
    _f("square of ints", lambda x: tf.square(_int(x, 50) - 25)),
    _f("max of ints", lambda x, y: tf.maximum(_int(x, 50), _int(y, 50)), _PAIR),
    _f("pow of ints", lambda x: tf.pow(_int(x, 9), 2)),
    _f("to booleans", lambda x: tf.cast(_int(x, 2), tf.bool)),
    _f("not equal to", lambda x: tf.not_equal(_int(x, 5), 3)),
)

LOSSES = (
    _f(
        "softmax cross entropy", lambda x, y: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(y), x), _STATIC_PAIR
    ),
    _f(
        "sparse cross entropy",
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(_int(x[:, 0], 6), x),
        _STATIC,
    ),
    _f("sigmoid cross entropy", lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(tf.sigmoid(y), x), _PAIR),
    _f("weighted cross entropy", lambda x, y: tf.nn.weighted_cross_entropy_with_logits(tf.sigmoid(y), x, 0.3), _PAIR),
    _f("log poisson loss", lambda x, y: tf.nn.log_poisson_loss(tf.abs(y), x), _PAIR),
)

_GRADIENTS: dict[str, Any] = {
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "elu": tf.nn.elu,
    "selu": tf.nn.selu,
    "sigmoid": tf.sigmoid,
    "tanh": tf.tanh,
    "softplus": tf.nn.softplus,
    "softsign": tf.nn.softsign,
    "leaky relu": tf.nn.leaky_relu,
    "rsqrt": lambda x: tf.math.rsqrt(tf.abs(x) + 1),
    "sqrt": lambda x: tf.sqrt(tf.abs(x) + 1),
    "reciprocal": lambda x: tf.math.reciprocal(x + 5),
    "dense": lambda x: tf.matmul(x, np.ones((6, 2), np.float32)) ** 2,
    "softmax": lambda x: tf.nn.softmax(x) ** 2,
    "mean": lambda x: tf.reduce_mean(x**2, 1),
    "maximum": lambda x: tf.maximum(x, 0.3) ** 2,
    "concat": lambda x: tf.concat([x[:, :2] ** 2, x[:, 2:]], 1),
    "gather": lambda x: tf.gather(x, [1, 3], axis=0) ** 2,
}


def _gradient(function: Any) -> Any:
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tf.convert_to_tensor(tape.gradient(y, x))

    return gradient


GRADIENTS = tuple(_f(f"gradient of {name}", _gradient(f), ((4, 6),)) for name, f in _GRADIENTS.items())

PLACING = (
    *(
        _f(f.__name__, lambda x, f=f: f(x, _IDS, 4), ((6, 3),))
        for f in (
            tf.math.unsorted_segment_sum,
            tf.math.unsorted_segment_max,
            tf.math.unsorted_segment_min,
            tf.math.unsorted_segment_prod,
            tf.math.unsorted_segment_mean,
        )
    ),
    _f("segment sum", lambda x: tf.math.segment_sum(x, np.int32([0, 0, 1, 1, 2, 2])), ((6, 3),)),
    *(
        _f(f.__name__, lambda x, f=f: f(x, np.int32([0, 0, 1, 1, 2, 2])), ((6, 3),))
        for f in (tf.math.segment_max, tf.math.segment_min, tf.math.segment_prod, tf.math.segment_mean)
    ),
    _f("tensor scatter update", lambda x, y: tf.tensor_scatter_nd_update(x, _PLACES, y), ((6, 4), (3, 4))),
    _f(
        "tensor scatter update of any rows",
        lambda x, y: tf.tensor_scatter_nd_update(x, tf.cast(tf.abs(y[:, :1]), tf.int32), y),
        ((None, 4), (5, 4)),
    ),
    _f("tensor scatter add", lambda x, y: tf.tensor_scatter_nd_add(x, _PLACES, y), ((6, 4), (3, 4))),
    _f("tensor scatter sub", lambda x, y: tf.tensor_scatter_nd_sub(x, _PLACES, y), ((6, 4), (3, 4))),
    _f("scatter update of zeros", lambda x: tf.tensor_scatter_nd_update(x, [[1], [3]], [0.0, 0.0]), ((6,),)),
    _f("scatter update of ints", lambda x: tf.tensor_scatter_nd_update(_int(x, 9), [[1], [3]], [7, 8]), ((6,),)),
    _f("scatter update of booleans", lambda x: tf.tensor_scatter_nd_update(x > 0, [[1], [3]], [True, False]), ((6,),)),
    _f("dynamic stitch", lambda x, y: tf.dynamic_stitch([[0, 3], [1, 2, 4]], [x, y]), ((2, 3), (3, 3))),
    _f("invert permutation", lambda x: tf.math.invert_permutation(tf.argsort(x)), ((6,),)),
    _f("unique", lambda x: tf.unique(_int(x, 4)), ((9,),)),
    _f("bucketize", lambda x: raw.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.5])),
    _f("search sorted", lambda x: tf.searchsorted(_SORTED, x[0]), _VECTOR),
    _f("search sorted right", lambda x: tf.searchsorted(_SORTED, x[0], side="right"), _VECTOR),
    _f("bincount", lambda x: tf.math.bincount(_int(x, 4), minlength=4, maxlength=4), ((9,),)),
    _f("roll", lambda x: tf.roll(x, [1, -2], [1, 2]), _IMAGE),
    _f("roll of a vector", lambda x: tf.roll(x, 2, 0), ((6,),)),
    _f("cumprod", lambda x: tf.math.cumprod(x, 1)),
    _f("cumprod exclusive reverse", lambda x: tf.math.cumprod(x, 1, exclusive=True, reverse=True), _STATIC),
    _f("cumsum of ints", lambda x: tf.cumsum(_int(x, 9), 1)),
    _f("matrix diag", tf.linalg.diag),
    _f("matrix set diag", lambda x, y: tf.linalg.set_diag(x, y), ((None, 4, 4), (None, 4))),
    _f("matrix diag part", tf.linalg.diag_part, ((None, 4, 4),)),
    _f("matrix diag part of a rectangle", tf.linalg.diag_part, ((2, 3, 5),)),
    _f("upper diagonal", lambda x: tf.linalg.diag_part(x, k=1), ((2, 3, 5),)),
    _f("lower diagonal", lambda x: tf.linalg.diag_part(x, k=-1), ((2, 4, 3),)),
    _f("trace", tf.linalg.trace, ((2, 4, 4),)),
    _f("band part", lambda x: tf.linalg.band_part(x, 1, 0), ((None, 4, 5),)),
    _f("upper triangle", lambda x: tf.linalg.band_part(x, 0, -1), ((4, 4),)),
    _f("eye", lambda x: tf.eye(6) * x[0]),
    _f("in top k", lambda x: tf.math.in_top_k(_int(x[:, 0], 6), x, 2), _STATIC),
    _f("argsort", lambda x: tf.argsort(x, direction="DESCENDING")),
    _f("sort", tf.sort),
    _f("sort ascending ints", lambda x: tf.sort(_int(x, 99))),
    _f("sequence mask", lambda x: tf.sequence_mask(_int(x, 5), 5)),
    _f("boolean mask", lambda x: tf.boolean_mask(x, x > 0)),
    _f("dynamic partition", lambda x: tf.dynamic_partition(x, _int(x, 2), 2), ((9,),)),
    _f("slice update", lambda x, y: tf.tensor_scatter_nd_update(x, tf.range(2)[:, None] + 1, y), ((6, 4), (2, 4))),
    _f("meshgrid", lambda x, y: tf.meshgrid(x, y), ((3,), (4,))),
    _f("repeat", lambda x: tf.repeat(x, 3, axis=1)),
    _f("linspace", lambda x: tf.linspace(0.0, 1.0, 6) * x),
    _f("gather in batches of two", lambda x, y: tf.gather(x, _int(y, 5), axis=2, batch_dims=1), ((2, 3, 5), (2, 4))),
    _f("gather_nd in batches", lambda x: tf.gather_nd(x, [[[1]], [[2]]], batch_dims=1), ((2, 4, 3),)),
    _f("ensure shape", lambda x: tf.ensure_shape(x, (3, 6)) * 2, _STATIC),
    _f("batch to space", lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [0, 0]]), ((4, 3, 3, 2),)),
    _f("where of three", lambda x, y: tf.where(x > 0, x, tf.where(y > 0, y, x * y)), _PAIR),
    _f("unstack of ints", lambda x: tf.unstack(_int(x, 9), axis=1)[2:4]),
    _f("slice of known size", lambda x: tf.slice(x, [0, _int(x[0, 0], 3)], [-1, 2]), _STATIC),
    _f("concat of ints", lambda x: tf.concat([_int(x, 9), _int(x, 4)], 0)),
    _f("transpose of ints", lambda x: tf.transpose(_int(x, 9))),
    _f("broadcast to a higher rank", lambda x: tf.broadcast_to(x, (2, 3, 6)), _STATIC),
    _f("pad of ints", lambda x: tf.pad(_int(x, 9), [[1, 1], [0, 2]])),
    _f("reverse of ints", lambda x: tf.reverse(_int(x, 9), [1])),
    _f("reverse along axes apart", lambda x: tf.reverse(x, [-1, 0]), ((3, 4, 6),)),
)

OPERATORS = (
    *ELEMENTWISE,
    *LOSSES,
    *GRADIENTS,
    *LAYER_GRADIENTS,
    *PLACING,
    *PLACES,
    *DETECTION,
    *SPECTRAL,
    *IMAGES,
    *SPECTRA,
    *COMPOSED,
    *INTEGERS,
)
