"""Traces Keras 3's TimeDistributed layers over an open number of steps.

Keras 3.15 itself, in a graph, then computes as many steps as the batch has rows. Here the steps are joined with the
batch's rows, which is right only for layers that compute each row alone: others are refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from litecl.interpreter.errors import ConversionError

_OPEN_SIZE = 32  # of other open dimensions, where a layer is tried

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
    try:
        mixes = _mixes_rows(self.layer, inputs)
    except Exception as error:
        raise ConversionError(
            f"{self.name}: its layer could not be tried on 4 rows, open dimensions {_OPEN_SIZE}; give input_shapes: "
            f"{error!s:.200}"
        ) from error
    if mixes:
        raise ConversionError(
            f"{self.name}: its layer mixes the rows of a batch, or draws at random; give the number of steps "
            "(input_shapes)"
        )
    options = {"training": training} if self.layer._call_has_training_arg else {}
    if mask is not None and self.layer._call_has_mask_arg:
        options["mask"] = _joined(mask)
    rows = self.layer.call(_joined(inputs), **options)
    result = tf.reshape(rows, tf.concat([tf.shape(inputs)[:2], tf.shape(rows)[1:]], 0))
    return tf.ensure_shape(result, (*inputs.shape[:2], *rows.shape[1:]))


def _mixes_rows(layer: Any, inputs: Any) -> bool:
    """Return whether a layer computes other values for the middle rows of a batch than for these rows alone."""
    shape = [4, *(_OPEN_SIZE if size is None else size for size in inputs.shape[2:])]
    with tf.init_scope(), keras.StatelessScope():
        rows = tf.random.stateless_uniform(shape, (1, 2), maxval=2.0)
        rows = tf.cast(rows if inputs.dtype.is_floating else tf.floor(rows), inputs.dtype)
        options = {"training": False} if layer._call_has_training_arg else {}
        together, alone = (layer.call(part, **options).numpy() for part in (rows, rows[1:3]))
    if together.shape[1:] != alone.shape[1:] or len(together) != 4:
        return True
    size = min(1.0, float(np.abs(together).max(initial=0)))  # small values are compared as exactly as large ones
    return not np.allclose(together[1:3], alone, 1e-3, 1e-4 * size, equal_nan=True)


def _joined(x: Any) -> Any:
    """Return batch and steps as one dimension."""
    rows = tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))
    return tf.ensure_shape(rows, (None, *x.shape[2:]))
