"""Decodes frames to text, by connectionist temporal classification."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, dims, sizes


def _greedy(attrs: Mapping[str, Any], logits: Any, lengths: Any) -> Any:
    """Return the best class per frame for logits [T,B,C], without blanks and (if merged) repetitions."""
    frames, batch, _ = dims(logits)
    classes = sizes(logits, 2)[0]
    best = tf.transpose(tf.argmax(logits, -1, tf.int32))
    inside = tf.range(frames)[None] < lengths[:, None]
    kept = tf.logical_and(inside, best != attrs["blank_index"] % classes)
    if attrs["merge_repeated"]:
        before = tf.concat([tf.fill([batch, 1], -1), best[:, :-1]], 1)
        kept = tf.logical_and(kept, best != before)
    places = tf.cumsum(tf.cast(kept, tf.int32), 1) - 1
    positions = tf.where(kept)
    columns = tf.gather_nd(places, positions)
    indices = tf.stack([positions[:, 0], tf.cast(columns, tf.int64)], 1)
    longest = tf.maximum(tf.reduce_max(places), -1) + 1
    shape = tf.cast(tf.stack([batch, longest]), tf.int64)
    largest = tf.where(inside, tf.transpose(tf.reduce_max(logits, -1)), 0)
    return indices, tf.cast(tf.gather_nd(best, positions), tf.int64), shape, -tf.reduce_sum(largest, 1, keepdims=True)


COMPOSITIONS: dict[str, Composition] = {"CTCGreedyDecoder": _greedy}
