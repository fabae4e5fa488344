"""Fuses inverted residuals, on a GPU: a 1x1, a depthwise and a 1x1 convolution, one after another."""

from math import prod

from litecl.delegate.gpu.ops.inverted_residual import INVERTED_RESIDUAL, InvertedOptions
from litecl.delegate.gpu.ops.separable_conv_2d import SEPARABLE
from litecl.delegate.plan.convolutions import POINTWISE, is_pointwise
from litecl.delegate.plan.fusion import Found, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT
from litecl.interpreter.match import AnyTensor, Pattern

_INVERTED = Pattern(SEPARABLE, [Pattern(POINTWISE, [AnyTensor("image"), ...]), ...])
# Every tile recomputes its part of the first convolution, which only pays for a small one.
_MOST_HIDDEN = 1 << 20
_CLAMP = "CLAMP"


def inverted(graph: RegionGraph) -> RegionGraph:
    """Fuse a 1x1 convolution with a small result into its only reader, a separable one (see ``separable``)."""
    return fuse(graph, matching(_INVERTED, _inverted))


def _inverted(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode | None:
    first, hidden = found.nodes[1], graph.specs[node.inputs[0]]
    clamped = first.residual is None and first.activation.function == _CLAMP
    if prod(hidden.static_shape) > _MOST_HIDDEN or not clamped or not is_pointwise(graph, first):
        return None
    options = InvertedOptions(first.node.options, node.node.options, hidden, first.activation)
    inputs = (*(*first.inputs, ABSENT)[:3], *node.inputs[1:])
    return node.behind(first, kernel=INVERTED_RESIDUAL, inputs=inputs, options=options)
