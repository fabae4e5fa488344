"""Which node of one graph is which node of another, whatever their numbers."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from difflib import SequenceMatcher

from litecl.interpreter.graph import Node, Subgraph

Pair = tuple[int, int]
_Key = Callable[[Subgraph, Node], str]


def pairs(a: Subgraph, b: Subgraph) -> list[Pair]:
    """Return the nodes that are the same in both graphs, in the order of the first.

    Nodes of one operator whose results have the same name are the same, wherever they stand. Of the others, those are
    the same that form the longest common sequence of operators and shapes of results, then of operators alone.
    """
    found = _by_name(a, b)
    for key in (_shaped, _operator):
        rest = [_rest(graph, {pair[side] for pair in found}) for side, graph in enumerate((a, b))]
        found += _in_sequence(a, b, rest[0], rest[1], key)
    return sorted(found)


def _rest(graph: Subgraph, taken: Collection[int]) -> list[int]:
    return [i for i in range(len(graph.nodes)) if i not in taken]


def _by_name(a: Subgraph, b: Subgraph) -> list[Pair]:
    """Pair nodes by the name of their first result, where it is the only one of that name."""
    of_a, of_b = _unique(a), _unique(b)
    both = [(of_a[name], of_b[name]) for name in of_a if name in of_b]
    return [(i, j) for i, j in both if a.nodes[i].op.name == b.nodes[j].op.name]


def _unique(graph: Subgraph) -> dict[str, int]:
    names = [graph.tensors[node.outputs[0]].name if node.outputs else "" for node in graph.nodes]
    counts = Counter(names)
    return {name: i for i, name in enumerate(names) if name and counts[name] == 1}


def _in_sequence(a: Subgraph, b: Subgraph, of_a: Sequence[int], of_b: Sequence[int], key: _Key) -> list[Pair]:
    keys = [key(a, a.nodes[i]) for i in of_a], [key(b, b.nodes[i]) for i in of_b]
    blocks = SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks()
    return [(of_a[block.a + k], of_b[block.b + k]) for block in blocks for k in range(block.size)]


def _shaped(graph: Subgraph, node: Node) -> str:
    return f"{node.op.name} {[graph.tensors[t].shape for t in node.outputs]}"


def _operator(graph: Subgraph, node: Node) -> str:
    return node.op.name
