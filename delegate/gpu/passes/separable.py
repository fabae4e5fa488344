"""Fuses depthwise convolutions into the 1x1 convolution after them, on a GPU."""

from litecl.delegate.gpu.ops.separable_conv_2d import SEPARABLE, SeparableOptions
from litecl.delegate.ops import depthwise_conv_2d
from litecl.delegate.plan.convolutions import POINTWISE, is_pointwise
from litecl.delegate.plan.fusion import Found, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT
from litecl.interpreter.match import AnyTensor, Constant, Pattern

(_DEPTHWISE,) = depthwise_conv_2d.CL_OPS
_SEPARABLE = Pattern(POINTWISE, [Pattern(_DEPTHWISE, [AnyTensor("image"), Constant("taps"), ...]), ...])
_VECTOR = 4  # channels per load
# Every tile recomputes its part of the first convolution, which only pays for a small one.
_MOST_FLOPS = 5e7
_MOST_TAPS = 25
_CLAMP = "CLAMP"


def separable(graph: RegionGraph) -> RegionGraph:
    """Fuse a depthwise convolution of floats into the 1x1 convolution that is the only reader of its result."""
    return fuse(graph, matching(_SEPARABLE, _separable))


def _separable(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode | None:
    first, middle = found.nodes[1], graph.specs[node.inputs[0]]
    flops = 2 * graph.specs[node.outputs[0]].size * middle.static_shape[-1]
    if not is_pointwise(graph, node) or flops > _MOST_FLOPS or not _is_plain(graph, first):
        return None
    options = SeparableOptions(first.node.options, node.node.options, middle, first.activation, first.pads)
    inputs = (*(*first.inputs, ABSENT)[:3], *(*node.inputs, ABSENT)[1:3])
    return node.behind(first, kernel=SEPARABLE, inputs=inputs, options=options)


def _is_plain(graph: RegionGraph, first: RegionNode) -> bool:
    """Return whether a depthwise convolution has constant weights, a channel multiplier of 1, a small window, and at
    most a clamp as activation.
    """
    filter_ = graph.value(first.inputs[1])
    if filter_ is None or not graph.are_constant(first.inputs[1:]) or first.activation.function != _CLAMP:
        return False
    channels = graph.specs[first.inputs[0]].static_shape[-1]
    return filter_.shape[3] == channels and channels % _VECTOR == 0 and filter_[0, :, :, 0].size <= _MOST_TAPS
