"""Depthwise convolutions that are part of the 1x1 convolution behind them, on a GPU."""

from dataclasses import replace

from litecl.delegate.ops import conv_2d, depthwise_conv_2d
from litecl.delegate.ops.separable_conv_2d import SEPARABLE, SeparableOptions
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT, Node

(_POINTWISE,), (_DEPTHWISE,) = conv_2d.CL_OPS, depthwise_conv_2d.CL_OPS
_VECTOR = 4  # channels that are loaded at once
# Every tile computes what it needs of the first convolution, so one with much to do is better done once.
_MOST_FLOPS = 5e7
_MOST_TAPS = 25
_CLAMP = "CLAMP"


def separable(graph: RegionGraph) -> RegionGraph:
    """Fuse a depthwise convolution of floats into the 1x1 convolution that alone reads its result."""
    found = {node: whole for node in graph.nodes if (whole := _found(graph, node)) is not None}
    taken = {part for whole in found.values() for part in whole.fused if part.cl_op is _DEPTHWISE}
    if not found:
        return graph
    return replace(graph, nodes=tuple(found.get(node, node) for node in graph.nodes if node not in taken))


def _found(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Return the node for a 1x1 convolution with the one before it; None if that is no part of it."""
    if node.cl_op is not _POINTWISE or not _is_pointwise(graph, node):
        return None
    middle = node.inputs[0]
    first = next((other for other in graph.nodes if middle in other.outputs), None)
    if first is None or first.cl_op is not _DEPTHWISE or graph.only_reader(middle) is not node:
        return None
    if not _is_plain(graph, first) or middle in graph.given or graph.may_change(first.inputs[0], first, node):
        return None
    options = SeparableOptions(first.node.options, node.node.options, graph.specs[middle], first.activation, first.pads)
    inputs = (*_three(first), *_three(node)[1:])
    whole = Node(SEPARABLE.op, inputs, node.outputs, options)
    return replace(node, node=whole, cl_op=SEPARABLE, inputs=inputs, fused=(first, *first.fused, *node.fused))


def _is_plain(graph: RegionGraph, first: RegionNode) -> bool:
    """Return whether a depthwise convolution has known weights, one for each channel and tap of a small window, and at
    most a clamp behind it.
    """
    filter_ = graph.value(first.inputs[1])
    if filter_ is None or not graph.are_constant(first.inputs[1:]) or first.activation.function != _CLAMP:
        return False
    channels = graph.specs[first.inputs[0]].static_shape[-1]
    return filter_.shape[3] == channels and channels % _VECTOR == 0 and filter_[0, :, :, 0].size <= _MOST_TAPS


def _is_pointwise(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a convolution has one tap, no groups, known weights, and little to do."""
    filter_, options = graph.value(node.inputs[1]), node.node.options
    if filter_ is None or not graph.are_constant(node.inputs[1:]):
        return False
    alone = filter_.shape[1:3] == (1, 1) and (options.stride_h, options.stride_w) == (1, 1)
    shape = graph.specs[node.inputs[0]].static_shape
    flops = 2 * graph.specs[node.outputs[0]].size * shape[-1]
    return alone and filter_.shape[3] == shape[-1] and node.pads == type(node.pads)() and flops <= _MOST_FLOPS


def _three(node: RegionNode) -> tuple[int, ...]:
    """Return input, filter and bias."""
    return (*node.inputs, ABSENT)[:3]
