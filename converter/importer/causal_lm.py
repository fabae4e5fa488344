"""Traces a causal language model of Keras with caches, once for every number of tokens per call."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf

from litecl.converter.graph import Module
from litecl.converter.importer.cached_attention import Caches, cached_attention, causal_softmax
from litecl.converter.importer.frontends import eagerly, from_concrete_functions, require_keras
from litecl.converter.passes.tensorflow.positions import use_positions
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array

_Pairs = Sequence[tuple[Any, Any]]  # (keys, values) caches by layer


class _Steps(Protocol):
    """A model that reads several tokens per call. specs: of the caches. length: of the trace; None leaves it open."""

    specs: _Pairs

    def length(self, width: int) -> int | None: ...

    def run(self, tokens: Any, positions: Any, caches: _Pairs) -> tuple[Any, _Pairs]:
        """Return logits [1, tokens, vocabulary] of ``tokens`` [1, tokens] at ``positions`` [tokens], and the caches."""
        ...


@eagerly
def from_keras_causal_lm(model: Any, cache_length: int, prefill_lengths: Sequence[int]) -> dict[str, Module]:
    """Return the modules ``prefill_N`` and ``decode`` of a causal language model; see ``Converter``."""
    require_keras(model)
    steps: _Steps = _Hub(model, cache_length) if hasattr(model, "call_with_cache") else _Layers(model, cache_length)
    widths = {f"prefill_{n}": n for n in prefill_lengths} | {"decode": 1}
    return {key: _module(steps, width, logits=key == "decode") for key, width in widths.items()}


@eagerly
def logits_of(model: Any, tokens: Array) -> Array:
    """Return Keras' own logits [tokens, vocabulary] for a text."""
    inputs: Any = tf.constant(tokens[None])
    if isinstance(getattr(model, "input", None), Mapping):
        inputs = {name: inputs if "token" in name else tf.ones_like(inputs) for name in model.input}
    logits: Array = tf.cast(model(inputs, training=False), tf.float32)[0].numpy()
    return logits


def tolerance(model: Any) -> float:
    """Return the tolerance for logits, relative to the largest: litecl computes float16 in float32."""
    return 1e-3 if {layer.compute_dtype for layer in model._flatten_layers()} <= {"float32"} else 0.05


class _Hub:
    """A model with KerasHub's methods: https://keras.io/keras_hub/api/base_classes/causal_lm."""

    def __init__(self, model: Any, slots: int) -> None:
        self._model = model
        required = [
            each for each in inspect.signature(model._build_cache).parameters.values() if each.default is each.empty
        ]
        others = [None] * (len(required) - 1)  # images and audio

        def built(tokens: Any) -> Any:
            return model._build_cache(tokens, *others)[1]

        tokens = tf.TensorSpec([1, slots], tf.int32)
        caches = tf.function(built, autograph=False).get_concrete_function(tokens).structured_outputs
        self._is_stacked = not isinstance(caches, Sequence)
        self.specs = _unstacked(caches) if self._is_stacked else caches
        if not _are_pairs(self.specs, slots):
            raise ConversionError(f"{type(model).__name__}: expected caches of keys and values by layer, got {caches}")

    def length(self, width: int) -> int | None:
        return width

    def run(self, tokens: Any, positions: Any, caches: _Pairs) -> tuple[Any, _Pairs]:
        given = tf.stack([tf.stack(pair, 1) for pair in caches], 1) if self._is_stacked else tuple(map(tuple, caches))
        with causal_softmax():
            logits, _, updated = self._model.call_with_cache(tokens, given, positions[0])
        if self._is_stacked:
            updated = [tf.unstack(layer, axis=1) for layer in tf.unstack(updated, axis=1)]
        return logits, updated


def _unstacked(joint: Any) -> _Pairs:
    """Split the joint cache of all layers, [1, layers, 2, slots, heads, depth], into specs by layer."""
    if joint.shape.rank != 6 or joint.shape[2] != 2:
        return []
    each = tf.TensorSpec([joint.shape[0], *joint.shape[3:]], joint.dtype)
    return [(each, each)] * int(joint.shape[1])


def _are_pairs(specs: Any, slots: int) -> bool:
    leaves = tf.nest.flatten(specs)
    return (
        isinstance(specs, Sequence)
        and len(leaves) == 2 * len(specs) > 0
        and all(each.shape.rank == 4 and each.shape[0] == 1 and slots in each.shape for each in leaves)
    )


class _Layers:
    """A model from tokens to logits with Keras' own attention layers."""

    def __init__(self, model: Any, slots: int) -> None:
        if len(getattr(model, "inputs", None) or ()) != 1:
            raise ConversionError(f"expected a model of one input, tokens, got {getattr(model, 'inputs', None)}")
        self._model, self._slots = model, slots
        specs = [tf.TensorSpec([1, None], tf.int32), tf.TensorSpec([None], tf.int32)]
        function = tf.function(lambda tokens, positions: self.run(tokens, positions, None), autograph=False)
        logits, self.specs = function.get_concrete_function(*specs).structured_outputs
        if getattr(logits, "shape", tf.TensorShape(None)).rank != 3 or logits.shape[2] is None:
            raise ConversionError(f"expected a model that returns logits [batch, tokens, vocabulary], got {logits}")
        if not self.specs:
            raise ConversionError("expected layers MultiHeadAttention or GroupQueryAttention, got none")

    def length(self, width: int) -> int | None:
        return None

    def run(self, tokens: Any, positions: Any, caches: _Pairs | None) -> tuple[Any, _Pairs]:
        updating = Caches(positions, self._slots, caches)
        with cached_attention(updating):
            return self._model(tokens, training=False), updating.updated


def _module(steps: _Steps, width: int, logits: bool) -> Module:
    """Return the module of a signature, with the exporters' names."""
    names = [(f"kv_cache_k_{i}", f"kv_cache_v_{i}") for i in range(len(steps.specs))]
    traced = steps.length(width)
    specs = {"tokens": tf.TensorSpec([1, traced], tf.int32), "input_pos": tf.TensorSpec([traced], tf.int32)}
    for pair, given in zip(names, steps.specs, strict=True):
        specs |= {name: tf.TensorSpec(spec.shape, spec.dtype) for name, spec in zip(pair, given, strict=True)}

    def run(**given: Any) -> dict[str, Any]:
        caches = [(given[k], given[v]) for k, v in names]
        logits_out, updated = steps.run(given["tokens"], given["input_pos"], caches)
        results = {name: x for pair, xs in zip(names, updated, strict=True) for name, x in zip(pair, xs, strict=True)}
        return results | ({"logits": logits_out} if logits else {})

    concrete = tf.function(run, autograph=False).get_concrete_function(**specs)
    (module,) = from_concrete_functions([concrete]).values()
    if traced is None:
        _set_width(module, width)
    return module


def _set_width(module: Module, width: int) -> None:
    """Fix the number of tokens of a module traced for any number; it reads them at the positions given."""
    inputs = dict(zip(module.input_names, module.main.inputs, strict=True))
    use_positions(module.main, inputs["input_pos"])
    inputs["tokens"].shape, inputs["input_pos"].shape = (1, width), (width,)
    module.reshaped = True
