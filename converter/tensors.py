"""The tensors of a subgraph that a rewrite extends."""

from dataclasses import replace

import numpy as np

from litecl.converter.versions import version_of
from litecl.interpreter.graph import ABSENT, Array, Node, TensorSpec
from litecl.interpreter.schema import TensorType


class Tensors(list[TensorSpec]):
    """The tensors of a subgraph: those that it has, and those that a rewrite adds."""

    def push(self, spec: TensorSpec) -> int:
        """Add a tensor; return its index."""
        self.append(spec)
        return len(self) - 1

    def constant(self, name: str, data: Array | np.generic) -> int:
        """Add a constant; return its index."""
        return self.push(TensorSpec(TensorType.of(data.dtype), data.shape, name, np.asarray(data)))

    def versioned(self, node: Node) -> Node:
        """Return a node of the lowest version that supports its operands."""
        return replace(node, version=version_of(node, [None if t == ABSENT else self[t] for t in node.inputs]))
