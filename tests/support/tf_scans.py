"""The selective scan of a Mamba block (Gu and Dao, 2023, algorithm 2), as a TensorFlow function and a Keras layer.

For every channel a state of several numbers decays, takes in x, and is read: h = exp(dt A) h + dt B x, y = C h.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array


def decays(channels: int, states: int) -> Array:
    """Return A: channels x states, negative."""
    drawn = np.random.default_rng(0).standard_normal((channels, states))
    return -np.exp(drawn).astype(np.float32)


def selective_scan(x: Any, rate: Any, b: Any, c: Any) -> Any:
    """Scan x, steps x channels. rate: dt before softplus, of the same shape. b, c: steps x states. Returns y."""
    steps, channels = x.shape
    decay = tf.constant(decays(channels, b.shape[1]))

    def body(i: Any, state: Any, rows: Any) -> Any:
        dt = tf.nn.softplus(rate[i])[:, None]
        state = tf.exp(dt * decay) * state + dt * b[i][None, :] * x[i][:, None]
        return i + 1, state, rows.write(i, tf.reduce_sum(state * c[i][None, :], -1))

    rows = tf.TensorArray(tf.float32, steps, element_shape=[channels])
    first = [tf.constant(0), tf.zeros(decay.shape), rows]
    return tf.while_loop(lambda i, state, rows: i < steps, body, first)[2].stack()


class SelectiveScan(keras.layers.Layer):
    """The same of a batch, by ``tf.scan``, with x's own share in the result (``D``)."""

    def call(self, x: Any, rate: Any, b: Any, c: Any) -> Any:
        batch, _, channels = x.shape
        decay, share = decays(channels, b.shape[-1]), np.linspace(-1, 1, channels, dtype=np.float32)

        def step(before: Any, at: Any) -> Any:
            x, dt, b, c = at
            state = tf.exp(dt[..., None] * decay) * before[0] + (dt * x)[..., None] * b[:, None, :]
            return state, tf.einsum("bcs,bs->bc", state, c)

        by_step = tuple(tf.transpose(each, (1, 0, 2)) for each in (x, tf.nn.softplus(rate), b, c))
        first = tf.zeros((batch, *decay.shape)), tf.zeros((batch, channels))
        return tf.transpose(tf.scan(step, by_step, first)[1], (1, 0, 2)) + share * x
