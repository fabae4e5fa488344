"""Tensors that nodes update in place, and which of them live in the state store."""

from collections.abc import Sequence

from litecl.interpreter.graph import Subgraph, TensorSpec
from litecl.interpreter.graph import states_of as states_of
from litecl.interpreter.graph import updated_by as updated_by


def is_state(graph: Subgraph, specs: Sequence[TensorSpec], tensor: int) -> bool:
    """Return whether a tensor is a variable of the state store: neither an input nor a node's output."""
    if not specs[tensor].is_variable:
        return False
    return tensor not in graph.inputs and not any(tensor in node.outputs for node in graph.nodes)
