"""Composites: functions that are marked with what they implement."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array

random = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def composite(implements: str, **attributes: Any) -> Callable[[Callable[..., Any]], Any]:
    return tf.function(experimental_implements=implements, experimental_attributes=attributes, autograph=False)


TABLE = normal(10, 4)


def lookup(name: str) -> Callable[[Any], Any]:
    @composite(name)
    def rows(table: Any, ids: Any) -> Any:
        return tf.matmul(tf.one_hot(ids, 10), table)

    return lambda ids: rows(tf.constant(TABLE), ids) * 2.0


DEPTH, _CELLS, _OUT = 3, 5, 4


def cell(name: str, projected: bool, normalized: bool) -> Callable[[Any], Any]:
    """One step of lingvo's cell from a state of zeros, in TensorFlow."""
    coupled = "Couple" in name
    gates, out = 3 if coupled else 4, _OUT if projected else _CELLS
    weights, bias = normal(DEPTH + out, gates * _CELLS), normal(gates * _CELLS)
    projection, scales = normal(_CELLS, _OUT) if projected else normal(1), normal(gates * _CELLS)

    def norm(z: Any) -> Any:
        mean, variance = tf.nn.moments(z, [1], keepdims=True)
        return (z - mean) * tf.math.rsqrt(variance + 1e-8)

    @composite(name)
    def cell(x: Any, weights: Any, bias: Any, projection: Any, scales: Any) -> Any:
        z = tf.split(tf.matmul(x, weights[:DEPTH]), gates, 1)
        if normalized:
            z = [norm(part) * scale for part, scale in zip(z, tf.split(scales, gates), strict=True)]
        z = [part + b for part, b in zip(z, tf.split(bias, gates), strict=True)]
        forget = tf.sigmoid(z[-2])
        accept = 1 - forget if coupled else tf.sigmoid(z[1])
        h = tf.sigmoid(z[-1]) * tf.tanh(tf.clip_by_value(accept * tf.tanh(z[0]), -10.0, 10.0))
        return tf.matmul(h, projection) if projected else h

    return lambda x: cell(x, *map(tf.constant, (weights, bias, projection, scales)))
