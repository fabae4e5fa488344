"""Fuses convolutions with few output channels that read the same image, on a CPU, where each would fill vectors only
partly; also those of two images whose results are added."""

from dataclasses import replace

from litecl.delegate.cl_op import Pads
from litecl.delegate.ops import conv_2d
from litecl.delegate.ops.sibling_conv_2d import SIBLINGS, Sibling, SiblingOptions
from litecl.delegate.plan.fusion import fuse
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT
from litecl.interpreter.ops.binary import ADD

(_CONVOLUTION,) = conv_2d.CL_OPS
_MOST_COLUMNS = 8  # output channels: with more, the copy of the result costs more than fusion gains
_MOST_TOGETHER = 64
_LEAST_DEPTH = 24  # products per output element, for the same reason


def siblings(graph: RegionGraph) -> RegionGraph:
    """Fuse convolutions of an image that differ only in their constant filters and biases, then those of two images
    whose results are added.
    """
    return fuse(fuse(graph, _together), _sums)


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
    options = SiblingOptions((Sibling(node.node.options, node.pads),))
    outputs = [part.outputs[0] for part in parts]
    inputs = (node.inputs[0], *operands)
    whole = node.behind(*parts[1:], kernel=SIBLINGS, inputs=inputs, options=options, outputs=outputs)
    return replace(whole, pads=Pads())


def _sums(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Fuse the convolutions of two images into the sums of their results; the node is one of the sums."""
    one, two = map(graph.producer, node.inputs) if _is_sum(graph, node) else (None, None)
    if one is None or two is None or one is two or {one.cl_op, two.cl_op} != {SIBLINGS}:
        return None
    if (one.activation, two.activation) != (NONE, NONE) or len(one.outputs) != len(two.outputs):
        return None
    sums = [
        found
        for pair in zip(one.outputs, two.outputs, strict=True)
        if (found := graph.only_reader(pair[0])) is not None and _is_sum(graph, found) and {*found.inputs} == {*pair}
    ]
    if len(sums) < len(one.outputs) or any(found.activation != node.activation for found in sums):
        return None
    return node.behind(
        *(one, two, *(found for found in sums if found is not node)),
        kernel=SIBLINGS,
        inputs=(one.inputs[0], two.inputs[0], *one.inputs[1:], *two.inputs[1:]),
        options=SiblingOptions((*one.node.options.images, *two.node.options.images)),
        outputs=[found.outputs[0] for found in sums],
    )


def _is_sum(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a node only adds two tensors of one shape, and at most applies an activation."""
    fused = node.steps or node.fused or node.residual is not None or node.in_place
    return not fused and node.node.op is ADD and len({graph.specs[t].shape for t in (*node.inputs, *node.outputs)}) == 1


def _is_narrow(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a node is a convolution with constant filters and no groups for which fusion pays."""
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
    """Return whether two convolutions have the same options, filter size, activation and pads."""
    first, second = (graph.specs[node.inputs[1]].static_shape[1:] for node in (one, other))
    same = (one.node.options, one.activation, one.pads) == (other.node.options, other.activation, other.pads)
    return same and first == second
