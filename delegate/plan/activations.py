"""Finds activations, of one or two nodes, that are the only readers of a tensor."""

from litecl.delegate.cl_op import Activation
from litecl.delegate.kit.claims import fused_activation
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.interpreter.match import AnyTensor, Pattern, match_node
from litecl.interpreter.ops.binary import MUL
from litecl.interpreter.ops.unary import LOGISTIC

_SWISH = Activation("SWISH", 0.0, 0.0)
_SWISH_OF = Pattern(MUL, [AnyTensor("x"), Pattern(LOGISTIC, [AnyTensor("x")])])


def activation_after(graph: RegionGraph, tensor: int) -> tuple[Activation, tuple[RegionNode, ...]] | None:
    """Return the activation of a tensor and its nodes, if nothing else reads the tensor."""
    readers = graph.consumers(tensor)
    if tensor in graph.kept or any(reader.cl_op is None for reader in readers):
        return None
    if len(readers) == 1:
        applied = activation_of(readers[0])
        return None if applied is None else (applied, (readers[0],))
    return (_SWISH, (readers[0], readers[1])) if len(readers) == 2 and _is_swish(graph, *readers) else None


def activation_of(node: RegionNode) -> Activation | None:
    """Return the activation that a node computes; None if it computes anything else."""
    activates = None if node.cl_op is None else node.cl_op.activates
    return None if activates is None else activates(node.node.options)


def _is_swish(graph: RegionGraph, sigmoid: RegionNode, product: RegionNode) -> bool:
    """Return whether two readers of a tensor compute its product with its sigmoid."""
    found = match_node(graph, _SWISH_OF, product)
    alone = found is not None and found.nodes[1] is sigmoid and graph.only_reader(sigmoid.outputs[0]) is product
    return alone and fused_activation(product.node.options) == NONE
