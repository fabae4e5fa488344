"""The nodes that ``keep_float`` names, which compute in float32 at any precision."""

from collections.abc import Collection, Iterator, Mapping

from litecl.delegate.claim.options import KeptNode
from litecl.delegate.naming import close_names, did_you_mean
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Model, reached

Place = tuple[int, int]
"""A node, by its subgraph and its position there."""


def kept_in_float(model: Model, asked: Collection[KeptNode]) -> frozenset[Place]:
    """Return the nodes asked for by result or by place, with all nodes of the subgraphs that they reach.

    Raises DelegateError for a name or place without a node.
    """
    named = _by_result(model) if any(isinstance(each, str) for each in asked) else {}
    places = {place for each in asked for place in _places(model, named, each)}
    nodes = [model.subgraphs[subgraph].nodes[position] for subgraph, position in places]
    inner = {(callee, i) for callee in reached(model, nodes) for i in range(len(model.subgraphs[callee].nodes))}
    return frozenset(places | inner)


def _by_result(model: Model) -> Mapping[str, list[Place]]:
    places: dict[str, list[Place]] = {}
    for subgraph, graph in enumerate(model.subgraphs):
        for position, node in enumerate(graph.nodes):
            for name in {graph.tensors[t].name for t in node.outputs if t >= 0}:
                places.setdefault(name, []).append((subgraph, position))
    return places


def _places(model: Model, named: Mapping[str, list[Place]], asked: KeptNode) -> Iterator[Place]:
    if isinstance(asked, str):
        if asked not in named:
            meant = did_you_mean(close_names(asked, named, 3))
            raise DelegateError(f"keep_float: no node has a result {asked!r}{meant}")
        yield from named[asked]
        return
    subgraph, position = (0, asked) if isinstance(asked, int) else asked
    graphs = model.subgraphs
    if not (0 <= subgraph < len(graphs) and 0 <= position < len(graphs[subgraph].nodes)):
        raise DelegateError(f"keep_float: the model has no node {position} in subgraph {subgraph}")
    yield subgraph, position
