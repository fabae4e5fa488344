"""Lets TensorFlow load SavedModels that hold an optimizer, where the package that knows its class is not imported."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf


@contextmanager
def any_optimizer() -> Iterator[None]:
    """Give objects of unknown classes what an optimizer's variables are made by, while a SavedModel is loaded."""
    unknown = tf.__internal__.tracking.AutoTrackable  # what TensorFlow makes of them
    unknown.add_slot = _add_slot
    try:
        yield
    finally:
        del unknown.add_slot


def _add_slot(self: Any, var: Any, slot_name: str) -> Any:
    """Return a new variable like ``var``, into which the checkpoint is read."""
    return tf.Variable(tf.zeros(var.shape, var.dtype), trainable=False, name=f"{var.name.split(':')[0]}/{slot_name}")
