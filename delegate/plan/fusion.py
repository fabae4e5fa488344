"""Fusions over a region's graph: a pattern of nodes, a rule that turns them into one, and the shared conditions.

A rule knows what one kernel can compute. The conditions that all fusions share are checked here: nothing else reads the
tensors between the nodes, and the nodes' operands are unchanged where the fused node runs.
"""

from collections.abc import Callable, Collection, Sequence

from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.match import Match, Pattern, match_node

NodeMatch = Match[int, RegionNode]
Rule = Callable[[RegionGraph, RegionNode], RegionNode | None]
"""Returns a fused node, at the position of one of its parts; None if there is nothing to fuse."""


def matching(pattern: Pattern, whole: Callable[[RegionGraph, RegionNode, NodeMatch], RegionNode | None]) -> Rule:
    """Return a rule for a pattern. whole: fuses a match, given its last node and the tensors by name."""

    def rule(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
        match = match_node(graph, pattern, node)
        return None if match is None else whole(graph, node, match)

    return rule


def fuse(graph: RegionGraph, *rules: Rule) -> RegionGraph:
    """Fuse each node by the first rule that applies, until none does.

    Rules see the original graph, and the node with everything fused into it so far.
    """
    wholes: dict[int, RegionNode] = {}
    taken: set[int] = set()
    for first in graph.nodes:
        node = wholes.get(first.at, first)
        while node.at not in taken and (whole := _fused(graph, node, rules, wholes, taken)) is not None:
            taken.update(part.at for part in whole.fused)
            wholes[whole.at] = node = whole
    if not wholes:
        return graph
    return graph.with_nodes([wholes.get(node.at, node) for node in graph.nodes if node.at not in taken])


def without_unread(before: RegionGraph, after: RegionGraph) -> RegionGraph:
    """Drop the nodes whose results a pass left unread. before, after: the graph before and after the pass."""
    needed, nodes = set(after.kept), list[RegionNode]()
    for node in reversed(after.nodes):
        acts = node.cl_op is None or node.states or node.in_place
        unread = before.readers.keys() >= {*node.outputs} and needed.isdisjoint(node.outputs)
        if acts or not unread:
            nodes.append(node)
            needed.update(node.reads)
    return after if len(nodes) == len(after.nodes) else after.with_nodes(nodes[::-1])


def _fused(graph: RegionGraph, node: RegionNode, rules: Sequence[Rule], *others: Collection[int]) -> RegionNode | None:
    """Return the first valid fusion of a node. others: collections of nodes that other fusions use."""
    for rule in rules:
        whole = rule(graph, node)
        if whole is not None and may_be_one(graph, whole):
            added = {part.at for part in (whole, *whole.fused)}.difference(part.at for part in (node, *node.fused))
            if not any(at in some for at in added for some in others):
                return whole
    return None


def may_be_one(graph: RegionGraph, whole: RegionNode) -> bool:
    """Return whether a fused node is valid: nothing else reads the tensors between its parts, and what the parts read
    is unchanged where it runs.
    """
    parts = [part for part in map(graph.at.get, (whole.at, *(part.at for part in whole.fused))) if part is not None]
    computed = {tensor for part in parts for tensor in part.outputs}
    between, readers = computed.difference(whole.outputs), {part.at for part in parts}
    if not between.isdisjoint(whole.reads):
        return False
    for tensor in between:
        if tensor in graph.kept or tensor in graph.given:
            return False
        if any(reader.at not in readers for reader in graph.consumers(tensor)):
            return False
    anchor = graph.at[whole.at]
    return all(_may_move(graph, part, anchor, computed) for part in parts if part is not anchor)


def _may_move(graph: RegionGraph, part: RegionNode, anchor: RegionNode, computed: Collection[int]) -> bool:
    """Return whether a part reads the same values where the whole runs. anchor: the part at its position."""
    reads = [tensor for tensor in part.reads if tensor not in computed]
    if part.at > anchor.at:
        return all(graph.is_there(tensor, anchor) for tensor in reads)
    return not any(graph.may_change(tensor, part, anchor) for tensor in reads)
