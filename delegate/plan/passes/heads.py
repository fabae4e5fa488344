"""Attention on a GPU reads words as layers put them out, with all heads of a word side by side."""

from dataclasses import replace

from litecl.delegate.kit.claims import integers
from litecl.delegate.matmul.attention import AttentionOptions
from litecl.delegate.ops.attention import ATTENTION
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.interpreter.graph import Node
from litecl.interpreter.ops.transpose import TRANSPOSE


def heads(graph: RegionGraph) -> RegionGraph:
    """Fuse transpositions before and after attention that leave the elements of a word beside each other."""
    found = [whole for node in graph.nodes if node.cl_op is ATTENTION and (whole := _found(graph, node)) is not None]
    last, taken = {whole.at: whole for whole in found}, {part.at for whole in found for part in whole.fused}
    if not found:
        return graph
    return replace(graph, nodes=tuple(last.get(node.at, node) for node in graph.nodes if node.at not in taken))


def _found(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Return the node for attention and the transpositions around it; None if there are none."""
    o: AttentionOptions = node.node.options
    # By operand, the dimension that must stay beside the next element's: of a word's elements.
    inner = (-1, -1 if o.keys_in_rows else -2, -1 if o.values_in_rows else None)
    makers = [_maker(graph, node, t, axis) for t, axis in zip(node.inputs, inner, strict=False)]
    reader = graph.only_reader(node.outputs[0])
    after = reader if reader is not None and node.outputs[0] not in graph.given and _turn(graph, reader, -1) else None
    last, before = node if after is None else after, [maker for maker in makers if maker is not None]
    inputs = (*(t if m is None else m.inputs[0] for t, m in zip(node.inputs, makers, strict=False)), *node.inputs[3:])
    first = min(before, key=lambda maker: maker.at, default=node)
    if (not before and after is None) or any(graph.may_change(t, first, last) for t in inputs):
        return None
    turns = tuple(() if m is None else _turn(graph, m, axis) for m, axis in zip(makers, inner, strict=True))
    options = replace(o, turns=(*turns, () if after is None else _turn(graph, after, -1)))
    fused = (*before, *node.fused, *(() if after is None else (node,)))
    whole = Node(ATTENTION.op, inputs, last.outputs, options)
    return replace(last, node=whole, cl_op=ATTENTION, inputs=inputs, fused=tuple(sorted(fused, key=lambda n: n.at)))


def _maker(graph: RegionGraph, node: RegionNode, tensor: int, inner: int | None) -> RegionNode | None:
    """Return the transposition that computes an operand for attention alone."""
    maker = next((other for other in graph.nodes if tensor in other.outputs), None)
    if maker is None or inner is None or graph.only_reader(tensor) is not node or tensor in graph.given:
        return None
    return maker if _turn(graph, maker, inner) else None


def _turn(graph: RegionGraph, node: RegionNode, inner: int | None) -> tuple[int, ...]:
    """Return a node's permutation, if it is a transposition that makes the last dimension the ``inner`` one."""
    permutation = graph.value(node.inputs[1]) if node.node.op is TRANSPOSE and node.activation == NONE else None
    if permutation is None or inner is None:
        return ()
    rank = permutation.size
    turn = tuple(axis % rank for axis in integers(permutation))
    return turn if rank > 2 and turn[inner] == rank - 1 else ()
