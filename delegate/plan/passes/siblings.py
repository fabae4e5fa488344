"""Convolutions of few columns that read the same image become one on a CPU: alone they fill its vectors in part."""

from dataclasses import replace

from litecl.delegate.ops import conv_2d
from litecl.delegate.ops.sibling_conv_2d import SIBLINGS, SiblingOptions
from litecl.delegate.plan.fusion import fuse
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT, Node

(_CONVOLUTION,) = conv_2d.CL_OPS
_MOST_COLUMNS = 8  # of one that gains more than a copy of its result costs
_MOST_TOGETHER = 64
_LEAST_DEPTH = 32  # products to an element, for the same reason


def siblings(graph: RegionGraph) -> RegionGraph:
    """Fuse convolutions of an image that differ in their constant filters and biases alone."""
    return fuse(graph, _together)


def _together(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    parts, columns = list[RegionNode](), 0
    for reader in graph.consumers(node.inputs[0]) if _is_narrow(graph, node) else ():
        if reader.at < node.at or not _is_narrow(graph, reader) or not _are_alike(graph, node, reader):
            continue
        columns += graph.specs[reader.outputs[0]].static_shape[-1]
        if columns > _MOST_TOGETHER:
            break
        parts.append(reader)
    if len(parts) < 2:
        return None
    operands = (t for part in parts for t in (*part.inputs[1:], ABSENT)[:2])
    inputs, outputs = (node.inputs[0], *operands), tuple(part.outputs[0] for part in parts)
    whole = Node(SIBLINGS.op, inputs, outputs, SiblingOptions(node.node.options))
    return replace(node, node=whole, cl_op=SIBLINGS, inputs=inputs, outputs=outputs, fused=tuple(parts[1:]))


def _is_narrow(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a node is a convolution of known filters, without groups, that is worth to be one of several."""
    if node.cl_op is not _CONVOLUTION or node.residual is not None or node.steps or node.fused:
        return False
    filter_ = graph.value(node.inputs[1])
    if filter_ is None or not graph.are_constant(node.inputs[1:]):
        return False
    columns, height, width, channels = filter_.shape
    if channels != graph.specs[node.inputs[0]].static_shape[-1]:
        return False
    return bool(columns <= _MOST_COLUMNS and height * width * channels >= _LEAST_DEPTH)


def _are_alike(graph: RegionGraph, one: RegionNode, other: RegionNode) -> bool:
    """Return whether two convolutions of an image have the same window, activation and zeros around the image."""
    first, second = (graph.specs[node.inputs[1]].static_shape[1:] for node in (one, other))
    same = (one.node.options, one.activation, one.pads) == (other.node.options, other.activation, other.pads)
    return same and first == second
