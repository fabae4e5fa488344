"""Nodes whose results nothing reads any more, since others were fused into something that does without."""

from litecl.delegate.plan.graph import RegionGraph, RegionNode


def unread(graph: RegionGraph) -> RegionGraph:
    """Leave out nodes that only compute what nothing reads."""
    needed, nodes = set(graph.kept), list[RegionNode]()
    for node in reversed(graph.nodes):
        only_computes = node.cl_op is not None and not node.states and not node.in_place and node.outputs
        if not only_computes or needed.intersection(node.outputs):
            nodes.append(node)
            needed.update(node.reads)
    return graph if len(nodes) == len(graph.nodes) else graph.with_nodes(nodes[::-1])
