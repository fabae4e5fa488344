"""Lets partial updates overwrite tensors whose old value is not needed."""

from dataclasses import replace

from litecl.delegate.analysis import loop_variables
from litecl.delegate.plan.graph import RegionGraph


def in_place(graph: RegionGraph) -> RegionGraph:
    """Mark the nodes that may overwrite their first input."""
    positions = [node.position for node in graph.nodes]
    in_place_nodes = loop_variables.in_place(graph.source, positions, graph.kept, graph.owned)
    nodes = (replace(node, in_place=True) if node.position in in_place_nodes else node for node in graph.nodes)
    return replace(graph, nodes=tuple(nodes)) if in_place_nodes else graph
