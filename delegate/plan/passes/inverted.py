"""Inverted residuals, on a GPU: a 1x1 convolution that alone a depthwise convolution and the 1x1 one behind it read."""

from dataclasses import replace
from math import prod

from litecl.delegate.ops import conv_2d
from litecl.delegate.ops.inverted_residual import INVERTED_RESIDUAL, InvertedOptions
from litecl.delegate.ops.separable_conv_2d import SEPARABLE
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT, Node

(_POINTWISE,) = conv_2d.CL_OPS
# Every tile computes what it sees of the first convolution, so a large one is better done once.
_MOST_HIDDEN = 1 << 20
_CLAMP = "CLAMP"


def inverted(graph: RegionGraph) -> RegionGraph:
    """Fuse the 1x1 convolution before a depthwise convolution, where that is part of another, if images are small."""
    found = {node: whole for node in graph.nodes if (whole := _found(graph, node)) is not None}
    taken = {whole.fused[0] for whole in found.values()}
    if not found:
        return graph
    return replace(graph, nodes=tuple(found.get(node, node) for node in graph.nodes if node not in taken))


def _found(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Return the node for both with the convolution before them; None if that is no part of them."""
    hidden = node.inputs[0] if node.cl_op is SEPARABLE else ABSENT
    first = next((other for other in graph.nodes if hidden in other.outputs), None)
    if first is None or graph.only_reader(hidden) is not node or hidden in graph.given:
        return None
    small = prod(graph.specs[hidden].static_shape) <= _MOST_HIDDEN
    if not small or not _is_pointwise(graph, first) or graph.may_change(first.inputs[0], first, node):
        return None
    options = InvertedOptions(first.node.options, node.node.options, graph.specs[hidden], first.activation)
    inputs = (*(*first.inputs, ABSENT)[:3], *node.inputs[1:])
    whole = Node(INVERTED_RESIDUAL.op, inputs, node.outputs, options)
    return replace(node, node=whole, cl_op=INVERTED_RESIDUAL, inputs=inputs, fused=(first, *first.fused, *node.fused))


def _is_pointwise(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a node is a convolution of one tap, without groups, of known weights, with a clamp behind it."""
    if node.cl_op is not _POINTWISE or node.residual is not None or node.activation.function != _CLAMP:
        return False
    filter_, options = graph.value(node.inputs[1]), node.node.options
    if filter_ is None or not graph.are_constant(node.inputs[1:]) or node.pads != type(node.pads)():
        return False
    alone = filter_.shape[1:3] == (1, 1) and (options.stride_h, options.stride_w) == (1, 1)
    return alone and filter_.shape[3] == graph.specs[node.inputs[0]].static_shape[-1]
