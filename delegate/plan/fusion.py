"""Fusions over a region's graph: a pattern of nodes, a rule that makes one node of them, and the shared conditions.

A rule says what one kernel can compute. All fusions share a condition, which is checked here: nothing else reads the
tensors between the nodes, and their operands are still the same where the one node runs.
"""

from collections.abc import Callable, Collection, Sequence

from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.match import Match, Pattern, match_node

Found = Match[int, RegionNode]
Rule = Callable[[RegionGraph, RegionNode], RegionNode | None]
"""Returns a node with others fused into it, in the place of one of them; None where there is nothing to fuse."""


def matching(pattern: Pattern, whole: Callable[[RegionGraph, RegionNode, Found], RegionNode | None]) -> Rule:
    """Return the rule for nodes of a pattern. whole: gets the last of them, and what the pattern's names are."""

    def rule(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
        found = match_node(graph, pattern, node)
        return None if found is None else whole(graph, node, found)

    return rule


def fuse(graph: RegionGraph, *rules: Rule) -> RegionGraph:
    """Return a graph whose nodes are fused by the first rule that applies, as long as one does.

    Rules see the graph as it is given, and the node that they are asked about with what is fused into it so far.
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
    """Return a graph after a pass without the nodes whose results were read before it, and are no more."""
    needed, nodes = set(after.kept), list[RegionNode]()
    for node in reversed(after.nodes):
        acts = node.cl_op is None or node.states or node.in_place
        unread = before.readers.keys() >= {*node.outputs} and needed.isdisjoint(node.outputs)
        if acts or not unread:
            nodes.append(node)
            needed.update(node.reads)
    return after if len(nodes) == len(after.nodes) else after.with_nodes(nodes[::-1])


def _fused(graph: RegionGraph, node: RegionNode, rules: Sequence[Rule], *others: Collection[int]) -> RegionNode | None:
    """Return what the first rule makes of a node, of those whose result may be one node. others: what is fused."""
    for rule in rules:
        whole = rule(graph, node)
        if whole is not None and may_be_one(graph, whole):
            added = {part.at for part in (whole, *whole.fused)}.difference(part.at for part in (node, *node.fused))
            if not any(at in some for at in added for some in others):
                return whole
    return None


def may_be_one(graph: RegionGraph, whole: RegionNode) -> bool:
    """Return whether the nodes that are fused into one may be: nothing else sees what is between them, and what they
    read does not change on the way to where the one runs.
    """
    parts = [part for part in map(graph.at.get, (whole.at, *(part.at for part in whole.fused))) if part is not None]
    made = {tensor for part in parts for tensor in part.outputs}
    between, readers = made.difference(whole.outputs), {part.at for part in parts}
    if not between.isdisjoint(whole.reads):
        return False
    for tensor in between:
        if tensor in graph.kept or tensor in graph.given:
            return False
        if any(reader.at not in readers for reader in graph.consumers(tensor)):
            return False
    place = graph.at[whole.at]
    return all(_may_move(graph, part, place, made) for part in parts if part is not place)


def _may_move(graph: RegionGraph, part: RegionNode, place: RegionNode, made: Collection[int]) -> bool:
    """Return whether a part reads the same where the whole runs."""
    reads = [tensor for tensor in part.reads if tensor not in made]
    if part.at > place.at:
        return all(graph.is_there(tensor, place) for tensor in reads)
    return not any(graph.may_change(tensor, part, place) for tensor in reads)
