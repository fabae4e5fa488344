"""Zeros padded around an image: part of the convolution or pool that reads it, if that supports them."""

from dataclasses import replace

from litecl.delegate.cl_op import Pads
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.schema import Padding


def pads(graph: RegionGraph) -> RegionGraph:
    """Fuse nodes that only pad an image into the single node that reads it."""
    padding: dict[int, tuple[RegionNode, Pads]] = {}  # by the tensor that each would compute
    nodes: list[RegionNode] = []
    for node in graph.nodes:
        if (found := _padded_by_reader(graph, node)) is not None:
            padding[node.outputs[0]] = node, found
        else:
            nodes.append(_with_pads(node, *padding[node.inputs[0]]) if _first(node) in padding else node)
    return replace(graph, nodes=tuple(nodes)) if padding else graph


def _padded_by_reader(graph: RegionGraph, node: RegionNode) -> Pads | None:
    """Return the pads that a node adds, if the only operator that reads its image can apply them."""
    if node.cl_op is None or node.cl_op.pads is None:
        return None
    reader = graph.only_reader(node.outputs[0])
    if reader is None or reader.cl_op is None or not reader.cl_op.fuses_pads:
        return None
    fits = reader.inputs[0] == node.outputs[0] and reader.node.options.padding == Padding.VALID
    return node.cl_op.pads(graph.inputs_of(node)) if fits and graph.is_steady(node.inputs[0]) else None


def _first(node: RegionNode) -> int | None:
    return node.inputs[0] if node.inputs else None


def _with_pads(node: RegionNode, padding: RegionNode, amounts: Pads) -> RegionNode:
    inputs = (padding.inputs[0], *node.inputs[1:])
    return replace(node, inputs=inputs, pads=amounts, fused=(padding, *node.fused))
