"""Rewrites a model so that variables are plain values: subgraphs take them as inputs and return them as outputs.

READ_VARIABLE reads a tensor, the variable's value at that point; ASSIGN_VARIABLE names the tensor that is the value
from there on. A node that runs a subgraph passes in the variables used there, and gets back the assigned ones. The same
goes for variable tensors of such subgraphs. So planning sees only data dependencies, and a variable in the body of a
loop is a loop variable.

Nodes keep their positions, and existing tensors their numbers. A region that begins after a variable was assigned
elsewhere reads its value from the state store, as the tensor that ``stored`` names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from litecl.delegate.analysis.states import is_state
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec, callees_of, updated_by
from litecl.interpreter.ops.control import CALL_ONCE, IF, WHILE
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, name_of
from litecl.interpreter.run.resources import agreed, running
from litecl.interpreter.run.variables import VariableKey
from litecl.interpreter.schema import TensorType

Specs = Sequence[Sequence[TensorSpec]]
Written = tuple[tuple[VariableKey, int], ...]


@dataclass(frozen=True, eq=False)
class Explicit:
    """A model whose variables are explicit, with the specs of its tensors.

    stored: by subgraph, the tensors whose values come from the state store, with the variable. written: by subgraph and
    node position, the variables that the node changes, each with the tensor of its new value. results: by subgraph, the
    outputs for a caller on the CPU. refused: nodes (subgraph, position) that cannot be part of a region, and why.
    halves: by subgraph, the tensors that are FLOAT16 for the CPU and float32 on the device; empty without any.
    unrounded: those of them whose numbers on the device may not be FLOAT16's.
    """

    model: Model
    specs: Specs
    stored: Sequence[Mapping[int, VariableKey]]
    written: Sequence[Mapping[int, Written]]
    results: Sequence[Sequence[int]]
    refused: Mapping[tuple[int, int], str]
    halves: Sequence[frozenset[int]] = ()
    unrounded: Sequence[frozenset[int]] = ()


def explicit(model: Model, specs: Specs) -> Explicit:
    """Make those variables explicit on whose type and shape all nodes agree."""
    uses = _Uses(model, specs)
    graphs = [_Rewriting(i, uses).rewritten() for i in range(len(model.subgraphs))]
    return Explicit(
        replace(model, subgraphs=tuple(graph.subgraph for graph in graphs)),
        tuple(tuple(graph.specs) for graph in graphs),
        tuple(graph.stored for graph in graphs),
        tuple(graph.written for graph in graphs),
        tuple(graph.results for graph in graphs),
        uses.refused,
    )


class _Uses:
    """The variables that each subgraph takes and returns besides its own inputs and outputs.

    taken: the variables used in it, or in subgraphs that it runs. assigned: those that it may change. returned: those
    that it returns; a loop's body returns all that it takes. handles: positions of inputs, and of outputs, that are
    handles of known variables rather than values.
    """

    def __init__(self, model: Model, specs: Specs) -> None:
        self.model, self.specs = model, specs
        self.running = running(model)
        self.variables = {name: spec for name, spec in agreed(model, specs, self.running).items() if spec is not None}
        count = len(model.subgraphs)
        self.taken: list[set[VariableKey]] = [set() for _ in range(count)]
        self.assigned: list[set[VariableKey]] = [set() for _ in range(count)]
        self.returned: list[set[VariableKey]] = [set() for _ in range(count)]
        self.handles = [
            (self._handles(i, g.inputs), self._handles(i, g.outputs)) for i, g in enumerate(model.subgraphs)
        ]
        self.refused: dict[tuple[int, int], str] = {}
        for index in self.running:
            self._own(index)
        self._spread()
        for index in self.running:
            for position, node in enumerate(model.subgraphs[index].nodes):
                if (reason := self._refusal(node)) is not None:
                    self.refused[index, position] = reason

    def variable(self, index: int, node: Node) -> str | None:
        """Return the variable that a node reads or assigns; None for other nodes, and if nodes disagree on its spec."""
        if node.op not in (READ_VARIABLE, ASSIGN_VARIABLE) or not node.inputs or index not in self.running:
            return None
        data = self.specs[index][node.inputs[0]].data
        name = None if data is None else name_of(data)
        return name if name in self.variables else None

    def spec(self, key: VariableKey) -> TensorSpec:
        """Return the spec of a variable's values; a variable tensor keeps its quantization, for its first value."""
        if isinstance(key, str):
            return replace(self.variables[key], data=None, name=key, is_variable=False)
        return replace(self.specs[key[0]][key[1]], data=None, is_variable=False)

    def _own(self, index: int) -> None:
        graph = self.model.subgraphs[index]
        for node in graph.nodes:
            if (name := self.variable(index, node)) is not None:
                self.taken[index].add(name)
                self.assigned[index] |= {name} if node.op is ASSIGN_VARIABLE else set()
            states = {(index, t) for t in node.inputs if t != ABSENT and is_state(graph, self.specs[index], t)}
            self.taken[index] |= states
            self.assigned[index] |= {key for key in states if key[1] in updated_by(node)}

    def _spread(self) -> None:
        """Propagate variables from subgraphs to the nodes that run them, until nothing changes."""
        size = -1
        while size != (size := sum(len(keys) for sets in (self.taken, self.assigned, self.returned) for keys in sets)):
            for index in self.running:
                self.returned[index] |= self.assigned[index]
                for node in self.model.subgraphs[index].nodes:
                    self._spread_node(index, node)

    def _spread_node(self, index: int, node: Node) -> None:
        callees = callees_of(node)
        if node.op is CALL_ONCE:  # it takes none, but changes those that it assigns
            self.taken[index] |= self.assigned[callees[0]]
            self.assigned[index] |= self.assigned[callees[0]]
        if not callees or node.op is CALL_ONCE:
            return
        taken, assigned, returned = (
            set().union(*(sets[callee] for callee in callees)) for sets in (self.taken, self.assigned, self.returned)
        )
        self.taken[index] |= taken
        self.assigned[index] |= assigned
        for callee in callees:
            self.taken[callee] |= taken
        if node.op is WHILE:
            self.returned[callees[1]] |= taken
        elif node.op is IF:
            for callee in callees:
                self.returned[callee] |= returned

    def _refusal(self, node: Node) -> str | None:
        callees = callees_of(node)
        if node.op is WHILE and self.assigned[callees[0]]:
            return "the condition assigns to a variable"
        if callees and node.op is not CALL_ONCE:
            inputs, outputs = (
                {self.handles[callee][way] for callee in (callees if not way or node.op is not WHILE else callees[1:])}
                for way in (0, 1)
            )
            if len(inputs) > 1 or len(outputs) > 1 or (node.op is WHILE and inputs != outputs):
                return "which variables it uses is known only at run time"
        return None

    def _handles(self, index: int, tensors: Sequence[int]) -> frozenset[int]:
        specs = self.specs[index]
        known = (specs[t].type == TensorType.RESOURCE and specs[t].data is not None for t in tensors)
        return frozenset(i for i, is_handle in enumerate(known) if is_handle)


