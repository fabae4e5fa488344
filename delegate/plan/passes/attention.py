"""Attention: two products with a softmax between them are one node, whose scores are never stored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from litecl.delegate.matmul.attention import AttentionOptions
from litecl.delegate.ops import batch_matmul, softmax
from litecl.delegate.ops.attention import ATTENTION
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.interpreter.graph import Node, Shape
from litecl.interpreter.ops.binary import ADD, DIV, MUL
from litecl.interpreter.ops.reshape import RESHAPE

(_PRODUCT,), _SOFTMAX = batch_matmul.CL_OPS, softmax.CL_OPS[0]


def attention(graph: RegionGraph) -> RegionGraph:
    """Fuse BATCH_MATMUL of floats, a scale, a mask that is added, SOFTMAX and BATCH_MATMUL."""
    found = [whole for node in graph.nodes if (whole := _found(graph, node)) is not None]
    if not found:
        return graph
    last = {whole.at: whole for whole in found}
    taken = {part for whole in found for part in whole.fused}
    nodes = (last.get(node.at, node) for node in graph.nodes if node not in taken)
    return replace(graph, nodes=tuple(nodes))


@dataclass(frozen=True)
class _Path:
    """The nodes from a product on, each the only reader of the one before, and what they have done to its scores."""

    nodes: tuple[RegionNode, ...]
    scale: float = 1.0
    mask: int | None = None
    seen: Shape = ()
    is_weights: bool = False

    @property
    def result(self) -> int:
        return self.nodes[-1].outputs[0]


def _found(graph: RegionGraph, first: RegionNode) -> RegionNode | None:
    if first.cl_op is not _PRODUCT or first.node.options.adj_x:
        return None
    path: _Path | None = _Path((first,), seen=_shape(graph, first.outputs[0])[:-2])
    while path is not None:
        reader = graph.only_reader(path.result)
        if reader is None:
            return None
        if path.is_weights and reader.cl_op is _PRODUCT:
            return _fused(graph, path, reader)
        path = _next(graph, path, reader)
    return None


def _next(graph: RegionGraph, path: _Path, reader: RegionNode) -> _Path | None:
    """Return a path with the next node, None if that is no part of attention."""
    before, after = _shape(graph, path.result), _shape(graph, reader.outputs[0])
    longer, op = replace(path, nodes=(*path.nodes, reader)), reader.node.op
    if op is RESHAPE:  # which groups products in another way
        return replace(longer, seen=after[:-2]) if len(after) > 1 and before[-2:] == after[-2:] else None
    if path.is_weights or before != after or reader.activation != NONE:
        return None
    if reader.cl_op is _SOFTMAX:
        return replace(longer, is_weights=True) if reader.node.options.beta == 1 else None
    if op not in (ADD, MUL, DIV) or path.mask is not None or len(set(reader.inputs)) != 2:
        return None
    (other,) = set(reader.inputs) - {path.result}
    if op is ADD:
        fits = path.seen == _shape(graph, path.nodes[0].outputs[0])[:-2]  # the mask broadcasts to what it is added to
        return replace(longer, mask=other) if fits else None
    number = graph.value(other)
    if number is None or number.size != 1 or (op is DIV and reader.inputs[0] != path.result):
        return None
    factor = float(number.reshape(()))
    return replace(longer, scale=path.scale * factor if op is MUL else path.scale / factor)


def _fused(graph: RegionGraph, path: _Path, last: RegionNode) -> RegionNode | None:
    """Return the node for a path that ends in a product with values; None if it may not run there as one."""
    first, values = path.nodes[0], last.inputs[1]
    if last.inputs[0] != path.result or values == path.result or last.node.options.adj_x:
        return None
    operands = (*first.inputs, values, *(() if path.mask is None else (path.mask,)))
    constant = any(graph.value(t) is not None for t in operands[:3])  # which would be packed beforehand
    if constant or not all(map(graph.is_steady, operands)) or _overwritten(graph, first, last, operands):
        return None
    options = AttentionOptions(
        scale=path.scale,
        keys_in_rows=first.node.options.adj_y,
        values_in_rows=not last.node.options.adj_y,
        batch=_shape(graph, first.outputs[0])[:-2],
        seen=path.seen,
    )
    node = Node(ATTENTION.op, operands, last.outputs, options)
    return replace(last, node=node, cl_op=ATTENTION, inputs=operands, fused=path.nodes)


def _overwritten(graph: RegionGraph, first: RegionNode, last: RegionNode, operands: Sequence[int]) -> bool:
    """Return whether a node between two others writes into one of the operands."""
    return any(node.in_place and node.inputs[0] in operands for node in graph.nodes if first.at < node.at < last.at)


def _shape(graph: RegionGraph, tensor: int) -> Shape:
    return graph.specs[tensor].static_shape
