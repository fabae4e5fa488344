"""Fuses zero padding into the convolution or pool that reads it, if its kernel supports that."""

from dataclasses import replace

from litecl.delegate.cl_op import Pads
from litecl.delegate.plan.fusion import fuse
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.schema import Padding

_NONE = Pads()


def pads(graph: RegionGraph) -> RegionGraph:
    """Fuse padding with zeros into its only reader."""
    return fuse(graph, _padded)


def _padded(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Fuse the padding of a node's first input; return None if there is none or the node can't apply it."""
    if node.cl_op is None or not node.cl_op.fuses_pads or node.node.options.padding != Padding.VALID:
        return None
    padding = graph.producer(node.inputs[0]) if node.pads == _NONE else None
    if padding is None or padding.cl_op is None or padding.cl_op.pads is None:
        return None
    amounts = padding.cl_op.pads(graph.inputs_of(padding))
    if amounts is None:
        return None
    inputs = (padding.inputs[0], *node.inputs[1:])
    return replace(node, inputs=inputs, pads=amounts, fused=(padding, *node.fused))
