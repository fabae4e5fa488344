"""Embedding tables that live in a separate file."""

import math
from collections.abc import Sequence

import numpy as np

from litecl.generate.runners import Caches, Runner
from litecl.generate.signatures import Entry, Step
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array


class Embedder:
    """Looks up tokens' embeddings. name: of the model input that takes them. steps: its signatures, widest first."""

    def __init__(self, name: str, runner: Runner, steps: Sequence[Step]) -> None:
        self.runner = runner
        self._steps = steps
        for step in self._steps:
            outputs = [entry.name for entry in step.outputs]
            if name not in outputs and len(outputs) != 1:
                raise ModelError(f"embedder, signature {step.key!r}: expected an output {name!r}, got {outputs}")
        self._name = name
        self._caches = Caches()  # none, but with the runner's preparations
        self._sized: dict[tuple[str, int], Step] = {}

    def __call__(self, tokens: Array, wanted: Entry) -> Array:
        """Return the embeddings of tokens in an input's shape. Raises ModelError if they don't fit it."""
        rows = []
        for step, part in self._parts(tokens):
            sized = self._sized.get((step.key, len(part)))
            if sized is None:
                sized = self._sized[step.key, len(part)] = step.with_sizes(len(part), 0)
            (entry,) = sized.inputs
            given = {entry.name: part.astype(entry.dtype).reshape(entry.shape)}
            results = self.runner.run(sized, given, self._caches)
            name = self._name if self._name in results else next(iter(results))
            rows.append(np.asarray(results[name]).reshape(len(part), -1))
        embeddings = np.concatenate(rows) if len(rows) > 1 else rows[0]
        if embeddings.size != math.prod(wanted.shape) or embeddings.dtype != wanted.dtype:
            raise ModelError(
                f"the embedder computes {embeddings.dtype}{[*embeddings.shape]}, "
                f"the model takes {wanted.dtype}{[*wanted.shape]}"
            )
        return embeddings.reshape(wanted.shape)

    def _parts(self, tokens: Array) -> list[tuple[Step, Array]]:
        """Split tokens among the signatures, widest first. Raises ModelError if some are left."""
        parts: list[tuple[Step, Array]] = []
        for step in self._steps:
            width = step.width or len(tokens)
            while width and len(tokens) >= width:
                parts.append((step, tokens[:width]))
                tokens = tokens[width:]
        if len(tokens):
            raise ModelError(f"the embedder has no signature for {len(tokens)} tokens or fewer")
        return parts
