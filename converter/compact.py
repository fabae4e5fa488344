"""A model without the tensors that a rewrite has left over."""

from collections.abc import Iterator
from dataclasses import replace

from litecl.interpreter.graph import ABSENT, Model


def compact(model: Model) -> Model:
    """Return the model without tensors that nothing uses."""
    places = [{t: new for new, t in enumerate(_used(model, index))} for index in range(len(model.subgraphs))]
    subgraphs = tuple(
        replace(
            graph,
            tensors=tuple(graph.tensors[t] for t in place),
            inputs=tuple(place[t] for t in graph.inputs),
            outputs=tuple(place[t] for t in graph.outputs),
            nodes=tuple(node.moved({**place, ABSENT: ABSENT}) for node in graph.nodes),
        )
        for graph, place in zip(model.subgraphs, places, strict=True)
    )
    signatures = tuple(
        replace(
            s,
            inputs={key: places[s.subgraph][t] for key, t in s.inputs.items()},
            outputs={key: places[s.subgraph][t] for key, t in s.outputs.items()},
        )
        for s in model.signatures
    )
    return replace(model, subgraphs=subgraphs, signatures=signatures)


def _used(model: Model, index: int) -> Iterator[int]:
    """Yield the tensors of a subgraph that nodes, inputs, outputs or signatures name, in their order."""
    graph = model.subgraphs[index]
    used = {*graph.inputs, *graph.outputs}
    for node in graph.nodes:
        used |= {*node.inputs, *node.outputs, *node.intermediates}
    for signature in (s for s in model.signatures if s.subgraph == index):
        used |= {*signature.inputs.values(), *signature.outputs.values()}
    yield from sorted(used - {ABSENT})
