"""Common parts of compositions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array

Composition = Callable[..., Any]


class Unfit(Exception):
    """An operator's form that its composition doesn't cover; the message says why."""


def known(tensor: Any, operand: str) -> Array:
    """Return the value of an operand. Raises Unfit if it isn't constant."""
    value = tf.get_static_value(tensor)
    if value is None:
        raise Unfit(f"its {operand} must be constant at conversion, and is computed")
    return np.asarray(value)


def sizes(tensor: Any, first: int = 0) -> list[int]:
    """Return the sizes of dimensions from ``first`` on. Raises Unfit if one is unknown."""
    shape = tensor.shape
    if shape.rank is None or None in shape.as_list()[first:]:
        raise Unfit("the shape of its operands must be known; give input_shapes")
    return [int(d) for d in shape.as_list()[first:]]


def dims(tensor: Any) -> list[Any]:
    """Return all sizes, as numbers if known, else as tensors."""
    if tensor.shape.rank is None:
        raise Unfit("the rank of its operands must be known")
    return [tf.shape(tensor)[i] if d is None else d for i, d in enumerate(tensor.shape.as_list())]


def int32(tensor: Any) -> Any:
    """Return indices or sizes as int32, as TFLite computes them."""
    return tf.cast(tensor, tf.int32)


def rows_of(splits: Any, count: Any) -> Any:
    """Return the row of each of ``count`` elements, given where rows begin and where the last one ends."""
    begins = splits[1:-1, None]
    marks = tf.scatter_nd(begins, tf.ones_like(begins[:, 0]), [count + 1])
    return tf.cumsum(marks)[:count]


def splits_of(lengths: Any) -> Any:
    """Return where rows of these lengths begin, and where the last one ends."""
    return tf.concat([tf.zeros([1], tf.int32), tf.cumsum(lengths)], 0)
