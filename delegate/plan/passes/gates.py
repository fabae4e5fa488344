"""Gates of channels, as squeeze-and-excite has them, that are part of the 1x1 convolution behind them, on a GPU."""

from dataclasses import replace

from litecl.delegate.ops import conv_2d
from litecl.delegate.ops.gated_conv_2d import GATED, GatedOptions
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.interpreter.graph import Node
from litecl.interpreter.ops.binary import MUL

(_POINTWISE,) = conv_2d.CL_OPS
_VECTOR = 4  # channels that are loaded at once


def gates(graph: RegionGraph) -> RegionGraph:
    """Fuse the multiplication of an image's channels into the 1x1 convolution that alone reads the result."""
    found = {node: whole for node in graph.nodes if (whole := _found(graph, node)) is not None}
    taken = {whole.fused[0] for whole in found.values()}
    if not found:
        return graph
    return replace(graph, nodes=tuple(found.get(node, node) for node in graph.nodes if node not in taken))


def _found(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Return the node for a convolution with the multiplication before it; None if that is no part of it."""
    if node.cl_op is not _POINTWISE or not _is_pointwise(graph, node):
        return None
    middle = node.inputs[0]
    first = next((other for other in graph.nodes if middle in other.outputs), None)
    if first is None or first.node.op is not MUL or graph.only_reader(middle) is not node or middle in graph.given:
        return None
    operands = _operands(graph, first)
    if operands is None or any(graph.may_change(t, first, node) for t in operands):
        return None
    options = GatedOptions(node.node.options, graph.specs[middle])
    inputs = (*operands, *node.inputs[1:])
    whole = Node(GATED.op, inputs, node.outputs, options)
    return replace(node, node=whole, cl_op=GATED, inputs=inputs, fused=(first, *first.fused, *node.fused))


def _operands(graph: RegionGraph, node: RegionNode) -> tuple[int, int] | None:
    """Return the image and the gates that a node multiplies, of one image; None if it multiplies something else."""
    out = graph.specs[node.outputs[0]].static_shape
    by_shape = {graph.specs[t].static_shape: t for t in node.inputs}
    image, gate = by_shape.get(out), by_shape.get((1, 1, 1, *out[-1:]))
    computed = image is not None and gate is not None and graph.value(gate) is None
    if node.activation != NONE or node.steps or image is None or gate is None or image == gate or not computed:
        return None
    return (image, gate) if out[0] == 1 and out[-1] % _VECTOR == 0 else None


def _is_pointwise(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a convolution has one tap, no groups and known weights."""
    filter_, options = graph.value(node.inputs[1]), node.node.options
    if filter_ is None or not graph.are_constant(node.inputs[1:]) or node.pads != type(node.pads)():
        return False
    alone = filter_.shape[1:3] == (1, 1) and (options.stride_h, options.stride_w) == (1, 1)
    return alone and filter_.shape[3] == graph.specs[node.inputs[0]].static_shape[-1]
