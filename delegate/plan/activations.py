"""Activations, of one node or two, that alone read a tensor."""

from litecl.delegate.cl_op import Activation
from litecl.delegate.kit.claims import fused_activation
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.interpreter.ops.binary import MUL
from litecl.interpreter.ops.unary import LOGISTIC

_SWISH = Activation("SWISH", 0.0, 0.0)


def activation_after(graph: RegionGraph, tensor: int) -> tuple[Activation, tuple[RegionNode, ...]] | None:
    """Return the activation that nodes apply to a tensor that nothing else reads, and these nodes."""
    readers = graph.readers.get(tensor, ())
    if tensor in graph.kept or any(reader.cl_op is None for reader in readers):
        return None
    if len(readers) == 1:
        applied = activation_of(readers[0])
        return None if applied is None else (applied, (readers[0],))
    return (_SWISH, (readers[0], readers[1])) if _is_swish(graph, tensor) else None


def activation_of(node: RegionNode) -> Activation | None:
    """Return the activation that a node computes, None if it computes something else."""
    activates = None if node.cl_op is None else node.cl_op.activates
    return None if activates is None else activates(node.node.options)


def _is_swish(graph: RegionGraph, tensor: int) -> bool:
    """Return whether the readers of a tensor multiply it by its sigmoid."""
    readers = graph.readers.get(tensor, ())
    if len(readers) != 2:
        return False
    sigmoid, product = readers
    if sigmoid.node.op is not LOGISTIC or product.node.op is not MUL:
        return False
    factor = sigmoid.outputs[0]
    plain = fused_activation(product.node.options) == NONE
    return plain and graph.only_reader(factor) is product and set(product.inputs) == {tensor, factor}
