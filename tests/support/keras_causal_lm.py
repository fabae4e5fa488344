"""Small causal language models of Keras layers with random weights, and the files made from them."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array

L = keras.layers
WORDS, SLOTS, DEPTH = 300, 64, 8


@keras.saving.register_keras_serializable()
class Places(L.Layer):
    """Embeddings of tokens and of their positions, which are counted, or rows of a table."""

    def __init__(self, width: int, counted: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.width = width
        self.words, self.counted = L.Embedding(WORDS, width), counted
        self.places = L.Embedding(SLOTS, width, embeddings_initializer="normal")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "width": self.width, "counted": self.counted}

    def build(self, shape: Any) -> None:
        self.words.build(shape)
        self.places.build(shape)

    def call(self, x: Any) -> Any:
        count = keras.ops.shape(x)[1]
        if self.counted:
            return self.words(x) + self.places(keras.ops.arange(count))
        return self.words(x) + tf.convert_to_tensor(self.places.embeddings)[tf.newaxis, :count, :]


class HiddenLater(L.Layer):
    """Attention with a causal mask of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = L.MultiHeadAttention(4, DEPTH)

    def build(self, shape: Any) -> None:
        self.attention.build(shape, shape)

    def call(self, x: Any) -> Any:
        count = keras.ops.shape(x)[1]
        rows, columns = keras.ops.arange(count)[:, None], keras.ops.arange(count)
        return self.attention(x, x, attention_mask=(rows >= columns)[None])


def causal(attention: Any) -> Callable[[Any], Any]:
    return lambda x: attention(x, x, use_causal_mask=True)


def model(attention: Callable[[], Callable[[Any], Any]], layers: int = 2, counted: bool = True, **last: Any) -> Any:
    """Return a model of tokens to logits."""
    width = 4 * DEPTH
    x = tokens = keras.Input((None,), dtype="int32")
    x = Places(width, counted)(x)
    for _ in range(layers):
        x = x + attention()(L.LayerNormalization(epsilon=1e-5)(x))
        x = x + L.Dense(width)(L.Dense(4 * width, activation="gelu")(L.LayerNormalization()(x)))
    return keras.Model(tokens, L.Dense(WORDS, **last)(x))


class Decoder(L.Layer):
    """Tokens to logits; with caches, [1, slots, heads, depth] each, to logits and caches."""

    def __init__(self) -> None:
        super().__init__()
        self.table = L.Embedding(WORDS, 4 * DEPTH, embeddings_initializer="normal")
        self.dense = [[L.Dense(4 * DEPTH) for _ in "qkvo"] for _ in range(2)]

    def build(self, shape: Any) -> None:
        self.table.build(shape)
        for layer in (each for four in self.dense for each in four):
            layer.build((1, 4 * DEPTH))

    def call(self, tokens: Any, caches: Any = None, start: Any = 0) -> Any:
        empty = keras.ops.zeros([1, keras.ops.shape(tokens)[1], 4, DEPTH])
        x, after = self.table(tokens), []
        for (query, key, value, out), given in zip(self.dense, caches or [(empty, empty)] * 2, strict=True):
            q, *new = (keras.ops.reshape(each(x), [1, -1, 4, DEPTH]) for each in (query, key, value))
            k, v = (keras.ops.slice_update(old, [0, start, 0, 0], x) for old, x in zip(given, new, strict=True))
            after.append((k, v))
            slots, places = (keras.ops.arange(keras.ops.shape(each)[1]) for each in (k, q))
            scores = keras.ops.einsum("bqhd,bkhd->bhqk", q, k)
            scores = keras.ops.where(slots <= start + places[:, None], scores, -1e30)
            y = keras.ops.einsum("bhqk,bkhd->bqhd", keras.ops.softmax(scores), v)
            x = x + out(keras.ops.reshape(y, [1, -1, 4 * DEPTH]))
        logits = keras.ops.matmul(x, keras.ops.transpose(self.table.embeddings))
        return logits if caches is None else (logits, after)


class Hub(keras.Model):
    """A model with the methods of KerasHub's. stacked: its caches are one tensor; else a pair for every layer."""

    def __init__(self, stacked: bool) -> None:
        decoder = Decoder()
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in ("token_ids", "padding_mask")}
        super().__init__(inputs=inputs, outputs=decoder(inputs["token_ids"]))
        self.decoder, self.stacked = decoder, stacked

    def _build_cache(self, token_ids: Any, pictures: Any) -> Any:
        empty = keras.ops.zeros([1, token_ids.shape[1], 4, DEPTH])
        return None, self._joined([(empty, empty)] * 2)

    def call_with_cache(self, token_ids: Any, cache: Any, cache_update_index: Any) -> Any:
        by_layer = [cache[:, i, ...] for i in range(2)] if self.stacked else cache
        given = [(each[:, 0, ...], each[:, 1, ...]) for each in by_layer] if self.stacked else by_layer
        logits, after = self.decoder(token_ids, given, cache_update_index)
        return logits, None, self._joined(after)

    def _joined(self, caches: Any) -> Any:
        if not self.stacked:
            return tuple(caches)
        return keras.ops.stack([keras.ops.stack(pair, 1) for pair in caches], 1)


def logits(model: Any, tokens: Array) -> Array:
    """Return Keras' logits for a whole text, [tokens, words]."""
    given = {"token_ids": tokens[None], "padding_mask": np.ones_like(tokens[None])}
    return np.asarray(model(given if isinstance(model, Hub) else tokens[None], training=False))[0]


def runtimes(content: bytes) -> dict[str, Any]:
    """Return interpreters of all kinds."""
    made = {
        "LiteRT": LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF),
        "numpy": Interpreter(content),
        "device": Interpreter(content, delegates=[CLDelegate(dynamic_range="reference")]),
    }
    for each in made.values():
        each.allocate_tensors()
    return made


def read(interpreter: Any, tokens: Sequence[int], prefill: int) -> tuple[Array, dict[str, Array]]:
    """Return the logits of all tokens but those of the prefill, which are read one by one, and the caches."""
    first, decode = (interpreter.get_signature_runner(key) for key in (f"prefill_{prefill}", "decode"))
    details = decode.get_input_details()
    caches = {name: np.zeros(each["shape"], each["dtype"]) for name, each in details.items() if "cache" in name}
    found, position = [], 0
    for runner, width in [(first, prefill)] + [(decode, 1)] * (len(tokens) - prefill):
        at = np.arange(position, position + width, dtype=np.int32)
        results = runner(tokens=np.array(tokens, np.int32)[None, at], input_pos=at, **caches)
        caches = {name: np.array(results[name]) for name in caches}
        found += [np.array(results["logits"]).reshape(-1)] if width == 1 else []
        position += width
    return np.array(found), caches
