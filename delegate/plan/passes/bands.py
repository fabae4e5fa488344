"""Fuses a convolution, a depthwise one and perhaps a 1x1 one, with large results between them, on a CPU: they run by
bands of rows, so that the results between them stay in the second-level cache.
"""

from dataclasses import replace
from math import prod

from litecl.delegate.cl_op import Pads
from litecl.delegate.ops import depthwise_conv_2d
from litecl.delegate.ops.banded_convs import BANDED, Banded, BandedOptions
from litecl.delegate.plan.convolutions import POINTWISE, is_pointwise
from litecl.delegate.plan.fusion import NodeMatch, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT, Array, Shape
from litecl.interpreter.match import AnyTensor, Constant, Pattern

(_DEPTHWISE,) = depthwise_conv_2d.CL_OPS
_CONVOLUTION = Pattern(POINTWISE, [AnyTensor("image"), Constant("filter"), ...])
_TWO = Pattern(_DEPTHWISE, [_CONVOLUTION, Constant("taps"), ...])
_THREE = Pattern(POINTWISE, [_TWO, ...])
_LEAST_BYTES = 1 << 20  # of the first result; a smaller one stays in the cache anyway
_MOST_WEIGHTS = 1 << 15  # elements of a filter, which is packed for every band


def bands(graph: RegionGraph) -> RegionGraph:
    """Fuse a convolution, a depthwise and perhaps a 1x1 convolution of floats, if the first one's result is large."""
    for pattern in (_THREE, _TWO):
        graph = fuse(graph, matching(pattern, _banded))
    return graph


def _banded(graph: RegionGraph, node: RegionNode, match: NodeMatch) -> RegionNode | None:
    first, depthwise, *last = (*match.nodes[:0:-1], node)
    parts = first, depthwise, *last
    shapes = [graph.specs[t].static_shape for t in (first.inputs[0], *(part.outputs[0] for part in parts))]
    if not all(_is_direct(graph, part) for part in (first, *last)) or not _has_one_filter(graph, depthwise):
        return None
    if not all(is_pointwise(graph, part) for part in last) or not _are_large(shapes, graph.alignment):
        return None
    if any(not graph.are_constant(part.inputs[1:]) or part.steps for part in parts):
        return None
    if first.residual is not None or depthwise.residual is not None:
        return None
    one, two = (
        Banded(part.node.options, part.activation, part.pads, graph.specs[part.outputs[0]])
        for part in (first, depthwise)
    )
    options = BandedOptions(one, two, last[0].node.options if last else None)
    inputs = (first.inputs[0], *(t for part in parts for t in (*part.inputs[1:], ABSENT)[:2]))
    whole = node.behind(*(part for part in parts if part is not node), kernel=BANDED, inputs=inputs, options=options)
    return replace(whole, pads=Pads())


def _are_large(shapes: list[Shape], alignment: int) -> bool:
    """Return whether images are single and wider than 1, the first result is large, and all rows are aligned.

    shapes: of the image and the results.
    """
    rows = (prod(shape[2:]) for shape in shapes)
    alone = all(shape[0] == 1 and shape[2] > 1 for shape in shapes)
    return alone and 4 * prod(shapes[1]) >= _LEAST_BYTES and all(4 * row % alignment == 0 for row in rows)


def _is_direct(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a convolution costs the same in bands: it is a 1x1 one, or one with strides, by lines."""
    filter_, options = graph.value(node.inputs[1]), node.node.options
    if filter_ is None or filter_.size > _MOST_WEIGHTS:
        return False
    plain = is_pointwise(graph, node) or max(options.stride_h, options.stride_w) > 1
    return bool(plain and filter_.shape[3] == graph.specs[node.inputs[0]].static_shape[-1]) and _sees(node, filter_)


def _has_one_filter(graph: RegionGraph, depthwise: RegionNode) -> bool:
    """Return whether a depthwise convolution has a channel multiplier of 1."""
    filter_ = graph.value(depthwise.inputs[1])
    if filter_ is None or filter_.shape[3] != graph.specs[depthwise.inputs[0]].static_shape[-1]:
        return False
    return _sees(depthwise, filter_)


def _sees(node: RegionNode, filter_: Array) -> bool:
    """Return whether every window of a convolution covers a row of its image."""
    return bool(max(node.pads.top, node.pads.bottom) < filter_.shape[1])
