"""Removes tensors that a rewrite left unused."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from litecl.interpreter.graph import ABSENT, Model, Subgraph


def compact(model: Model) -> Model:
    """Return the model without tensors that nothing uses."""
    named: dict[int, set[int]] = {}
    for s in model.signatures:
        named.setdefault(s.subgraph, set()).update(s.inputs.values(), s.outputs.values())
    made = [compact_graph(graph, named.get(index, ())) for index, graph in enumerate(model.subgraphs)]
    signatures = tuple(
        replace(s, inputs=_moved(s.inputs, made[s.subgraph][1]), outputs=_moved(s.outputs, made[s.subgraph][1]))
        for s in model.signatures
    )
    return replace(model, subgraphs=tuple(graph for graph, _ in made), signatures=signatures)


def compact_graph(graph: Subgraph, named: Iterable[int] = ()) -> tuple[Subgraph, dict[int, int]]:
    """Return the subgraph without unused tensors, except ``named``, and a map from old to new index (ABSENT too)."""
    nodes = (t for node in graph.nodes for t in (*node.inputs, *node.outputs, *node.intermediates))
    used = sorted({*graph.inputs, *graph.outputs, *named, *nodes} - {ABSENT})
    place = {t: new for new, t in enumerate(used)} | {ABSENT: ABSENT}
    made = replace(
        graph,
        tensors=tuple(graph.tensors[t] for t in used),
        inputs=tuple(place[t] for t in graph.inputs),
        outputs=tuple(place[t] for t in graph.outputs),
        nodes=tuple(node.moved(place) for node in graph.nodes),
    )
    return made, place


def _moved(tensors: Mapping[str, int], place: Mapping[int, int]) -> dict[str, int]:
    return {key: place[t] for key, t in tensors.items()}
