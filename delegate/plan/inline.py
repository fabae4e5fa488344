"""Inlines calls and composites: the nodes of their subgraphs replace them, so that passes see them.

A composite is then its decomposition, whatever its name. Passes find norms, rotations and attention in it by structure,
so a composite whose decomposition computes something else is never mistaken for what its name promises.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from litecl.delegate.analysis.loop_variables import live_nodes
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec, acts, callees_of
from litecl.interpreter.ops.control import CALL, STABLEHLO_COMPOSITE

_CALLS = (CALL, STABLEHLO_COMPOSITE)

Specs = Sequence[TensorSpec]
Origin = tuple[int, int]
"""The subgraph of a node in the model, and its position there."""


@dataclass(frozen=True, eq=False)
class Inlined:
    """A subgraph with calls inlined where possible; the callees' tensors follow its own.

    specs: of all tensors. origins: the origin of each node. positions: the nodes that replace each node of the model's
    subgraph.
    """

    source: Subgraph
    specs: Specs
    origins: Sequence[Origin]
    positions: Sequence[Sequence[int]]

    def live(self, nodes: Sequence[int], kept: Collection[int]) -> tuple[int, ...]:
        """Return the live nodes that replace nodes of the model's subgraph. kept: the tensors read later."""
        running = [n for i in nodes for n in self.positions[i]]
        return live_nodes(self.source, running, kept)


def inlined(model: Model, specs: Sequence[Specs], index: int, nodes: Collection[int] | None = None) -> Inlined:
    """Return a subgraph with calls inlined.

    specs: of each subgraph's tensors. nodes: the nodes that may be inlined, all by default.
    """
    graph = model.subgraphs[index]
    asked = range(len(graph.nodes)) if nodes is None else nodes
    calls = {i for i in asked if graph.nodes[i].op in _CALLS}
    if not calls:
        return as_it_is(graph, specs[index], index)
    building = _Building(model, specs, index)
    own = {t: t for t in (ABSENT, *range(len(graph.tensors)))}
    positions = []
    for i in range(len(graph.nodes)):
        start = len(building.nodes)
        if i in calls:
            building.add(index, i, own)
        else:
            building.keep(index, i, own)
        positions.append(range(start, len(building.nodes)))
    source = replace(graph, tensors=tuple(building.tensors), nodes=tuple(building.nodes))
    return Inlined(source, tuple(building.specs), building.origins, positions)


def as_it_is(graph: Subgraph, specs: Specs, index: int = 0) -> Inlined:
    """Return a subgraph with nothing inlined."""
    origins = [(index, i) for i in range(len(graph.nodes))]
    return Inlined(graph, specs, origins, [(i,) for i in range(len(graph.nodes))])


class _Building:
    """A subgraph under construction."""

    def __init__(self, model: Model, specs: Sequence[Specs], index: int) -> None:
        self._model, self._specs = model, specs
        self.tensors = list(model.subgraphs[index].tensors)
        self.specs = list(specs[index])
        self.nodes: list[Node] = []
        self.origins: list[Origin] = []

    def add(self, subgraph: int, position: int, indices: Mapping[int, int]) -> None:
        """Add a node of a subgraph, inlined if it is a plain call. indices: the new index of every tensor."""
        node = self._model.subgraphs[subgraph].nodes[position]
        callee = callees_of(node)[0] if node.op in _CALLS else None
        if callee is None or not self._is_plain(callee, own := node.moved(indices)):
            self.keep(subgraph, position, indices)
            return
        graph = self._model.subgraphs[callee]
        inner = self._indices(callee, own)
        for i in live_nodes(graph):
            self.add(callee, i, inner)

    def keep(self, subgraph: int, position: int, indices: Mapping[int, int]) -> None:
        """Add a node of a subgraph unchanged."""
        self.nodes.append(self._model.subgraphs[subgraph].nodes[position].moved(indices))
        self.origins.append((subgraph, position))

    def _indices(self, callee: int, node: Node) -> dict[int, int]:
        """Return the new indices of a callee's tensors. Its inputs and outputs are the call's."""
        graph, start = self._model.subgraphs[callee], len(self.tensors)
        indices = {ABSENT: ABSENT} | {t: start + t for t in range(len(graph.tensors))}
        self.tensors += graph.tensors
        self.specs += self._specs[callee]
        for inner, outer in _ends(graph, node):
            indices[inner] = outer
        return indices

    def _is_plain(self, callee: int, node: Node) -> bool:
        """Return whether a call can be inlined: the callee computes all outputs, which are distinct, types and shapes
        match, and it has no side effects or variables.
        """
        graph, specs = self._model.subgraphs[callee], self._specs[callee]
        computed = {t for n in graph.nodes for t in n.outputs if specs[t].data is None}
        alone = len(set(graph.outputs)) == len(graph.outputs) and computed.issuperset(graph.outputs)
        same = all(outer != ABSENT and _same(specs[inner], self.specs[outer]) for inner, outer in _ends(graph, node))
        steady = not any(acts(self._model, n) for n in graph.nodes) and not any(s.is_variable for s in specs)
        return alone and same and steady and len(set(graph.inputs)) == len(graph.inputs)


def _ends(graph: Subgraph, node: Node) -> list[tuple[int, int]]:
    """Pair a callee's inputs and outputs with the call's."""
    return [*zip(graph.inputs, node.inputs, strict=True), *zip(graph.outputs, node.outputs, strict=True)]


def _same(inner: TensorSpec, outer: TensorSpec) -> bool:
    """Return whether a tensor has the same type, static shape and quantization in callee and caller."""
    a, b = inner.quantization, outer.quantization
    alike = a is b if a is None or b is None else a.same(b)
    return alike and inner.type == outer.type and inner.shape is not None and inner.shape == outer.shape
