"""TensorFlow functions with branches, loops, lists of tensors and calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from support.tf_functions import TfFunction

_W = np.random.default_rng(7).standard_normal((4, 4)).astype(np.float32) / 2
_MATRIX = ((3, 4),)
_OPEN = ((None, 4),)
_STEPS = ((5, 4),)
_ANY_STEPS = ((None, 4),)


def _branch(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, _W), lambda: x - 1.0)


def _branch_of_other_shape(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x[:1], lambda: tf.concat([x, x], 0))


def _nested_case(x: Any) -> Any:
    s = tf.reduce_sum(x)
    return tf.case([(s > 5, lambda: x * 2), (s > 0, lambda: x + 1), (s > -5, lambda: x - 1)], lambda: -x)


def _switch(x: Any) -> Any:
    index = tf.cast(x[0, 0] * 3, tf.int32)
    return tf.switch_case(index, [lambda: x * 2, lambda: tf.matmul(x, _W), lambda: tf.nn.relu(x)], lambda: -x)


def _while(x: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, _W) + x)), [0, x])[1]


def _while_on_values(x: Any) -> Any:
    return tf.while_loop(lambda y: tf.reduce_sum(tf.abs(y)) > 0.5, lambda y: (y * 0.5,), [x])[0]


def _loop_in_branch_in_loop(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return tf.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, tf.matmul(z, _W)), [0, y])[1]

    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: inner(y), lambda: y + x)

    return tf.while_loop(lambda i, y: i < 4, body, [0, x])[1]


def _array_of_fixed_size(x: Any) -> Any:
    def body(i: Any, y: Any, made: Any) -> Any:
        y = tf.tanh(tf.matmul(y, _W) + x[i])
        return i + 1, y, made.write(i, y)

    made = tf.TensorArray(tf.float32, 5)
    return tf.while_loop(lambda i, y, made: i < 5, body, [0, x[:1], made])[2].stack()


def _array_of_any_size(x: Any) -> Any:
    n = tf.shape(x)[0]
    rows = tf.TensorArray(tf.float32, n).unstack(x)
    made = tf.TensorArray(tf.float32, n)
    _, made = tf.while_loop(lambda i, made: i < n, lambda i, made: (i + 1, made.write(i, rows.read(i) * 2)), [0, made])
    return made.stack()


def _array_that_grows(x: Any) -> Any:
    made = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=(4,))
    n = tf.shape(x)[0]
    _, made = tf.while_loop(lambda i, made: i < n, lambda i, made: (i + 1, made.write(i, x[i] + 1)), [0, made])
    return made.stack()


def _array_that_grows_anywhere(x: Any) -> Any:
    made = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=(4,))
    n = tf.shape(x)[0]
    _, made = tf.while_loop(
        lambda i, made: i < n, lambda i, made: (i + 1, made.write(2 * (n - i - 1), x[i] + 1)), [0, made]
    )
    return made.stack()


def _array_written_at_once(x: Any) -> Any:
    made = tf.TensorArray(tf.float32, 2, dynamic_size=True)
    return made.write(0, x * 2).write(1, x + 1).write(2, x).stack()


def _words_until_a_stop(x: Any) -> Any:
    words = tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=())
    y, i = x[0], tf.constant(0)
    while i < 20:
        y = tf.tanh(tf.linalg.matvec(_W, y))
        words = words.write(i, tf.argmax(y, output_type=tf.int32))
        i += 1
        if tf.reduce_max(tf.abs(y)) < 0.05:
            break
    return words.stack()


def _array_scattered(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, 6, element_shape=(4,)).write(5, x[0])
    return array.scatter([2, 0, 1], x).stack()


def _array_written_past_its_end(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, 2, dynamic_size=True, element_shape=(4,))
    return array.write(7, x[0]).write(tf.shape(x)[0] + 8, x[1]).stack()


def _array_of_matrices(x: Any) -> Any:
    made = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    for i in tf.range(3):
        made = made.write(i, x * tf.cast(i, tf.float32))
    return made.stack(), made.concat()


def _array_partly_scattered(x: Any) -> Any:
    rows = tf.TensorArray(tf.float32, 6).scatter([4, 1, 0, 5], x)
    return rows.write(2, x[0]).write(3, x[1]).stack()


def _mapped_to_what_a_loop_resized(x: Any) -> Any:
    """Arrays of elements whose size a loop has changed: dense ones, and a list."""
    turns = lambda i, _: i < 2  # noqa: E731
    open_ = [tf.TensorShape([]), tf.TensorShape([None, 4])]
    less = tf.while_loop(turns, lambda i, y: (i + 1, y[1:]), [0, x], shape_invariants=open_)[1]
    more = tf.while_loop(turns, lambda i, y: (i + 1, tf.concat([y, y[:1]], 0)), [0, x], shape_invariants=open_)[1]
    made = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=(4,))
    made = tf.while_loop(lambda i, _: i < tf.shape(x)[0] + 1, lambda i, made: (i + 1, made.write(i, x[0])), [0, made])[
        1
    ]
    return [tf.map_fn(lambda row: y * row, x) for y in (less, more, made.stack())]  # noqa: B023


def _list_resized(x: Any) -> Any:
    handle = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[4])
    results = []
    for size in (2, 5, tf.cast(tf.abs(x[0, 0]), tf.int32) + 2):
        resized = tf.raw_ops.TensorListResize(input_handle=handle, size=size)
        results.append(tf.raw_ops.TensorListStack(input_handle=resized, element_shape=[4], element_dtype=tf.float32))
    return results


def _array_of_slices(x: Any) -> Any:
    y = tf.transpose(tf.stack([x, x * 2, x + 1]), [1, 0, 2])
    made = tf.TensorArray(tf.float32, 3)
    body = lambda i, made: (i + 1, made.write(i, tf.transpose(y[::-1, i, ..., tf.newaxis], [1, 0, 2])))  # noqa: E731
    return tf.while_loop(lambda i, made: i < 3, body, [0, made])[1].stack()


def _array_joined(x: Any) -> Any:
    made = tf.TensorArray(tf.float32, 3, element_shape=(2, 4))
    _, made = tf.while_loop(lambda i, made: i < 3, lambda i, made: (i + 1, made.write(i, x[i : i + 2])), [0, made])
    return made.concat()


def _grows(x: Any) -> Any:
    shapes = [tf.TensorShape(()), tf.TensorShape((None, 4))]
    body = lambda i, y: (i + 1, tf.concat([y, x], 0))  # noqa: E731
    return tf.while_loop(lambda i, y: i < 3, body, [0, x], shape_invariants=shapes)[1]


def _grows_from_nothing(x: Any) -> Any:
    body = lambda i, y, z: (i + 1, tf.concat([y, tf.sin(x[:1])], 0), tf.pad(z, [[0, 1], [0, 0]]) + 1)  # noqa: E731
    shapes = [tf.TensorShape(()), *[tf.TensorShape((None, 4))] * 2]
    loop = tf.while_loop(lambda i, *_: i < 3, body, [0, x[:0], tf.zeros((0, 4))], shape_invariants=shapes)
    return loop[1:]


def _shrinks_to_nothing(x: Any) -> Any:
    body = lambda i, y, s: (i + 1, y[1:], s + tf.reduce_sum(y))  # noqa: E731
    shapes = [tf.TensorShape(()), tf.TensorShape((None, 4)), tf.TensorShape(())]
    return tf.while_loop(lambda i, y, s: i < 2, body, [0, x[:1], 0.0], shape_invariants=shapes)[2]


def _for_over_tensor(x: Any) -> Any:
    y = tf.zeros(4)
    for row in x:
        y = tf.tanh(y + row)
    return y


def _for_over_range(x: Any) -> Any:
    y = x
    for i in tf.range(1, 7, 2):
        y = y * 0.5 + tf.cast(i, tf.float32)
    return y


def _while_with_break(x: Any) -> Any:
    y, i = x, tf.constant(0)
    while i < 10:
        y = y * 1.5
        if tf.reduce_sum(tf.abs(y)) > 40:
            break
        i += 1
    return y, i


def _unused_and_unchanged(x: Any) -> Any:
    def body(i: Any, unused: Any, fixed: Any, y: Any) -> Any:
        return i + 1, unused * 2, fixed, y + fixed

    loop = tf.while_loop(lambda i, *rest: i < 3, body, [0, x, tf.ones((3, 4)), x])
    return loop[3], loop[2]


@tf.function(autograph=False)
def _called(x: Any) -> Any:
    return tf.matmul(x, _W) + 1


def _calls(x: Any) -> Any:
    return _called(_called(x) * 2)


def _recurrent(transposed: bool) -> Callable[[Any], Any]:
    """The loop of a simple recurrent layer, but for a product with transposed weights."""

    def over(x: Any) -> Any:
        rows = tf.TensorArray(tf.float32, 5).unstack(x)

        def body(i: Any, h: Any, made: Any) -> Any:
            h = tf.tanh(tf.matmul(rows.read(i), _W) + tf.matmul(h, _W, transpose_b=transposed))
            return i + 1, h, made.write(i, h)

        made = tf.TensorArray(tf.float32, 5, element_shape=(2, 4))
        return tf.while_loop(lambda i, h, made: i < 5, body, [0, tf.zeros((2, 4)), made])[2].stack()

    return over


CONTROL_FLOW = (
    TfFunction("branch", _branch, _MATRIX),
    TfFunction("branch of any batch", _branch, _OPEN),
    TfFunction("branches of other shapes", _branch_of_other_shape, _OPEN),
    TfFunction("branch known to be taken", lambda x: tf.cond(tf.constant(True), lambda: x + 1, lambda: x), _MATRIX),
    TfFunction("nested case", _nested_case, _MATRIX),
    TfFunction("switch", _switch, _MATRIX, 0.0, 2.0),
    TfFunction("switch out of range", _switch, _MATRIX, -2.0, -1.0),
    TfFunction("while", _while, _MATRIX),
    TfFunction("while of any batch", _while, _OPEN),
    TfFunction("while on values", _while_on_values, _OPEN),
    TfFunction("loop in a branch in a loop", _loop_in_branch_in_loop, _MATRIX),
    TfFunction("array of fixed size", _array_of_fixed_size, _STEPS),
    TfFunction("array of any size", _array_of_any_size, _ANY_STEPS),
    TfFunction("array that grows", _array_that_grows, _ANY_STEPS),
    TfFunction("array that grows anywhere", _array_that_grows_anywhere, _ANY_STEPS),
    TfFunction("array written at once", _array_written_at_once, _MATRIX),
    TfFunction("words until a stop", _words_until_a_stop, _MATRIX, autograph=True),
    TfFunction("array written past its end", _array_written_past_its_end, _ANY_STEPS),
    TfFunction("array scattered", _array_scattered, _MATRIX),
    TfFunction("array of matrices", _array_of_matrices, _MATRIX, autograph=True),
    TfFunction("array of matrices of any size", _array_of_matrices, _OPEN, autograph=True),
    TfFunction("list resized", _list_resized, _MATRIX),
    TfFunction("array of slices of any size", _array_of_slices, _OPEN),
    TfFunction("array joined", _array_joined, _STEPS),
    TfFunction("loop that grows", _grows, _OPEN),
    TfFunction("loop that grows from nothing", _grows_from_nothing, _OPEN),
    TfFunction("loop that shrinks to nothing", _shrinks_to_nothing, _OPEN),
    TfFunction("for over a tensor", _for_over_tensor, _STEPS, autograph=True),
    TfFunction("for over a tensor of any length", _for_over_tensor, _ANY_STEPS, autograph=True),
    TfFunction("for over a range", _for_over_range, _MATRIX, autograph=True),
    TfFunction("while with break", _while_with_break, _MATRIX, autograph=True),
    TfFunction("unused and unchanged", _unused_and_unchanged, _MATRIX),
    TfFunction("map", lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), _ANY_STEPS),
    TfFunction("scan", lambda x: tf.scan(lambda a, row: a * 0.5 + row, x), _ANY_STEPS),
    TfFunction("fold", lambda x: tf.foldl(lambda a, row: a * 0.5 + row, x), _ANY_STEPS),
    TfFunction("vectorized map", lambda x: tf.vectorized_map(lambda row: tf.reduce_sum(row) * row, x), _STEPS),
    TfFunction("calls", _calls, _OPEN),
    TfFunction("recurrent layer", _recurrent(transposed=False), ((5, 2, 4),)),
    TfFunction("recurrent layer of transposed weights", _recurrent(transposed=True), ((5, 2, 4),)),
    TfFunction("array partly scattered", _array_partly_scattered, ((4, 5),)),
    TfFunction("mapped to what a loop resized", _mapped_to_what_a_loop_resized, _ANY_STEPS),
)


class Counters(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = tf.Variable(2.0, name="v")
        self.total = tf.Variable(np.float32([[1, 2, 3, 4]]), name="v")
        self.table = tf.Variable(np.arange(12, dtype=np.float32).reshape(3, 4), name="v")
        self.unread = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec((1, 4), tf.float32, name="x")], autograph=False)
    def straight(self, x: Any) -> Any:
        self.unread.assign_add(1)
        before = self.count.read_value()
        self.count.assign_add(1.0)
        self.total.assign(self.total * 0.5 + x)
        return before, self.count * self.total, tf.gather(self.table, [2, 0])

    @tf.function(input_signature=[tf.TensorSpec((1, 4), tf.float32, name="x")], autograph=False)
    def in_branch(self, x: Any) -> Any:
        def subtract() -> Any:
            self.count.assign_sub(2.0)
            return x

        return tf.cond(tf.reduce_sum(x) > 0, subtract, lambda: x * self.total) * self.count

    @tf.function(input_signature=[tf.TensorSpec((1, 4), tf.float32, name="x")], autograph=False)
    def in_loop(self, x: Any) -> Any:
        def body(i: Any) -> Any:
            self.total.assign_add(x * tf.cast(i, tf.float32))
            return (i + 1,)

        tf.while_loop(lambda i: i < 3, body, [0])
        return self.called(x) + self.total

    @tf.function(autograph=False)
    def called(self, x: Any) -> Any:
        self.count.assign_add(tf.reduce_sum(x))
        return self.count.read_value()
