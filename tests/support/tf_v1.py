"""Control flow and variables as TensorFlow 1 writes them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array

v1 = tf.compat.v1
_random = np.random.default_rng(0)
_W = _random.standard_normal((4, 4)).astype(np.float32) / 2
_CELL = _random.standard_normal((8, 16)).astype(np.float32) / 3


@contextmanager
def old_control_flow() -> Iterator[Any]:
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            yield graph
    finally:
        v1.enable_control_flow_v2()


def loop(x: Any) -> Any:
    return v1.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, _W) + x)), [0, x])[1]


def _branch(x: Any) -> Any:
    return v1.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, _W), lambda: x - 1.0)


def _constant_branches(x: Any) -> Any:
    return v1.cond(tf.reduce_sum(x) > 0, lambda: tf.constant(3.0), lambda: tf.constant(1.0)) + x


def _branch_in_branch(x: Any) -> Any:
    def inner() -> Any:
        return v1.cond(x[0, 0] > 0, lambda: x * 2, lambda: tf.ones_like(x))

    return v1.cond(tf.reduce_sum(x) > 0, inner, lambda: x - 1.0)


def _branches_in_turn(x: Any) -> Any:
    a, b = v1.cond(tf.reduce_sum(x) > 0, lambda: (x, x + 1), lambda: (x * 2, x * 3))
    return v1.cond(a[0, 0] > 0, lambda: a + b, lambda: a - b)


def _nested(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return v1.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, tf.matmul(z, _W)), [0, y])[1]

    def body(i: Any, y: Any) -> Any:
        return i + 1, v1.cond(tf.equal(i % 2, 0), lambda: inner(y), lambda: y + x)

    return v1.while_loop(lambda i, y: i < 4, body, [0, x])[1]


def _array(x: Any) -> Any:
    def body(i: Any, y: Any, made: Any) -> Any:
        y = tf.tanh(y + x[i])
        return i + 1, y, made.write(i, y)

    return v1.while_loop(lambda i, *rest: i < 5, body, [0, x[0], tf.TensorArray(tf.float32, 5)])[2].stack()


def _array_that_grows(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, 1, dynamic_size=True, element_shape=(4,))
    steps = tf.shape(x)[0]
    return v1.while_loop(lambda i, _: i < steps, lambda i, a: (i + 1, a.write(i, x[i] + 1)), [0, array])[1].stack()


def _array_in_parts(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, 6, clear_after_read=False).unstack(loop(x))
    return tf.concat([array.gather(tf.range(0, 3)), array.gather(tf.range(0, 6, 2)), array.stack()], 0)


def _array_scattered(x: Any) -> Any:
    """Into a longer array, over what was written before, and in a loop."""
    array, y = tf.TensorArray(tf.float32, 6, element_shape=(4,)), loop(x)
    written = array.write(5, y[0]).write(3, y[1]).scatter([2, 0, 1], y).gather([0, 1, 2, 3, 5])
    longer = tf.TensorArray(tf.float32, 6, element_shape=(4,)).scatter([2, 0, 1], y).stack()
    in_turn = tf.TensorArray(tf.float32, 6, element_shape=(4,))
    in_turn = v1.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a.scatter(3 * i + [2, 0, 1], x)), [0, in_turn])[1]
    return tf.concat([written, longer, in_turn.stack()], 0)


def _array_longer_than_rows(x: Any) -> Any:
    """Whose number, and the array's, are known only at run time."""
    y = loop(x)
    fixed = tf.TensorArray(tf.float32, 6, element_shape=(4,)).unstack(y).stack()
    array = tf.TensorArray(tf.float32, tf.shape(x)[0] + 2, element_shape=(4,)).unstack(y)
    growing = tf.TensorArray(tf.float32, 1, dynamic_size=True, element_shape=(4,)).unstack(y)
    return tf.concat([fixed, array.write(tf.shape(x)[0], y[0]).stack(), growing.stack()], 0)


def _array_split(x: Any) -> Any:
    return tf.TensorArray(tf.float32, 3, infer_shape=False).split(loop(x), [2, 2, 2]).read(1)


def _recurrent(x: Any) -> Any:
    """An LSTM as ``dynamic_rnn`` writes it."""
    by_time = tf.transpose(x, [1, 0, 2])
    steps = tf.shape(by_time)[0]
    rows, made = tf.TensorArray(tf.float32, steps).unstack(by_time), tf.TensorArray(tf.float32, steps)

    def body(i: Any, h: Any, c: Any, made: Any) -> Any:
        a, b, f, o = tf.split(tf.matmul(tf.concat([rows.read(i), h], 1), _CELL), 4, 1)
        c = tf.sigmoid(f + 1) * c + tf.sigmoid(a) * tf.tanh(b)
        h = tf.sigmoid(o) * tf.tanh(c)
        return i + 1, h, c, made.write(i, h)

    zero = tf.zeros([tf.shape(x)[0], 4])
    made = v1.while_loop(lambda i, *rest: i < steps, body, [0, zero, zero, made])[3]
    return tf.transpose(made.stack(), [1, 0, 2])


GRAPHS: tuple[tuple[Callable[[Any], Any], tuple[int | None, ...]], ...] = (
    (loop, (3, 4)),
    (_branch, (3, 4)),
    (_constant_branches, (3, 4)),
    (_branch_in_branch, (3, 4)),
    (_branches_in_turn, (None, 4)),
    (_nested, (3, 4)),
    (_array, (5, 4)),
    (_array_that_grows, (None, 4)),
    (_array_in_parts, (6, 4)),
    (_array_scattered, (3, 4)),
    (_array_longer_than_rows, (None, 4)),
    (_array_split, (6, 4)),
    (_recurrent, (None, 5, 4)),
    (_recurrent, (2, None, 4)),
)


def feeds(shape: tuple[int | None, ...]) -> list[Array]:
    random = np.random.default_rng(1)
    return [random.standard_normal([d or 3 for d in shape]).astype(np.float32) + shift for shift in (1, -1, 1)]


def _variable(name: str, value: Any, use_resource: bool) -> Any:
    return v1.get_variable(name, initializer=value, use_resource=use_resource)


def read_in_loop(x: Any, use_resource: bool) -> Any:
    w = _variable("w", _W, use_resource)
    return v1.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w) + x)), [0, x])[1]


def counter(x: Any, use_resource: bool) -> Any:
    count = _variable("count", np.float32(1), use_resource)
    with tf.control_dependencies([count.assign_add(1.0)]):
        return x * tf.identity(count.read_value())


def written_in_branch(x: Any, use_resource: bool) -> Any:
    count = _variable("count", np.float32(1), use_resource)

    def counted() -> Any:
        with tf.control_dependencies([count.assign_add(1.0)]):
            return x * 1.0

    result = v1.cond(tf.reduce_sum(x) > 0, counted, lambda: x - 1.0)
    with tf.control_dependencies([result]):
        return result * count.read_value()
