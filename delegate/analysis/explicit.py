"""A model in which variables are values like any others: subgraphs take them as inputs and return them as outputs.

A node that reads a resource variable reads a tensor, the variable's value at that place; one that assigns to it says
which tensor is the value from there on. A node that runs a subgraph hands it the variables that are used in it, and
gets those that are assigned. The same holds of variable tensors of subgraphs that nodes run. So what plans a region
sees no order but that of values, and a variable in the body of a loop is a loop variable.

Nodes keep their positions, and tensors that were there their numbers. A region that begins after a variable was
assigned elsewhere finds its value in the state store, under the tensor that ``stored`` names.
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
    """A model whose variables are explicit, and what is known of its tensors.

    stored: by subgraph, the tensors that are values of variables as the state store has them, with the variable.
    written: by subgraph and position of a node, the variables that it gives another value, and the tensors that have
    it. results: by subgraph, the outputs that a caller on the CPU gets. refused: nodes (subgraph, position) that cannot
    be part of a region, and why.
    """

    model: Model
    specs: Specs
    stored: Sequence[Mapping[int, VariableKey]]
    written: Sequence[Mapping[int, Written]]
    results: Sequence[Sequence[int]]
    refused: Mapping[tuple[int, int], str]


def explicit(model: Model, specs: Specs) -> Explicit:
    """Return a model with its variables explicit, as far as nodes agree on their types and shapes."""
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
    """The values that each subgraph takes and returns besides its own inputs and outputs.

    taken: the variables that are used in it or in subgraphs that it runs. assigned: those that may get another value.
    returned: those that it returns, which for the body of a loop are all that it takes. handles: positions of inputs,
    and of outputs, that are handles of known variables and so are no values.
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
        """Return the variable that a node reads or assigns, None where it does neither, or nodes do not agree on it."""
        if node.op not in (READ_VARIABLE, ASSIGN_VARIABLE) or not node.inputs or index not in self.running:
            return None
        data = self.specs[index][node.inputs[0]].data
        name = None if data is None else name_of(data)
        return name if name in self.variables else None

    def spec(self, key: VariableKey) -> TensorSpec:
        """Return the type and shape of a variable, and of a tensor the quantization that its first value follows."""
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
        """Follow variables to whatever runs a subgraph, until nothing changes."""
        size = -1
        while size != (size := sum(len(keys) for sets in (self.taken, self.assigned, self.returned) for keys in sets)):
            for index in self.running:
                self.returned[index] |= self.assigned[index]
                for node in self.model.subgraphs[index].nodes:
                    self._spread_node(index, node)

    def _spread_node(self, index: int, node: Node) -> None:
        callees = callees_of(node)
        if node.op is CALL_ONCE:  # it takes nothing, but what it assigns is another value from there on
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
            given, made = (
                {self.handles[callee][way] for callee in (callees if not way or node.op is not WHILE else callees[1:])}
                for way in (0, 1)
            )
            if len(given) > 1 or len(made) > 1 or (node.op is WHILE and given != made):
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
    """One subgraph on its way. current: the tensor that has the value of each variable."""

    def __init__(self, index: int, uses: _Uses) -> None:
        self._index, self._uses = index, uses
        source = self._source = uses.model.subgraphs[index]
        self._made = _Graph(source, list(uses.specs[index]), results=source.outputs)
        self._tensors = list(source.tensors)
        self._updated = {t for node in source.nodes for t in updated_by(node)}
        self._current: dict[VariableKey, int] = {}

    def rewritten(self) -> _Graph:
        """Return the subgraph, itself where it uses no variable."""
        uses, source, made = self._uses, self._source, self._made
        given = [self._first(key) for key in _in_order(uses.taken[self._index])]
        nodes = tuple(self._node(position, node) for position, node in enumerate(source.nodes))
        handed = [self._current[key] for key in _in_order(uses.returned[self._index])]
        inputs, outputs = (
            _without(tensors, handles)
            for tensors, handles in zip((source.inputs, source.outputs), uses.handles[self._index], strict=True)
        )
        made.subgraph = Subgraph(tuple(self._tensors), (*inputs, *given), (*outputs, *handed), nodes, name=source.name)
        return made

    def _first(self, key: VariableKey) -> int:
        own = not isinstance(key, str) and key[0] == self._index
        self._current[key] = key[1] if own and not isinstance(key, str) else self._another(key)
        self._made.stored[self._current[key]] = key
        return self._current[key]

    def _another(self, key: VariableKey) -> int:
        """Return a new tensor for a value of a variable, which the state store has where no region makes it."""
        spec = self._uses.spec(key)
        self._tensors.append(spec)
        self._made.specs.append(spec)
        self._made.stored[len(self._tensors) - 1] = key
        return len(self._tensors) - 1

    def _node(self, position: int, node: Node) -> Node:
        uses = self._uses
        if (name := uses.variable(self._index, node)) is not None:
            return self._read(node, name) if node.op is READ_VARIABLE else self._assign(position, node, name)
        if node.op is CALL_ONCE:  # what it assigns is in the state store, wherever it runs
            self._current |= {key: self._another(key) for key in uses.assigned[callees_of(node)[0]]}
            return node
        if callees_of(node) and self._index in uses.running:
            return self._call(position, node)
        self._write(position, {(self._index, t): t for t in updated_by(node) if (self._index, t) in self._current})
        return node

    def _write(self, position: int, values: Mapping[VariableKey, int]) -> None:
        self._current |= values
        if values:
            self._made.written[position] = tuple(values.items())

    def _read(self, node: Node, name: str) -> Node:
        return replace(node, inputs=(self._current[name],))

    def _assign(self, position: int, node: Node, name: str) -> Node:
        value = node.inputs[1]
        if value not in self._updated:
            self._write(position, {name: value})
            return replace(node, inputs=(value,))
        copy = self._another(name)  # of what a node may update later
        self._write(position, {name: copy})
        return replace(node, inputs=(value,), outputs=(copy,))

    def _call(self, position: int, node: Node) -> Node:
        uses, callees = self._uses, callees_of(node)
        body, first = callees[-1], int(node.op is IF)
        taken, returned = _in_order(uses.taken[body]), _in_order(uses.returned[body])
        given, made = uses.handles[body]
        inputs = (*node.inputs[:first], *_without(node.inputs[first:], given), *(self._current[k] for k in taken))
        results = {key: self._another(key) for key in returned}
        assigned = set().union(*(uses.assigned[callee] for callee in callees))
        self._write(position, {key: results[key] for key in returned if key in assigned})
        return replace(node, inputs=inputs, outputs=(*_without(node.outputs, made), *results.values()))


def _in_order(keys: set[VariableKey]) -> list[VariableKey]:
    """Return variables in an order that is the same wherever they are handed over."""
    return sorted(keys, key=lambda key: (isinstance(key, str), key))


def _without(tensors: Sequence[int], positions: frozenset[int]) -> Iterator[int]:
    return (t for i, t in enumerate(tensors) if i not in positions)
