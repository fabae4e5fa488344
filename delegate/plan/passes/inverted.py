"""Inverted residuals, on a GPU: a 1x1 convolution, a depthwise one that alone reads it, and the 1x1 one after that."""

from math import prod

from litecl.delegate.ops.inverted_residual import INVERTED_RESIDUAL, InvertedOptions
from litecl.delegate.ops.separable_conv_2d import SEPARABLE
from litecl.delegate.plan.convolutions import POINTWISE, is_pointwise
from litecl.delegate.plan.fusion import Found, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT
from litecl.interpreter.match import Any, Pattern

_INVERTED = Pattern(SEPARABLE, [Pattern(POINTWISE, [Any("image"), ...]), ...])
# Every tile computes what it sees of the first convolution, so a large one is better done once.
_MOST_HIDDEN = 1 << 20
_CLAMP = "CLAMP"


def inverted(graph: RegionGraph) -> RegionGraph:
    """Fuse the 1x1 convolution before a depthwise convolution, where that is part of another, if images are small."""
    return fuse(graph, matching(_INVERTED, _inverted))


def _inverted(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode | None:
    first, hidden = found.nodes[1], graph.specs[node.inputs[0]]
    clamped = first.residual is None and first.activation.function == _CLAMP
    if prod(hidden.static_shape) > _MOST_HIDDEN or not clamped or not is_pointwise(graph, first):
        return None
    options = InvertedOptions(first.node.options, node.node.options, hidden, first.activation)
    inputs = (*(*first.inputs, ABSENT)[:3], *node.inputs[1:])
    return node.behind(first, kernel=INVERTED_RESIDUAL, inputs=inputs, options=options)
