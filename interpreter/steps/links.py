"""A subgraph as patterns and walks see it: producers and consumers of tensors."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from litecl.interpreter.graph import ABSENT, Array, Node, Shape, Subgraph
from litecl.interpreter.ops.binary import ADD, MUL
from litecl.interpreter.ops.split import SPLIT
from litecl.interpreter.ops.unary import LOGISTIC
from litecl.interpreter.recurrent.patterns import Operators
from litecl.interpreter.schema import ActivationFunctionType, TensorType

OPERATORS = Operators(ADD, MUL, LOGISTIC, SPLIT)
_COMMUTATIVE = (ADD, MUL)


class Links:
    """A subgraph with its links; ``litecl.interpreter.match.Graph`` describes the methods for patterns.

    Variable tensors change at run time, so here they have neither producer nor value.
    """

    def __init__(self, graph: Subgraph) -> None:
        self.graph = graph
        self._made = {t: node for node in graph.nodes for t in node.outputs if not graph.tensors[t].is_variable}

    @cached_property
    def _read(self) -> dict[int, list[Node]]:
        found: dict[int, list[Node]] = {}
        for node in self.graph.nodes:
            for tensor in node.inputs:
                found.setdefault(tensor, []).append(node)
        return found

    def producer(self, tensor: int) -> Node | None:
        """Return the node that computes a tensor."""
        return self._made.get(tensor)

    def consumers(self, tensor: int) -> Sequence[Node]:
        """Return the nodes that read a tensor."""
        return self._read.get(tensor, [])

    def operands(self, node: Node) -> Sequence[int | None]:
        """Return a node's operands."""
        return [None if t == ABSENT else t for t in node.inputs]

    def results(self, node: Node) -> Sequence[int]:
        """Return a node's results."""
        return node.outputs

    def is_a(self, node: Node, op: object) -> bool:
        """Return whether a node has this operator, in float32 and without fused activation."""
        return node.op is op and self.is_plain(node)

    def commutes(self, node: Node) -> bool:
        """Return whether a node's operands may be swapped."""
        return node.op in _COMMUTATIVE

    def value(self, tensor: int) -> Array | None:
        """Return the value of a constant."""
        spec = self.graph.tensors[tensor]
        return None if spec.is_variable or tensor in self._made else spec.data

    def is_plain(self, node: Node) -> bool:
        """Return whether a node computes float32 numbers without fused activation."""
        activation = getattr(node.options, "fused_activation_function", ActivationFunctionType.NONE)
        return activation == ActivationFunctionType.NONE and all(map(self.is_float, node.outputs))

    def is_float(self, tensor: int) -> bool:
        """Return whether a tensor is float32."""
        return self.graph.tensors[tensor].type == TensorType.FLOAT32

    def shape(self, tensor: int) -> Shape:
        """Return the shape of a tensor; () if it is open, so that nothing matches it."""
        spec = self.graph.tensors[tensor]
        return () if spec.shape is None or -1 in (spec.shape_signature or ()) else spec.shape

    def rows(self, tensor: int, width: int) -> int:
        """Return how many rows of ``width`` numbers a tensor has; 0 if its last dimension differs."""
        shape = self.shape(tensor)
        return int(np.prod(shape[:-1])) if shape and shape[-1] == width else 0

    def integers(self, tensor: int) -> list[int] | None:
        """Return an integer constant as a list."""
        data = self.value(tensor)
        return None if data is None or data.dtype.kind != "i" else [int(n) for n in data.reshape(-1)]
