"""1x1 convolutions in a region's graph, for fusions."""

from litecl.delegate.ops import conv_2d
from litecl.delegate.plan.graph import RegionGraph, RegionNode

(POINTWISE,) = conv_2d.CL_OPS
"""The kernel of float convolutions; ``is_pointwise`` recognizes 1x1 ones."""


def is_pointwise(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a convolution has one tap, stride 1, no groups, no pads, and constant weights."""
    filter_, options = graph.value(node.inputs[1]), node.node.options
    if filter_ is None or not graph.are_constant(node.inputs[1:]) or node.pads != type(node.pads)():
        return False
    alone = filter_.shape[1:3] == (1, 1) and (options.stride_h, options.stride_w) == (1, 1)
    return alone and filter_.shape[3] == graph.specs[node.inputs[0]].static_shape[-1]
