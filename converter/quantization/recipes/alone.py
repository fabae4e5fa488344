"""Cuts a model at a layer: the layer alone to measure its bytes, or the nodes from it on to run them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from litecl.converter.quantization.data import Sample, signatures_of
from litecl.converter.quantization.recipes.layers import Place, address_of
from litecl.converter.quantization.watch import Look, Runner
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Signature, Subgraph
from litecl.interpreter.op import Op
from litecl.interpreter.schema import TensorType

_MOST_BYTES = 1 << 30  # of recorded values


@dataclass(frozen=True)
class Part:
    """Some nodes of a model, as a model. places: their new places, by their places in the whole model."""

    model: Model
    places: Mapping[Place, Place]


def alone(model: Model, places: Sequence[Place]) -> Part:
    """Return a layer's nodes as a model whose file shrinks by as many bytes as the whole model's.

    A constant that other nodes read too becomes an output, which keeps it in the file.
    """
    own = set(places)
    others = {
        address_of(data)
        for i, graph in enumerate(model.subgraphs)
        for n, node in enumerate(graph.nodes)
        for t in node.inputs
        if (i, n) not in own and t != ABSENT and (data := graph.tensors[t].data) is not None
    }
    graphs, moved = list[Subgraph](), dict[Place, Place]()
    for i, graph in enumerate(model.subgraphs):
        numbers = [n for j, n in places if j == i]
        if numbers:
            moved |= {(i, n): (len(graphs), new) for new, n in enumerate(numbers)}
            graphs.append(_only(graph, [graph.nodes[n] for n in numbers], others))
    return Part(Model(tuple(graphs)), moved)


def _only(graph: Subgraph, nodes: Sequence[Node], others: set[int]) -> Subgraph:
    used = dict.fromkeys(t for node in nodes for t in (*node.inputs, *node.outputs) if t != ABSENT)
    places = {t: new for new, t in enumerate(used)} | {ABSENT: ABSENT}
    computed = {t for node in nodes for t in node.outputs}
    given = [
        t for t in used if t not in computed and graph.tensors[t].data is None and not graph.tensors[t].is_variable
    ]
    kept = [t for t in used if (data := graph.tensors[t].data) is not None and address_of(data) in others]
    moved = [
        replace(node, inputs=tuple(places[t] for t in node.inputs), outputs=tuple(places[t] for t in node.outputs))
        for node in nodes
    ]
    ends = tuple(places[t] for t in (*computed, *kept))
    tensors = tuple(graph.tensors[t] for t in used)
    return replace(graph, tensors=tensors, nodes=tuple(moved), inputs=tuple(places[t] for t in given), outputs=ends)


@dataclass(frozen=True)
class Tail:
    """A model's nodes from one on, and samples of the values they read from earlier ones."""

    part: Part
    samples: Sequence[Sample]


class Tails:
    """Runs a model on samples once, and then gives its tail from any node.

    expected: the model's outputs for each sample, by name.
    """

    def __init__(self, model: Model, samples: Sequence[Sample], firsts: Sequence[int]) -> None:
        self._model, self._samples = model, samples
        self._values: list[dict[int, Array]] = []
        graph = model.subgraphs[0]
        self._begins = {first: _begin(graph, first) for first in firsts} if _plain(model) else {}
        lives = {begin: _live(graph, begin) for begin in self._begins.values()}
        wanted = {t for live in lives.values() for t in live}
        size = sum(prod(graph.tensors[t].static_shape) for t in wanted) * 4 * len(samples)
        self._lives = lives if size <= _MOST_BYTES else {}
        run = Runner(model, {0: dict(self._looks(wanted))} if self._lives else {})
        self.expected: list[Mapping[str, Array]] = []
        for sample in samples:
            self._values.append({})
            self.expected.append(run(sample))

    def _looks(self, wanted: set[int]) -> Iterator[tuple[int | None, list[tuple[list[int], Look]]]]:
        graph = self._model.subgraphs[0]
        ends = [(None, graph.inputs), *enumerate(node.outputs for node in graph.nodes)]
        for number, written in ends:
            yield number, [([t], self._keeping(t)) for t in written if t in wanted]

    def _keeping(self, tensor: int) -> Look:
        def look(values: Sequence[Array]) -> None:
            self._values[-1][tensor] = np.array(values[0])

        return look

    def of(self, first: int) -> Tail | None:
        """Return the tail from a node on, and from earlier nodes that write its states; None if it can't run alone."""
        begin, graph = self._begins.get(first, 0), self._model.subgraphs[0]
        live = self._lives.get(begin)
        shapes = {t: graph.tensors[t].shape for t in live or ()}
        if live is None or any(values[t].shape != shapes[t] for values in self._values for t in live):
            return None
        nodes = graph.nodes[begin:]
        (whole,) = signatures_of(self._model)
        signature = Signature(whole.key, {str(t): t for t in live}, whole.outputs)
        rest = replace(self._model, subgraphs=(replace(graph, nodes=nodes, inputs=live),), signatures=(signature,))
        places = {(0, begin + n): (0, n) for n in range(len(nodes))}
        given = [(signature, {str(t): values[t] for t in live}) for values in self._values]
        return Tail(Part(rest, places), given)


def _plain(model: Model) -> bool:
    """Return whether a model is one subgraph of fixed shapes and pure nodes."""
    if len(model.subgraphs) != 1 or len(signatures_of(model)) != 1:
        return False
    (graph,) = model.subgraphs
    varying = [t for t in graph.tensors if t.data is None]
    handed = (TensorType.RESOURCE, TensorType.VARIANT)
    fixed = all(t.shape is not None and t.shape_signature is None and t.type not in handed for t in varying)
    read = [t for node in graph.nodes for t in {*node.inputs} if t != ABSENT and graph.tensors[t].is_variable]
    return fixed and len({*read}) == len(read) and all(isinstance(n.op, Op) and n.op.pure for n in graph.nodes)


def _begin(graph: Subgraph, first: int) -> int:
    """Return the first node to run: ``first``, or an earlier one that writes variables which the tail reads."""
    begin, read = first, _states(graph.nodes[first:], graph)
    for number in reversed(range(first)):
        if read.intersection(graph.nodes[number].outputs):
            begin, read = number, read | _states(graph.nodes[number:begin], graph)
    return begin


def _states(nodes: Sequence[Node], graph: Subgraph) -> set[int]:
    """Return the variables that nodes read."""
    return {t for node in nodes for t in node.inputs if t != ABSENT and graph.tensors[t].is_variable}


def _live(graph: Subgraph, first: int) -> tuple[int, ...]:
    """Return the values that the tail and the outputs read from inputs and earlier nodes."""
    later = {t for node in graph.nodes[first:] for t in node.outputs}
    read = [t for node in graph.nodes[first:] for t in node.inputs if t != ABSENT] + [*graph.outputs]
    specs = graph.tensors
    return tuple(
        dict.fromkeys(t for t in read if t not in later and specs[t].data is None and not specs[t].is_variable)
    )
