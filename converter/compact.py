"""Removes tensors that a rewrite left unused."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from litecl.interpreter.graph import ABSENT, Model, Subgraph


def compact(model: Model) -> Model:
    """Return the model without tensors that nothing uses."""
    named: dict[int, set[int]] = {}
    for s in model.signatures:
        named.setdefault(s.subgraph, set()).update(s.inputs.values(), s.outputs.values())
    compacted = [compact_graph(graph, named.get(index, ())) for index, graph in enumerate(model.subgraphs)]
    signatures = tuple(
        replace(
            s, inputs=_moved(s.inputs, compacted[s.subgraph][1]), outputs=_moved(s.outputs, compacted[s.subgraph][1])
        )
        for s in model.signatures
    )
    return replace(model, subgraphs=tuple(graph for graph, _ in compacted), signatures=signatures)


def compact_graph(graph: Subgraph, named: Iterable[int] = ()) -> tuple[Subgraph, dict[int, int]]:
    """Return the subgraph without unused tensors, except ``named``, and a map from old to new index (ABSENT too)."""
    nodes = (t for node in graph.nodes for t in (*node.inputs, *node.outputs, *node.intermediates))
    used = sorted({*graph.inputs, *graph.outputs, *named, *nodes} - {ABSENT})
    moved = {t: new for new, t in enumerate(used)} | {ABSENT: ABSENT}
    compacted = replace(
        graph,
        tensors=tuple(graph.tensors[t] for t in used),
        inputs=tuple(moved[t] for t in graph.inputs),
        outputs=tuple(moved[t] for t in graph.outputs),
        nodes=tuple(node.moved(moved) for node in graph.nodes),
    )
    return compacted, moved


def _moved(tensors: Mapping[str, int], moved: Mapping[int, int]) -> dict[str, int]:
    return {key: moved[t] for key, t in tensors.items()}
