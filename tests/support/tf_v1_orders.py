"""Reads and writes of a TensorFlow 1 variable, in orders that only control edges determine."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1
Build = Callable[[Any, Any], Any]
_after = tf.control_dependencies

WRITES: dict[str, Build] = {
    "assign": lambda v, x: v.assign(x),
    "assign_add": lambda v, x: v.assign_add(x),
    "assign_sub": lambda v, x: v.assign_sub(x),
    "scatter_update": lambda v, x: v1.scatter_update(v, [0, 2], x[:2]),
    "scatter_add": lambda v, x: v1.scatter_add(v, [0, 2], x[:2]),
    "scatter_sub": lambda v, x: v1.scatter_sub(v, [0, 2], x[:2]),
    "scatter_nd_update": lambda v, x: v1.scatter_nd_update(v, [[0], [2]], x[:2]),
    "scatter_nd_add": lambda v, x: v1.scatter_nd_add(v, [[0], [2]], x[:2]),
    "strided_slice": lambda v, x: v[1:3].assign(x[:2]),
    "descent": lambda v, x: v1.train.GradientDescentOptimizer(0.5).apply_gradients([(x, v)]),
    "adam": lambda v, x: v1.train.AdamOptimizer(0.5).apply_gradients([(x, v)]),
}


def _beside(v: Any, name: str, value: Any) -> Any:
    """Another variable, of the kind that one is of: a resource or a reference."""
    return v1.get_variable(name, initializer=value, use_resource=v.dtype == v.dtype.base_dtype)


def read_before_and_after(write: Build) -> Build:
    """Read, write, read the same tensor, write again, read."""

    def build(v: Any, x: Any) -> Any:
        before = v * 1.5
        with _after([before]):
            written = write(v, x)
        with _after([tf.group(written)]):
            between = tf.identity(v) * x
        with _after([between]):
            again = v.assign_add(x * 2.0)
        with _after([again]):
            return before + between + v * 3.0

    return build


def _an_identity_made_earlier(v: Any, x: Any) -> Any:
    earlier = v.read_value()
    with _after([earlier]):
        written = v.assign_add(x)
    with _after([written]):
        return tf.reshape(tf.reshape(earlier, [3, 4]), [4, 3]) * 2.0


def _the_result_of_a_write(v: Any, x: Any) -> Any:
    first = v.assign(x)
    used = first * 10.0
    with _after([used]):
        second = v.assign_add(x * 2.0)
    with _after([second]):
        return first + used


def _two_variables(v: Any, x: Any) -> Any:
    other = _beside(v, "other", tf.ones([4, 3]))
    a, b = v + 0.5, other + x
    with _after([a, b]):
        swapped = tf.group(v.assign(b), other.assign(a))
    with _after([swapped]):
        return v * 2.0 + other


def _in_a_branch(v: Any, x: Any) -> Any:
    def written() -> Any:
        before = v * 1.5
        with _after([before]):
            write = v.assign_add(x)
        with _after([write]):
            return tf.identity(v) * 2.0 + before

    result = v1.cond(tf.reduce_sum(x) > 0, written, lambda: v - 1.0)
    with _after([result]):
        return result + v * 10.0


def _decided_by_a_variable(v: Any, x: Any) -> Any:
    """All Switches of a branch have one condition, which is a variable itself."""
    decides = _beside(v, "decides", True)
    with _after([v.assign_add(x), decides.assign(tf.reduce_sum(x) > 0)]):
        condition = tf.identity(decides)
    a, b = v1.cond(condition, lambda: (x * 2.0, v + x), lambda: (x - 1.0, v * 3.0))
    return a + b


def _decided_twice(v: Any, x: Any) -> Any:
    """Two branches are decided by one variable, and a write is between them."""
    decides = _beside(v, "decides_twice", True)
    first = v1.cond(decides, lambda: x * 2.0, lambda: x - 1.0)
    with _after([first]):
        written = decides.assign(tf.reduce_sum(x) > 0)
    with _after([written]):
        second = v1.cond(decides, lambda: v + x, lambda: v * 3.0)
    with _after([second]):
        return first + second + tf.cast(decides.assign(True), tf.float32)


def _in_a_loop(v: Any, x: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        before = v * y
        with _after([before]):
            write = v.assign_add(x)
        with _after([write]):
            return i + 1, before * 0.1 + v * 2.0

    result = v1.while_loop(lambda i, y: i < 3, step, [0, x], parallel_iterations=1)[1]
    with _after([result]):
        return result + v * 10.0


ORDERS: dict[str, Build] = {
    **{name: read_before_and_after(write) for name, write in WRITES.items()},
    **{
        build.__name__.strip("_"): build
        for build in (
            _an_identity_made_earlier,
            _the_result_of_a_write,
            _two_variables,
            _in_a_branch,
            _decided_by_a_variable,
            _decided_twice,
            _in_a_loop,
        )
    },
}


# TensorFlow gives what the variable holds later, or held before, depending on sizes.
UNDECIDED: dict[str, Callable[[Any], Any]] = {
    "Pack": lambda v: tf.stack([v])[0],
    "Transpose": lambda v: tf.transpose(v, [0, 1]),
    "StridedSlice": lambda v: v[2:],
    "Merge": lambda v: v1.cond(tf.reduce_sum(v) > 0, lambda: tf.identity(v), lambda: v + 1.0),
}
