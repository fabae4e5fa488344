"""Traces Keras 3's TimeDistributed layers over an open number of steps.

Keras 3.15 itself, in a graph, then computes as many steps as the batch has rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from litecl.interpreter.errors import ConversionError

_KERAS_CALL = keras.layers.TimeDistributed.call


@contextmanager
def all_steps() -> Iterator[None]:
    """Apply layers to all steps at once, as rows of one batch, in this context, if the number of steps is open."""
    keras.layers.TimeDistributed.call = _call
    try:
        yield
    finally:
        keras.layers.TimeDistributed.call = _KERAS_CALL


def _call(self: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
    if inputs.shape[1] is not None:
        return _KERAS_CALL(self, inputs, training=training, mask=mask)
    if any(getattr(each, "stateful", False) for each in self.layer._flatten_layers()):
        raise ConversionError(f"{self.name}: steps of a stateful layer run in turn; give their number (input_shapes)")
    options = {"training": training} if self.layer._call_has_training_arg else {}
    if mask is not None and self.layer._call_has_mask_arg:
        options["mask"] = _joined(mask)
    rows = self.layer.call(_joined(inputs), **options)
    result = tf.reshape(rows, tf.concat([tf.shape(inputs)[:2], tf.shape(rows)[1:]], 0))
    return tf.ensure_shape(result, (*inputs.shape[:2], *rows.shape[1:]))


def _joined(x: Any) -> Any:
    """Return batch and steps as one dimension."""
    rows = tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))
    return tf.ensure_shape(rows, (None, *x.shape[2:]))
