"""Builds the subgraphs of a loop around a model's own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.graph import ABSENT, Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType


class Builder:
    """A subgraph under construction."""

    def __init__(self) -> None:
        self.tensors: list[TensorSpec] = []
        self.nodes: list[Node] = []
        self.inputs: list[int] = []

    def add(self, spec: TensorSpec) -> int:
        """Add a tensor."""
        self.tensors.append(spec)
        return len(self.tensors) - 1

    def input(self, spec: TensorSpec) -> int:
        """Add an input."""
        self.inputs.append(self.add(replace(spec, data=None, shape_signature=None)))
        return self.inputs[-1]

    def const(self, value: Any, dtype: Any = np.int32) -> int:
        """Add a constant."""
        array = np.asarray(value, dtype)
        return self.add(TensorSpec(TensorType.of(array.dtype), array.shape, f"generate_{len(self.tensors)}", array))

    def op(self, op: Op, inputs: Sequence[int], options: Any = None) -> int:
        """Add a node with one output; return the output."""
        (output,) = self.node(op, inputs, options)
        return output

    def node(self, op: Op, inputs: Sequence[int], options: Any = None) -> list[int]:
        """Add a node; return its outputs."""
        options = NoOptions() if options is None else options
        specs = op.infer(options, [self.tensors[t] for t in inputs])
        outputs = [self.add(replace(spec, name=f"generate_{len(self.tensors)}")) for spec in specs]
        self.nodes.append(Node(op, tuple(inputs), tuple(outputs), options))
        return outputs

    def reshaped(self, x: int, shape: Sequence[int]) -> int:
        """Add a reshape."""
        return self.op(RESHAPE, [x, self.const(shape)], ReshapeOptions(tuple(shape)))

    def inlined(self, graph: Subgraph, given: Mapping[int, int]) -> Callable[[int], int]:
        """Add another subgraph's nodes. given: tensors for its inputs. Return a map from its tensors to new ones."""
        at = dict(given)
        for index, spec in enumerate(graph.tensors):
            if index not in at:
                at[index] = self.add(spec)
        at[ABSENT] = ABSENT
        self.nodes += [node.moved(at) for node in graph.nodes]
        return at.__getitem__

    def built(self, outputs: Sequence[int], name: str) -> Subgraph:
        """Return the subgraph."""
        return Subgraph(tuple(self.tensors), tuple(self.inputs), tuple(outputs), tuple(self.nodes), name)