@dataclass
class _Graph:
    subgraph: Subgraph
    specs: list[TensorSpec]
    stored: dict[int, VariableKey] = field(default_factory=dict)
    written: dict[int, Written] = field(default_factory=dict)
    results: tuple[int, ...] = ()


class _Rewriting:
    """The rewriting of one subgraph. current: the tensor with each variable's current value."""

    def __init__(self, index: int, uses: _Uses) -> None:
        self._index, self._uses = index, uses
        source = self._source = uses.model.subgraphs[index]
        self._graph = _Graph(source, list(uses.specs[index]), results=source.outputs)
        self._tensors = list(source.tensors)
        self._updated = {t for node in source.nodes for t in updated_by(node)}
        self._current: dict[VariableKey, int] = {}

    def rewritten(self) -> _Graph:
        """Return the rewritten subgraph."""
        uses, source, graph = self._uses, self._source, self._graph
        given = [self._first(key) for key in _in_order(uses.taken[self._index])]
        nodes = tuple(self._node(position, node) for position, node in enumerate(source.nodes))
        handed = [self._current[key] for key in _in_order(uses.returned[self._index])]
        inputs, outputs = (
            _without(tensors, handles)
            for tensors, handles in zip((source.inputs, source.outputs), uses.handles[self._index], strict=True)
        )
        graph.subgraph = Subgraph(tuple(self._tensors), (*inputs, *given), (*outputs, *handed), nodes, name=source.name)
        return graph

    def _first(self, key: VariableKey) -> int:
        own = not isinstance(key, str) and key[0] == self._index
        self._current[key] = key[1] if own and not isinstance(key, str) else self._another(key)
        self._graph.stored[self._current[key]] = key
        return self._current[key]

    def _another(self, key: VariableKey) -> int:
        """Add a tensor for a value of a variable, to read from the state store unless a region computes it."""
        spec = self._uses.spec(key)
        self._tensors.append(spec)
        self._graph.specs.append(spec)
        self._graph.stored[len(self._tensors) - 1] = key
        return len(self._tensors) - 1

    def _node(self, position: int, node: Node) -> Node:
        uses = self._uses
        if (name := uses.variable(self._index, node)) is not None:
            return self._read(node, name) if node.op is READ_VARIABLE else self._assign(position, node, name)
        if node.op is CALL_ONCE:  # it assigns in the state store, wherever it runs
            self._current |= {key: self._another(key) for key in uses.assigned[callees_of(node)[0]]}
            return node
        if callees_of(node) and self._index in uses.running:
            return self._call(position, node)
        self._write(position, {(self._index, t): t for t in updated_by(node) if (self._index, t) in self._current})
        return node

    def _write(self, position: int, values: Mapping[VariableKey, int]) -> None:
        self._current |= values
        if values:
            self._graph.written[position] = tuple(values.items())

    def _read(self, node: Node, name: str) -> Node:
        return replace(node, inputs=(self._current[name],))

    def _assign(self, position: int, node: Node, name: str) -> Node:
        value = node.inputs[1]
        if value not in self._updated:
            self._write(position, {name: value})
            return replace(node, inputs=(value,))
        copy = self._another(name)  # a later node may update the value in place
        self._write(position, {name: copy})
        return replace(node, inputs=(value,), outputs=(copy,))

    def _call(self, position: int, node: Node) -> Node:
        uses, callees = self._uses, callees_of(node)
        body, first = callees[-1], int(node.op is IF)
        taken, returned = _in_order(uses.taken[body]), _in_order(uses.returned[body])
        handles = uses.handles[body]
        inputs = (*node.inputs[:first], *_without(node.inputs[first:], handles[0]), *(self._current[k] for k in taken))
        results = {key: self._another(key) for key in returned}
        assigned = set().union(*(uses.assigned[callee] for callee in callees))
        self._write(position, {key: results[key] for key in returned if key in assigned})
        return replace(node, inputs=inputs, outputs=(*_without(node.outputs, handles[1]), *results.values()))


def _in_order(keys: set[VariableKey]) -> list[VariableKey]:
    """Return variables in the order in which callers and subgraphs pass them."""
    return sorted(keys, key=lambda key: (isinstance(key, str), key))


def _without(tensors: Sequence[int], positions: frozenset[int]) -> Iterator[int]:
    return (t for i, t in enumerate(tensors) if i not in positions)
