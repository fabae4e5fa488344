"""Builds models tensor by tensor and node by node, for benchmarks and tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.interpreter.graph import ABSENT, Array, Model, Node, Quantization, Shape, Signature, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.schema import TensorType


class Graph:
    """One subgraph under construction; methods return tensor indices."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.tensors: list[TensorSpec] = []
        self.nodes: list[Node] = []
        self.inputs: list[int] = []

    def _add(self, spec: TensorSpec) -> int:
        self.tensors.append(spec)
        return len(self.tensors) - 1

    def input(self, shape: Shape, type_: TensorType = TensorType.FLOAT32, signature: Shape | None = None) -> int:
        """Add an input."""
        index = self._add(TensorSpec(type_, shape, f"{self.name}_in{len(self.inputs)}", shape_signature=signature))
        self.inputs.append(index)
        return index

    def const(self, value: Any, scale: float | None = None) -> int:
        """Add a constant; integers with a ``scale`` represent real numbers."""
        array = np.asarray(value)
        by = None if scale is None else Quantization(np.full(1, scale, np.float32), np.zeros(1, np.int64))
        return self._add(TensorSpec(TensorType.of(array.dtype), array.shape, f"const{len(self.tensors)}", array, by))

    def variable(self, shape: Shape) -> int:
        """Add a float32 variable tensor."""
        return self._add(TensorSpec(TensorType.FLOAT32, shape, f"var{len(self.tensors)}", is_variable=True))

    def op(self, op: Op, inputs: Sequence[int | None], options: Any) -> int:
        """Add a node; return its first output. Shapes come from the operator's inference, [] if unknown."""
        indices = tuple(ABSENT if i is None else i for i in inputs)
        specs = [None if i == ABSENT else self.tensors[i] for i in indices]
        unknown = any(s is not None and s.shape is None for s in specs)
        outputs = [TensorSpec(specs[0].type, None)] if unknown and specs[0] else op.infer(options, specs)
        return self.node(op, indices, outputs, options)[0]

    def node(self, op: Op | ControlOp, inputs: Sequence[int], outputs: Sequence[TensorSpec], options: Any) -> list[int]:
        """Add a node with outputs of given specs; return all of them."""
        indices = [
            self._add(TensorSpec(s.type, () if s.shape is None else s.shape, f"{op.name}_{len(self.tensors)}"))
            for s in outputs
        ]
        self.nodes.append(Node(op, tuple(inputs), tuple(indices), options))
        return indices

    def build(self, *outputs: int) -> Subgraph:
        """Return the subgraph with these outputs."""
        return Subgraph(tuple(self.tensors), tuple(self.inputs), outputs, tuple(self.nodes), self.name)


def model(*subgraphs: Subgraph, signatures: Sequence[Signature] = ()) -> Model:
    """Return a model with these subgraphs."""
    return Model(subgraphs, tuple(signatures))


def randn(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Array:
    """Return normally distributed float32 numbers."""
    return (rng.standard_normal(shape) * scale).astype(np.float32)
