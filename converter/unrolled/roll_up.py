"""Replaces unrolled recurrent layers by operators and loops, in a finished model of any origin."""

import itertools
from collections.abc import Collection, Container, Sequence
from dataclasses import replace

from litecl.converter.compact import compact
from litecl.converter.emit import emit
from litecl.converter.report import FusionRecord
from litecl.converter.unrolled.cells import cells
from litecl.converter.unrolled.chains import chains
from litecl.converter.unrolled.layer import Layer, layer_of
from litecl.converter.unrolled.nodes import module_of, operands_of, pays
from litecl.converter.unrolled.results import Result, results_of
from litecl.converter.unrolled.unfused import unfused
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.control import WHILE
from litecl.interpreter.steps.links import Links


def roll_up(model: Model) -> tuple[Model, list[FusionRecord]]:
    """Replace every unrolled LSTM, GRU and simple layer by one operator or loop; return the model and the replacements.

    A chain stays unless all its steps are proved to compute the same, and only hidden states and the last memory are
    read outside. A short or narrow GRU stays too, since it would become slower (``gru.LEAST``).
    """
    records: list[FusionRecord] = []
    for index in range(len(model.subgraphs)):
        while (rolled := _round(model, index))[1]:  # a rolled-up layer may be the sequence of another one
            model = rolled[0]
            records += rolled[1]
    return (compact(model), records) if records else (model, records)


def _round(model: Model, index: int) -> tuple[Model, list[FusionRecord]]:
    """Roll up all layers currently in a subgraph; return the model and the replacements."""
    graph = model.subgraphs[index]
    records: list[FusionRecord] = []
    links = Links(unfused(graph))
    layers = [layer for chain in chains(cells(links), links) if (layer := layer_of(links, chain)) is not None]
    layers = [layer for layer in layers if pays(layer) and not _reads_variables(graph, layer)]
    renamed: dict[int, int] = {}
    for number, layer in enumerate(layers):
        results = {result.tensor: result for result in results_of(links, layer.chain)}
        read = [renamed.get(t, t) for other in layers[number:] for t in operands_of(other)]
        live, wanted = _needed(model.subgraphs[index], read, results.keys())
        within = {t for cell in layer.chain for node in cell.nodes for t in node.outputs}
        if not wanted or not live.isdisjoint(within):
            continue
        model = _rolled(model, index, layer, [results[t] for t in sorted(wanted)], live, renamed)
        records.append(FusionRecord(f"unrolled {layer.kind}", graph.tensors[layer.chain[-1].h].name))
    return model, records


def _reads_variables(graph: Subgraph, layer: Layer) -> bool:
    return any(graph.tensors[t].is_variable for t in operands_of(layer))


def _needed(graph: Subgraph, operands: Sequence[int], given: Collection[int]) -> tuple[set[int], set[int]]:
    """Return the tensors of nodes needed for the outputs and ``operands``, and the ``given`` ones that are read."""
    read = {*graph.outputs, *operands}
    live: set[int] = set()
    for node in reversed(graph.nodes):
        if _acts(node) or any(t in read and t not in given for t in node.outputs):
            live.update(node.outputs)
            read.update(node.inputs)
    return live, read & set(given)


def _acts(node: Node) -> bool:
    """Return whether a node does more than compute its results."""
    return not isinstance(node.op, Op) or not node.op.pure or bool(node.op.states) or not node.outputs


def _rolled(
    model: Model,
    index: int,
    layer: Layer,
    wanted: Sequence[Result],
    live: Container[int],
    places: dict[int, int],
) -> Model:
    """Insert a layer at the first step of its chain, and drop dead nodes.

    places: the present tensors of earlier layers' results; the layer's own are added.
    """
    graph = model.subgraphs[index]
    operands = [places.get(t, t) for t in operands_of(layer)]
    name = f"{graph.tensors[layer.chain[-1].h].name}/rolled_up"
    layer_model = emit({"layer": module_of(graph, layer, wanted, name)})
    tensors, moved = _joined(graph, layer_model.subgraphs[0], operands)
    renamed = {result.tensor: moved[t] for result, t in zip(wanted, layer_model.subgraphs[0].outputs, strict=True)}
    places.update(renamed)
    for old, new in renamed.items():
        tensors[new] = replace(tensors[new], name=graph.tensors[old].name)
    inner = [_called(node.moved(moved), len(model.subgraphs) - 1) for node in layer_model.subgraphs[0].nodes]
    head = next(n for n, node in enumerate(graph.nodes) if layer.chain[0].h in node.outputs)
    before, after = (
        [replace(node, inputs=tuple(renamed.get(t, t) for t in node.inputs)) for node in part if _lives(node, live)]
        for part in (graph.nodes[:head], graph.nodes[head:])
    )
    outputs = tuple(renamed.get(t, t) for t in graph.outputs)
    rolled = replace(graph, tensors=tuple(tensors), nodes=(*before, *inner, *after), outputs=outputs)
    subgraphs = (*model.subgraphs[:index], rolled, *model.subgraphs[index + 1 :], *layer_model.subgraphs[1:])
    signatures = tuple(
        replace(s, outputs={key: renamed.get(t, t) for key, t in s.outputs.items()}) if s.subgraph == index else s
        for s in model.signatures
    )
    return replace(model, subgraphs=subgraphs, signatures=signatures)


def _lives(node: Node, live: Container[int]) -> bool:
    return _acts(node) or any(t in live for t in node.outputs)


def _joined(graph: Subgraph, inner: Subgraph, operands: Sequence[int]) -> tuple[list[TensorSpec], dict[int, int]]:
    """Return the tensors of both graphs, and the new indices of the inner one's, whose inputs are ``operands``."""
    tensors, moved = list(graph.tensors), {ABSENT: ABSENT, **dict(zip(inner.inputs, operands, strict=True))}
    names = {spec.name for spec in tensors}
    for number, spec in enumerate(inner.tensors):
        if number not in moved:
            moved[number] = len(tensors)
            tensors.append(replace(spec, name=_unique(spec.name, names)))
    return tensors, moved


def _unique(name: str, names: set[str]) -> str:
    unique = next(n for n in itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1))) if n not in names)
    names.add(unique)
    return unique


def _called(node: Node, offset: int) -> Node:
    """Return a node with its subgraph indices moved by ``offset``."""
    if node.op is not WHILE:
        return node
    condition, body = node.options.cond_subgraph_index, node.options.body_subgraph_index
    options = replace(node.options, cond_subgraph_index=condition + offset, body_subgraph_index=body + offset)
    return replace(node, options=options)
