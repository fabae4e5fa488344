"""A small language model with random weights, whose caches go in and out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from litecl.interpreter.graph import Array, Model, Signature, Subgraph
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.perf.models.build import Graph, model, randn


@dataclass(frozen=True)
class CausalLM:
    """One layer of attention with ``heads`` and one of a perceptron. slots: of its caches. prefills: widths."""

    words: int = 300
    width: int = 16
    heads: int = 2
    slots: int = 64
    prefills: Sequence[int] = (16, 4)
    weights: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng, d = np.random.default_rng(11), self.width
        shapes = {"table": (self.words, d), "places": (self.slots, d), "up": (2 * d, d), "down": (d, 2 * d)}
        shapes |= dict.fromkeys(("q", "k", "v", "o"), (d, d)) | {"out": (self.words, d)}
        self.weights.update({name: randn(rng, *shape, scale=shape[-1] ** -0.5) for name, shape in shapes.items()})
        self.weights["table"] *= 4  # so that the next word follows from the words before

    def model(self, *, embeddings: bool = False) -> Model:
        """Return prefill and decode signatures, of tokens or of embeddings."""
        keys = {f"prefill_{width}": width for width in self.prefills} | {"decode": 1}
        made = [self._step(index, key, width, embeddings) for index, (key, width) in enumerate(keys.items())]
        return model(*(graph for graph, _ in made), signatures=[signature for _, signature in made])

    def _step(self, index: int, key: str, width: int, embeddings: bool) -> tuple[Subgraph, Signature]:
        g, d, depth = Graph(key), self.width, self.width // self.heads
        shape = (1, self.heads, self.slots, depth)
        inputs = {
            "embeddings" if embeddings else "tokens": g.input((1, width, d))
            if embeddings
            else g.input((1, width), TensorType.INT32),
            "input_pos": g.input((width,), TensorType.INT32),
            "mask": g.input((1, 1, width, self.slots)),
            "kv_cache_k_0": g.input(shape),
            "kv_cache_v_0": g.input(shape),
        }
        first, places, mask, k_before, v_before = inputs.values()
        x = first if embeddings else g.op(GATHER, [g.const(self.weights["table"]), first], GatherOptions(axis=0))
        x = self._reshaped(g, x, (width, d))
        x = g.op(ADD, [x, g.op(GATHER, [g.const(self.weights["places"]), places], GatherOptions(axis=0))], AddOptions())
        q, k_new, v_new = (self._heads(g, self._product(g, x, n), width) for n in "qkv")
        start = g.op(SLICE, [places, g.const(np.array([0], np.int32)), g.const(np.array([1], np.int32))], NoOptions())
        zero = g.const(np.zeros(1, np.int32))
        begin = g.op(CONCATENATION, [zero, zero, start, zero], ConcatenationOptions(axis=0))
        k = g.op(DYNAMIC_UPDATE_SLICE, [k_before, k_new, begin], NoOptions())
        v = g.op(DYNAMIC_UPDATE_SLICE, [v_before, v_new, begin], NoOptions())
        scores = g.op(BATCH_MATMUL, [q, k], BatchMatMulOptions(adj_y=True))
        scores = g.op(MUL, [scores, g.const(np.float32(depth**-0.5))], MulOptions())
        seen = g.op(SOFTMAX, [g.op(ADD, [scores, mask], AddOptions())], SoftmaxOptions(beta=1.0))
        y = g.op(BATCH_MATMUL, [seen, v], BatchMatMulOptions())
        y = g.op(TRANSPOSE, [y, g.const(np.array([0, 2, 1, 3], np.int32))], NoOptions())
        x = g.op(ADD, [x, self._product(g, self._reshaped(g, y, (width, d)), "o")], AddOptions())
        up = self._product(g, x, "up", FullyConnectedOptions(ActivationFunctionType.RELU))
        x = g.op(ADD, [x, self._product(g, up, "down")], AddOptions())
        outputs = {"kv_cache_k_0": k, "kv_cache_v_0": v}
        if key == "decode":
            outputs["logits"] = self._reshaped(g, self._product(g, x, "out"), (1, width, self.words))
        return g.build(*outputs.values()), Signature(key, inputs, outputs, index)

    def _product(self, g: Graph, x: int, name: str, options: FullyConnectedOptions | None = None) -> int:
        bias = self.weights.get(f"{name}_bias")
        weights = g.const(self.weights[name]), None if bias is None else g.const(bias)
        return g.op(FULLY_CONNECTED, [x, *weights], options or FullyConnectedOptions())

    def _heads(self, g: Graph, x: int, width: int) -> int:
        x = self._reshaped(g, x, (1, width, self.heads, self.width // self.heads))
        return g.op(TRANSPOSE, [x, g.const(np.array([0, 2, 1, 3], np.int32))], NoOptions())

    def _reshaped(self, g: Graph, x: int, shape: Sequence[int]) -> int:
        return g.op(RESHAPE, [x, g.const(np.array(shape, np.int32))], ReshapeOptions())
