"""Loads SavedModels that hold an optimizer whose class isn't imported."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf


@contextmanager
def any_optimizer() -> Iterator[None]:
    """Let objects of unknown classes make an optimizer's variables while a SavedModel is loaded."""
    unknown = tf.__internal__.tracking.AutoTrackable  # TensorFlow's stand-in for them
    unknown.add_slot = _add_slot
    try:
        yield
    finally:
        del unknown.add_slot


def _add_slot(self: Any, var: Any, slot_name: str) -> Any:
    """Return a new variable like ``var``, which the checkpoint is read into."""
    return tf.Variable(tf.zeros(var.shape, var.dtype), trainable=False, name=f"{var.name.split(':')[0]}/{slot_name}")
