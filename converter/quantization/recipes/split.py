"""Layers whose output channels are stored in two ways: two layers beside each other, whose results are joined."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.quantization.recipes.choices import entry_of
from litecl.converter.quantization.recipes.recipe import Recipe
from litecl.converter.versions import version_of
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED

Place = tuple[int, int]
"""A subgraph and the number of a node."""

FEWEST = 4  # channels of a part: LiteRT's kernels for blocks of weights are wrong for fewer
_SLICED: Mapping[Op | ControlOp, Mapping[int, int]] = {
    FULLY_CONNECTED: {1: 0, 2: 0},
    CONV_2D: {1: 0, 2: 0},
    EMBEDDING_LOOKUP: {1: 1},
}
"""The constants that hold an element or a row for each output channel, by position, with the dimension of these."""


@dataclass(frozen=True)
class Split:
    """A model with divided layers. places: of each node of the whole model, that of the same node, or of its parts."""

    model: Model
    places: Mapping[Place, tuple[Place, ...]]


def channels_of(graph: Subgraph, node: Node) -> int:
    """Return how many output channels a layer has that can be divided, 0 if it cannot."""
    sliced = _SLICED.get(node.op)
    if sliced is None or graph.tensors[node.outputs[0]].shape is None:
        return 0
    given = {p: graph.tensors[node.inputs[p]] for p in sliced if p < len(node.inputs) and node.inputs[p] != ABSENT}
    weights = given[1]
    if (
        any(spec.data is None or spec.quantization is not None for spec in given.values())
        or len(weights.static_shape) < 2
    ):
        return 0
    x = graph.tensors[node.inputs[0]]
    if node.op is CONV_2D and (x.shape is None or x.shape[-1] != weights.static_shape[-1]):  # of several groups
        return 0
    if node.op is EMBEDDING_LOOKUP and len(weights.static_shape) != 2:
        return 0
    return weights.static_shape[sliced[1]]


def divided(model: Model, cuts: Mapping[Place, int]) -> Split:
    """Return a model in which layers are two: one of the first channels, as many as given, and one of the rest.

    The parts have the layer's name with ``/first`` and ``/rest``.
    """
    graphs = []
    places: dict[Place, tuple[Place, ...]] = {}
    for index, graph in enumerate(model.subgraphs):
        own = {n: count for (i, n), count in cuts.items() if i == index}
        made, numbers = _divided(graph, own)
        graphs.append(made)
        places |= {(index, n): tuple((index, new) for new in parts) for n, parts in numbers.items()}
    return Split(replace(model, subgraphs=tuple(graphs)), places)


def by_recipe(model: Model, recipe: Recipe) -> Model:
    """Return a model whose layers are divided where a recipe says so.

    Raises ConversionError for layers that cannot be.
    """
    cuts: dict[Place, int] = {}
    for index, graph in enumerate(model.subgraphs):
        for number, node in enumerate(graph.nodes):
            entry = entry_of(graph, node, recipe)
            if entry is None or not entry.config.split:
                continue
            channels = channels_of(graph, node)
            if not FEWEST <= entry.config.split <= channels - FEWEST:
                raise ConversionError(
                    f"recipe: entry {entry.number}: split: expected at least {FEWEST} output channels on either side, "
                    f"got {entry.config.split} of {channels} of {node.op.name} {graph.tensors[node.outputs[0]].name!r}"
                )
            cuts[index, number] = entry.config.split
    return divided(model, cuts).model if cuts else model


def _divided(graph: Subgraph, cuts: Mapping[int, int]) -> tuple[Subgraph, Mapping[int, tuple[int, ...]]]:
    tensors, nodes = list(graph.tensors), list[Node]()
    places: dict[int, tuple[int, ...]] = {}
    readers = Counter(t for node in graph.nodes for t in set(node.inputs))
    single = {t for t, count in readers.items() if count == 1} - set(graph.outputs)
    for number, node in enumerate(graph.nodes):
        if number not in cuts:
            places[number] = (len(nodes),)
            nodes.append(node)
            continue
        places[number] = (len(nodes), len(nodes) + 1)
        first, rest = range(cuts[number]), range(cuts[number], channels_of(graph, node))
        parts = [_part(tensors, node, first, "first", set()), _part(tensors, node, rest, "rest", single)]
        nodes += [*parts, _joined(tensors, parts, node.outputs[0])]
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes)), places


def _part(tensors: list[TensorSpec], node: Node, channels: range, name: str, free: Collection[int]) -> Node:
    """Return a node for some channels. free: constants whose places slices of them take."""
    inputs = list(node.inputs)
    for position, axis in _SLICED[node.op].items():
        if position >= len(inputs) or inputs[position] == ABSENT:
            continue
        whole = inputs[position]
        piece = _slice(tensors[whole], axis, channels, name)
        if whole in free:
            tensors[whole] = piece
        else:
            inputs[position] = _push(tensors, piece)
    made = tensors[node.outputs[0]]
    shape, signature = (*made.static_shape[:-1], len(channels)), made.shape_signature
    signature = None if signature is None else (*signature[:-1], len(channels))
    output = _push(tensors, replace(made, name=f"{made.name}/{name}", shape=shape, shape_signature=signature))
    return replace(node, inputs=tuple(inputs), outputs=(output,))


def _slice(spec: TensorSpec, axis: int, channels: range, name: str) -> TensorSpec:
    assert spec.data is not None
    data = np.take(spec.data, channels, axis)
    return replace(spec, shape=data.shape, data=data, name=f"{spec.name}/{name}")


def _joined(tensors: list[TensorSpec], parts: list[Node], output: int) -> Node:
    inputs = tuple(part.outputs[0] for part in parts)
    options = ConcatenationOptions(len(tensors[output].static_shape) - 1)
    node = Node(CONCATENATION, inputs, (output,), options)
    return replace(node, version=version_of(node, [tensors[t] for t in inputs]))


def _push(tensors: list[TensorSpec], spec: TensorSpec) -> int:
    tensors.append(spec)
    return len(tensors) - 1
