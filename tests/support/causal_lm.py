"""The sample's language model as files, and its logits in numpy without caches."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from litecl.interpreter.file.writer import write_file
from litecl.interpreter.graph import Array, Model, Signature
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.schema import TensorType
from litecl.sample.causal_lm import CausalLM as Sampled
from support.build import Graph, model


class CausalLM(Sampled):
    """A language model, and what it computes."""

    def embedder(self) -> Model:
        """Return the file that computes embeddings."""
        graphs, signatures = [], []
        for key, width in {f"prefill_embedder_{n}": n for n in self.prefills}.items() | {("decode_embedder", 1)}:
            g = Graph(key)
            tokens = g.input((1, width), TensorType.INT32)
            y = g.op(GATHER, [g.const(self.weights["table"]), tokens], GatherOptions(axis=0))
            signatures.append(Signature(key, {"token_ids": tokens}, {"embeddings": y}, len(graphs)))
            graphs.append(g.build(y))
        return model(*graphs, signatures=signatures)

    def write(self, folder: Path) -> Path:
        """Write the model of tokens to a folder; return the file."""
        path = folder / "model.tflite"
        write_file(self.model(), path)
        return path

    def logits(self, tokens: Sequence[int]) -> Array:
        """Return the logits after every token, [tokens, words], in float64: each token sees those up to its own."""
        w = {name: value.astype(np.float64) for name, value in self.weights.items()}
        x = w["table"][[*tokens]] + w["places"][: len(tokens)]
        q, k, v = (np.moveaxis((x @ w[n].T).reshape(len(x), self.heads, -1), 1, 0) for n in "qkv")
        scores = q @ np.swapaxes(k, 1, 2) / np.sqrt(self.width // self.heads)
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
        seen = np.exp(scores - scores.max(-1, keepdims=True))
        y = np.moveaxis(seen / seen.sum(-1, keepdims=True) @ v, 0, 1).reshape(len(x), -1)
        x = x + y @ w["o"].T
        x = x + np.maximum(x @ w["up"].T, 0) @ w["down"].T
        return np.asarray(x @ w["out"].T)

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        """Return the most likely tokens after a prompt."""
        tokens = [*prompt]
        for _ in range(count):
            tokens.append(int(self.logits(tokens)[-1].argmax()))
        return tokens[len(prompt) :]
