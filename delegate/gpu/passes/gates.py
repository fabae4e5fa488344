"""Fuses channel gates (squeeze-and-excite) into the 1x1 convolution after them, on a GPU."""

from litecl.delegate.gpu.ops.gated_conv_2d import GATED, GatedOptions
from litecl.delegate.plan.convolutions import POINTWISE, is_pointwise
from litecl.delegate.plan.fusion import Found, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.match import AnyTensor, Pattern
from litecl.interpreter.ops.binary import MUL

_GATED = Pattern(POINTWISE, [Pattern(MUL, [AnyTensor("a"), AnyTensor("b")], name="gated"), ...])
_VECTOR = 4  # channels per load


def gates(graph: RegionGraph) -> RegionGraph:
    """Fuse the multiplication of an image's channels into the 1x1 convolution that is its only reader."""
    return fuse(graph, matching(_GATED, _gated))


def _gated(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode | None:
    first, operands = found.nodes[1], _operands(graph, found)
    if operands is None or not first.is_plain or not is_pointwise(graph, node):
        return None
    options = GatedOptions(node.node.options, graph.specs[found["gated"]])
    return node.behind(first, kernel=GATED, inputs=(*operands, *node.inputs[1:]), options=options)


def _operands(graph: RegionGraph, found: Found) -> tuple[int, int] | None:
    """Return a product's operands as (image, gates), for a batch of 1; None if it is anything else."""
    out = graph.specs[found["gated"]].static_shape
    by_shape = {graph.specs[t].static_shape: t for t in (found["a"], found["b"])}
    image, gate = by_shape.get(out), by_shape.get((1, 1, 1, *out[-1:]))
    if image is None or gate is None or image == gate or graph.value(gate) is not None:
        return None
    return (image, gate) if out[0] == 1 and out[-1] % _VECTOR == 0 else None
