"""Calls and composites in a graph: the nodes of the subgraphs that they run stand in their place, for passes to see.

A composite is then what its decomposition computes, whatever it is called. Passes find norms, rotations and attention
in it by structure, and a composite whose decomposition does something else is never taken for what its name says.
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
    """A subgraph without the calls that can do without: tensors of what they ran follow its own.

    specs: of all tensors. origins: where each node comes from. positions: by node of the subgraph in the model, the
    nodes in its place.
    """

    source: Subgraph
    specs: Specs
    origins: Sequence[Origin]
    positions: Sequence[Sequence[int]]

    def live(self, nodes: Sequence[int], kept: Collection[int]) -> tuple[int, ...]:
        """Return what runs for nodes of the subgraph in the model, without what nothing reads. kept: what is read
        later.
        """
        running = [n for i in nodes for n in self.positions[i]]
        return live_nodes(self.source, running, kept)


def inlined(model: Model, specs: Sequence[Specs], index: int, nodes: Collection[int] | None = None) -> Inlined:
    """Return a subgraph with the nodes of others in place of calls.

    specs: of the tensors of each subgraph. nodes: those that may be such calls, all by default.
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
    """Return a subgraph with all its nodes in their places."""
    origins = [(index, i) for i in range(len(graph.nodes))]
    return Inlined(graph, specs, origins, [(i,) for i in range(len(graph.nodes))])


class _Building:
    """A subgraph to which nodes are added."""

    def __init__(self, model: Model, specs: Sequence[Specs], index: int) -> None:
        self._model, self._specs = model, specs
        self.tensors = list(model.subgraphs[index].tensors)
        self.specs = list(specs[index])
        self.nodes: list[Node] = []
        self.origins: list[Origin] = []

    def add(self, subgraph: int, position: int, place: Mapping[int, int]) -> None:
        """Add a node of a subgraph, or what it runs in its place. place: the new number of every tensor."""
        node = self._model.subgraphs[subgraph].nodes[position]
        callee = callees_of(node)[0] if node.op in _CALLS else None
        if callee is None or not self._is_plain(callee, own := node.moved(place)):
            self.keep(subgraph, position, place)
            return
        graph = self._model.subgraphs[callee]
        inner = self._places(callee, own)
        for i in live_nodes(graph):
            self.add(callee, i, inner)

    def keep(self, subgraph: int, position: int, place: Mapping[int, int]) -> None:
        """Add a node of a subgraph as it is."""
        self.nodes.append(self._model.subgraphs[subgraph].nodes[position].moved(place))
        self.origins.append((subgraph, position))

    def _places(self, callee: int, node: Node) -> dict[int, int]:
        """Return the numbers of a subgraph's tensors where a node runs it: its own are new ones."""
        graph, start = self._model.subgraphs[callee], len(self.tensors)
        place = {ABSENT: ABSENT} | {t: start + t for t in range(len(graph.tensors))}
        self.tensors += graph.tensors
        self.specs += self._specs[callee]
        for inner, outer in _ends(graph, node):
            place[inner] = outer
        return place

    def _is_plain(self, callee: int, node: Node) -> bool:
        """Return whether a subgraph's nodes compute a call's results: each of its own, of the same type, and of nothing
        but its inputs.
        """
        graph, specs = self._model.subgraphs[callee], self._specs[callee]
        made = {t for n in graph.nodes for t in n.outputs if specs[t].data is None}
        alone = len(set(graph.outputs)) == len(graph.outputs) and made.issuperset(graph.outputs)
        same = all(outer != ABSENT and _same(specs[inner], self.specs[outer]) for inner, outer in _ends(graph, node))
        steady = not any(acts(self._model, n) for n in graph.nodes) and not any(s.is_variable for s in specs)
        return alone and same and steady and len(set(graph.inputs)) == len(graph.inputs)


def _ends(graph: Subgraph, node: Node) -> list[tuple[int, int]]:
    """Return the inputs and outputs of a subgraph with the tensors that a node gives it and gets."""
    return [*zip(graph.inputs, node.inputs, strict=True), *zip(graph.outputs, node.outputs, strict=True)]


def _same(inner: TensorSpec, outer: TensorSpec) -> bool:
    """Return whether a tensor is the same inside as outside, its quantization included."""
    a, b = inner.quantization, outer.quantization
    alike = a is b if a is None or b is None else a.same(b)
    return alike and inner.type == outer.type and inner.shape is not None and inner.shape == outer.shape
