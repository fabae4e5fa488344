"""Which tensors nodes update in place: variables of the state store, and others in the positions of states."""

from collections.abc import Sequence

from litecl.interpreter.graph import ABSENT, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp


def is_state(graph: Subgraph, specs: Sequence[TensorSpec], tensor: int) -> bool:
    """Return whether a tensor is a variable of the state store (not one that is fed or that a node produces)."""
    if not specs[tensor].is_variable:
        return False
    return tensor not in graph.inputs and not any(tensor in node.outputs for node in graph.nodes)


def updated_by(node: Node) -> tuple[int, ...]:
    """Return the tensors that a node updates in place."""
    return tuple(t for t in states_of(node) if t != ABSENT)


def states_of(node: Node) -> tuple[int, ...]:
    """Return the tensors that a node updates, in the order of ``op.states``; ABSENT where one is not given."""
    if isinstance(node.op, ControlOp):
        return ()
    return tuple(node.inputs[p] if p < len(node.inputs) else ABSENT for p in node.op.states)
