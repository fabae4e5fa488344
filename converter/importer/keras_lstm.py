"""Keeps Keras 3's LSTM layers whole while a model is traced.

Keras asks its backend for an optimised inner loop (``keras.src.backend.lstm``, cuDNN's on a GPU) before it builds a
loop of single steps. Here the backend answers with one call of a function marked ``litecl.lstm``, with attributes
``activation`` and ``go_backwards``, from (x [B,T,F], h [B,U], c [B,U], kernel [F,4U], recurrent kernel [U,4U], bias
[4U]) to (sequence [B,T,U], final h, final c). Gates are in Keras' order: input, forget, cell, output.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from litecl.converter.own_ops import LSTM

_ARGUMENTS = {"inputs", "initial_state_h", "initial_state_c", "mask", "kernel", "recurrent_kernel", "bias"}


@contextmanager
def whole_lstms(enabled: bool = True) -> Iterator[None]:
    """Trace LSTM layers that a fused operator can express as one call, in this context, if ``enabled``.

    If not, the hook still keeps Keras from tracing cuDNN's operator on a machine with a GPU. The hook is private to
    Keras; if a version lacks it or changed it, loops are traced instead.
    """
    backend: Any = getattr(getattr(keras, "src", None), "backend", None)
    original = getattr(backend, "lstm", None)
    if original is None or not set(inspect.signature(original).parameters) >= _ARGUMENTS:
        yield
        return
    backend.lstm = _lstm if enabled else _loop
    try:
        yield
    finally:
        backend.lstm = original


def _loop(*arguments: Any, **options: Any) -> Any:
    raise NotImplementedError('lstm="while" was set')


def _lstm(
    inputs: Any,
    initial_state_h: Any,
    initial_state_c: Any,
    mask: Any,
    kernel: Any,
    recurrent_kernel: Any,
    bias: Any,
    activation: Callable[[Any], Any],
    recurrent_activation: Callable[[Any], Any],
    return_sequences: bool = False,
    go_backwards: bool = False,
    unroll: bool = False,
    time_major: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """Compute what Keras asks of its backend. Raises NotImplementedError to make Keras trace a loop."""
    name = {keras.activations.tanh: "tanh", keras.activations.relu: "relu"}.get(activation)
    if name is None or recurrent_activation is not keras.activations.sigmoid or mask is not None or time_major:
        raise NotImplementedError("no fused operator computes this LSTM")
    units = recurrent_kernel.shape[0]
    sequence, h, c = _composite(name, go_backwards)(
        inputs,
        initial_state_h,
        initial_state_c,
        tf.convert_to_tensor(kernel),
        tf.convert_to_tensor(recurrent_kernel),
        tf.zeros(4 * units, inputs.dtype) if bias is None else tf.convert_to_tensor(bias),
    )
    return h, sequence if return_sequences else tf.expand_dims(h, 1), [h, c]


def _composite(activation: str, go_backwards: bool) -> Callable[..., Any]:
    implements = (
        f'name: "{LSTM.name}" attr {{ key: "activation" value {{ s: "{activation}" }} }} '
        f'attr {{ key: "go_backwards" value {{ b: {str(bool(go_backwards)).lower()} }} }}'
    )
    layer = partial(computed, activation, go_backwards)
    return tf.function(layer, experimental_implements=implements, autograph=False)  # type: ignore[no-any-return]


def computed(
    activation: str, go_backwards: bool, x: Any, h: Any, c: Any, kernel: Any, recurrent_kernel: Any, bias: Any
) -> tuple[Any, Any, Any]:
    """Compute the layer: the converter replaces a call, but ``tf.vectorized_map`` and gradients transform this body."""
    act = getattr(tf.nn, activation)

    def step(states: Any, x: Any) -> Any:
        h, c = states
        i, f, cell, o = tf.split(tf.matmul(x, kernel) + tf.matmul(h, recurrent_kernel) + bias, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * act(cell)
        return tf.sigmoid(o) * act(c), c

    steps = tf.transpose(tf.reverse(x, [1]) if go_backwards else x, (1, 0, 2))
    hs, cs = tf.scan(step, steps, (h, c))
    sequence = tf.ensure_shape(tf.transpose(hs, (1, 0, 2)), (*x.shape[:2], h.shape[1]))
    return sequence, tf.ensure_shape(hs[-1], h.shape), tf.ensure_shape(cs[-1], c.shape)
