"""Residual additions and activations after a producer: part of it, if its kernel supports them."""

from collections.abc import Mapping
from dataclasses import replace

from litecl.delegate.plan.activations import activation_after
from litecl.delegate.plan.graph import NONE, Place, RegionGraph, RegionNode
from litecl.delegate.plan.passes.joins import joins
from litecl.interpreter.ops.binary import ADD
from litecl.interpreter.schema import TensorType


def epilogues(graph: RegionGraph) -> RegionGraph:
    """Fuse residual additions and activations into the nodes whose results they continue."""
    places = joins(graph).places  # a product reads its residual as dense memory, not in rows of a wider tensor
    taken: set[RegionNode] = set()
    nodes: list[RegionNode] = []
    for node in graph.nodes:
        if node in taken:
            continue
        while (longer := _with_residual(graph, node, places) or _with_activation(graph, node)) is not None:
            taken.update(longer.fused)
            node = longer
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes)) if taken else graph


def _is_open(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether something may be fused after a result; additions to integers have scales of their own."""
    floating = node.cl_op is not None and graph.specs[node.outputs[0]].type == TensorType.FLOAT32
    return floating and node.activation == NONE


def _with_activation(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    if node.cl_op is None or not node.cl_op.fuses_activation or not _is_open(graph, node):
        return None
    following = activation_after(graph, node.outputs[0])
    return None if following is None else node.followed_by(*following[1], activation=following[0])


def _with_residual(graph: RegionGraph, node: RegionNode, places: Mapping[int, Place]) -> RegionNode | None:
    if node.cl_op is None or not node.cl_op.fuses_residual or node.residual is not None or not _is_open(graph, node):
        return None
    reader = graph.only_reader(node.outputs[0])
    addend = None if reader is None else _addend(graph, node, reader)
    if reader is None or addend is None or (addend in places and places[addend].row_step is not None):
        return None
    return node.followed_by(reader, residual=addend, activation=reader.activation)


def _addend(graph: RegionGraph, node: RegionNode, reader: RegionNode) -> int | None:
    """Return the other operand of an ADD of equal shapes, if it is computed before a node runs."""
    output = node.outputs[0]
    if reader.node.op is not ADD or len(set(reader.inputs)) != 2:
        return None
    (other,) = set(reader.inputs) - {output}
    specs = [graph.specs[t] for t in (output, other, reader.outputs[0])]
    alike = len({spec.shape for spec in specs}) == 1 and len({spec.type for spec in specs}) == 1
    return other if alike and graph.is_there(other, node) else None
