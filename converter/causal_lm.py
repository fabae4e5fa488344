"""Checks a causal language model with KV caches against the original, on a text that fills the caches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from litecl.converter.embeddings import with_embeddings
from litecl.interpreter.errors import ConversionError, brief
from litecl.interpreter.graph import CONTEXT_LENGTH, Array, Model
from litecl.interpreter.interpreter import Interpreter

_PREFILLS = (8, 32)
_LAST = 4  # tokens decoded one by one at the end of the text, to compare their logits


def prefills(cache_length: int, given: Sequence[int] | None) -> list[int]:
    """Return the prefill lengths in order. Raises ConversionError for lengths that caches can't have or hold."""
    if cache_length < 2:
        raise ConversionError(f"cache_length: expected at least 2 tokens, got {cache_length}")
    lengths = [n for n in _PREFILLS if n <= cache_length] if given is None else sorted({*given})
    if lengths and not 2 <= lengths[0] <= lengths[-1] <= cache_length:
        raise ConversionError(f"prefill_lengths: expected numbers from 2 to {cache_length}, got {lengths}")
    return lengths


def checked(model: Model, length: int, logits_of: Callable[[Array], Array], tolerance: float) -> Model:
    """Fill the model's caches with random tokens; return it with its ``CONTEXT_LENGTH`` and EMBEDDING_LOOKUPs.

    logits_of: the logits [tokens, vocabulary] of a text [tokens] without caches. tolerance: of the largest logit.
    Raises ConversionError if the logits differ: some layer that mixes tokens has no cache.
    """
    model = replace(model, subgraphs=tuple(map(with_embeddings, model.subgraphs)))
    tokens, expected = _text(length, logits_of)
    scale = float(np.abs(expected).max())
    for position, logits in _steps(model, tokens):
        difference = float(np.abs(logits - expected[position]).max())
        if not difference <= tolerance * scale:
            raise ConversionError(
                f"with caches the model computes other logits than without: up to {difference:.3g} apart at token "
                f"{position} of {length}, of at most {scale:.3g}. Expected causal attention layers, positions from "
                "ops.arange(ops.shape(x)[1]) or the first rows of a table, and no other layer that mixes tokens"
            )
    return replace(model, metadata={**model.metadata, CONTEXT_LENGTH: str(length).encode()})


def _text(length: int, logits_of: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Return random tokens and their logits. Raises ConversionError if the model returns probabilities."""
    words = logits_of(np.ones(2, np.int32)).shape[-1]
    tokens = np.random.default_rng(0).integers(1, max(2, words), length).astype(np.int32)  # 0 may be padding
    try:
        expected = logits_of(tokens)
    except Exception as error:
        raise ConversionError(
            f"the model does not take {length} tokens, which the caches hold: {brief(str(error))}"
        ) from error
    if expected.min() >= 0 and np.allclose(expected.sum(-1), 1, atol=1e-3):
        raise ConversionError("the model returns probabilities: expected logits, without the softmax of the last layer")
    return tokens, expected


def _steps(model: Model, tokens: Array) -> Iterator[tuple[int, Array]]:
    """Read a text, widest steps first; yield position and logits of each token that is decoded alone."""
    interpreter, length = Interpreter(model), len(tokens)
    runners = {_width(each.key): interpreter.get_signature_runner(each.key) for each in model.signatures}
    details = runners[1].get_input_details()
    caches = {name: np.zeros(each["shape"], each["dtype"]) for name, each in details.items() if "cache" in name}
    position = 0
    while position < length:
        width = max(n for n in runners if n <= max(1, length - _LAST - position))
        at = np.arange(position, position + width, dtype=np.int32)
        results = runners[width](tokens=tokens[None, at], input_pos=at, **caches)
        caches = {name: results[name] for name in caches}
        if width == 1:
            yield position, results["logits"].reshape(-1)
        position += width


def _width(key: str) -> int:
    """Return how many tokens a signature takes per call."""
    return int(key.removeprefix("prefill_")) if key != "decode" else 1
