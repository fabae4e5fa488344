"""Language models step by step on LiteRT's kernels, fed by code that is independent of litecl."""

from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.interpreter.graph import Array


class Steps:
    """A model's decode signature, one token at a time. embedder: of a model that takes embeddings. resolver: of
    LiteRT's kernels.
    """

    def __init__(
        self,
        model: bytes,
        embedder: bytes | None = None,
        window: int = 0,
        resolver: OpResolverType = OpResolverType.BUILTIN_REF,
    ) -> None:
        self._runner = _runner(model, "decode", resolver)
        self._embed = None if embedder is None else _runner(embedder, "decode_embedder", resolver)
        self._window = window
        self._details = self._runner.get_input_details()
        names = [name for name in self._details if name.startswith("kv_cache")]
        self._caches = {name: np.zeros(self._details[name]["shape"], self._details[name]["dtype"]) for name in names}
        self._position = 0

    def logits(self, token: int) -> Array:
        """Return the logits after one more token."""
        given: dict[str, Any] = dict(self._caches)
        for name, details in self._details.items():
            if name not in given:
                given[name] = self._value(name, token, tuple(details["shape"]), details["dtype"])
        results = self._runner(**given)
        self._caches = {name: results[name] for name in self._caches}
        self._position += 1
        return np.array(results["logits"]).reshape(-1)

    def _value(self, name: str, token: int, shape: tuple[int, ...], dtype: Any) -> Array:
        if name == "tokens":
            return np.full(shape, token, dtype)
        if name == "embeddings":
            assert self._embed is not None
            (input_name,) = self._embed.get_input_details()
            return np.array(self._embed(**{input_name: np.full((1, 1), token, np.int32)})["embeddings"])
        if name == "input_pos":
            return np.full(shape, self._position, dtype)
        if name == "param_tensor":
            return np.array([self._position, self._position + 1, self._position + 1, 0, 0, 0, 0], dtype).reshape(shape)
        seen = np.zeros(shape, np.bool_)
        if name == "mask":
            seen[..., : self._position + 1] = True
        else:
            assert name == "local_mask"
            for before in range(min(self._window, self._position + 1)):
                seen[..., (self._position - before) % shape[-1]] = True
        return seen if dtype == np.bool_ else np.where(seen, 0, -0.7 * np.finfo(dtype).max).astype(dtype)


def _runner(content: bytes, key: str, resolver: OpResolverType) -> Any:
    made = LiteRT(model_content=content, experimental_op_resolver_type=resolver)
    return made.get_signature_runner(key)


def greedy(steps: Steps, prompt: list[int], count: int) -> tuple[list[int], list[Array]]:
    """Return the most likely tokens after a prompt, and the logits of each."""
    for token in prompt[:-1]:
        steps.logits(token)
    tokens, all_logits = [prompt[-1]], []
    for _ in range(count):
        all_logits.append(steps.logits(tokens[-1]))
        tokens.append(int(all_logits[-1].argmax()))
    return tokens[1:], all_logits


def content(path: Path | None) -> bytes | None:
    """Return the content of a file that need not be there."""
    return None if path is None else path.read_bytes()
