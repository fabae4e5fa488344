"""Gives Keras' attention layers KV caches while a model is traced."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from litecl.interpreter.errors import ConversionError

_LAYERS = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
_HIDDEN = 0.7  # of the lowest number


@dataclass
class Caches:
    """The caches of one trace: keys and values per attention layer, [1, heads, slots, depth].

    positions: of the tokens, [tokens]. given: by layer, in execution order; None to trace with empty caches, to find
    their shapes. updated: the caches after the tokens.
    """

    positions: Any
    slots: int
    given: Sequence[tuple[Any, Any]] | None = None
    updated: list[tuple[Any, Any]] = field(default_factory=list)

    def update(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Write keys and values of the tokens, [1, heads, tokens, depth], to the next layer's caches; return these."""
        before = self._empty(keys, values) if self.given is None else self.given[len(self.updated)]
        start = [0, 0, self.positions[0], 0]
        pair = zip(before, (keys, values), strict=True)
        self.updated.append(tuple(gen_xla_ops.xla_dynamic_update_slice(old, new, start) for old, new in pair))
        return self.updated[-1]

    def seen(self, window: int | None) -> Any:
        """Return which slots each token sees, [tokens, slots]: itself and those before, at most ``window`` in all."""
        slots, positions = tf.range(self.slots), self.positions[:, None]
        seen = slots <= positions
        return seen if window is None else seen & (slots > positions - window)

    def _empty(self, *new: Any) -> list[Any]:
        return [tf.zeros([1, x.shape[1], self.slots, x.shape[3]], x.dtype) for x in new]


@contextmanager
def cached_attention(caches: Caches) -> Iterator[None]:
    """Make attention layers read and update caches in this context: each token sees itself and those before it.

    The hook is private to Keras (``_compute_attention``, which takes projected queries, keys and values). The model's
    masks are ignored: generation has no padding, and text is causal.
    """
    originals = [layer._compute_attention for layer in _LAYERS]
    for layer in _LAYERS:
        layer._compute_attention = _attention(caches)
    try:
        yield
    finally:
        for layer, original in zip(_LAYERS, originals, strict=True):
            layer._compute_attention = original


@contextmanager
def causal_softmax() -> Iterator[None]:
    """Make Softmax layers only hide what a mask hides, in this context.

    Otherwise they also write zeros for rows that see nothing, which causal text doesn't have: each token sees itself.
    """
    original = keras.layers.Softmax.call

    def call(layer: Any, inputs: Any, mask: Any = None) -> Any:
        if mask is not None:
            seen = mask if mask.dtype == tf.bool else tf.cast(mask, tf.float32) > 0.5
            inputs = tf.where(seen, inputs, inputs.dtype.min * _HIDDEN)
        return original(layer, inputs)

    keras.layers.Softmax.call = call
    try:
        yield
    finally:
        keras.layers.Softmax.call = original


def _attention(caches: Caches) -> Callable[..., Any]:
    def attend(
        layer: Any,
        query: Any,
        key: Any,
        value: Any,
        attention_mask: Any = None,
        *arguments: Any,
        use_causal_mask: bool = False,
        **options: Any,
    ) -> tuple[Any, Any]:
        """Return the output, [1, tokens, heads, depth], for queries, keys and values of the tokens, and no scores."""
        _check(layer, query, attention_mask, use_causal_mask)
        repeats = getattr(layer, "num_repeats", 1)  # Keras repeats keys for queries that share them
        q, k, v = (tf.transpose(x, [0, 2, 1, 3]) for x in (query, key[:, :, ::repeats], value[:, :, ::repeats]))
        keys, values = caches.update(k, v)
        window = getattr(layer, "_sliding_window", None) or getattr(layer, "sliding_window", None)
        return _output(q * float(q.shape[3]) ** -0.5, keys, values, caches.seen(window)), None

    return attend


def _output(q: Any, keys: Any, values: Any, seen: Any) -> Any:
    """Return the output for queries [1, heads, tokens, depth]; several may share the keys of one head."""
    (_, heads, _, depth), shared = q.shape, keys.shape[1]
    q = tf.reshape(q, [1, shared, -1, depth])
    if heads != shared:
        seen = tf.tile(seen, [heads // shared, 1])
    scores = tf.matmul(q, keys, transpose_b=True)
    scores = tf.where(seen, scores, scores.dtype.min * _HIDDEN)
    y = tf.matmul(tf.nn.softmax(scores), values)
    return tf.transpose(tf.reshape(y, [1, heads, -1, values.shape[3]]), [0, 2, 1, 3])


def _check(layer: Any, query: Any, mask: Any, causal: bool) -> None:
    if mask is None and not causal:
        raise ConversionError(f"the attention layer {layer.name!r} sees later tokens: expected use_causal_mask=True")
    if query.shape.rank != 4:
        raise ConversionError(f"the attention layer {layer.name!r}: expected one axis of tokens, got {query.shape}")
