"""The operands of a subgraph's tensors in one run, and their memory once it is decided."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field

from litecl.delegate.analysis.loop_variables import origins
from litecl.delegate.cl_op import DeviceOp, Launch, Operand, Target
from litecl.delegate.kit.claims import bits
from litecl.delegate.kit.shared import with_constants
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.delegate.plan.inline import Inlined, Origin, inlined
from litecl.delegate.plan.steps import Part, Slot, Within, Work, place_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import ABSENT, Model, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.schema import TensorType


@dataclass
class Planning:
    """A plan under construction: its model and target, and the operands' memory in all runs of subgraphs.

    observe: called with the name of every pass and the graph after it. aliases: the positions of operands without
    memory of their own. slots: the positions of loop variables and states. lstms, loops: the loops (subgraph and node)
    that run as an LSTM, and the others, by number. merged: nodes fused into another one, with that one. graphs:
    subgraphs with calls inlined. halves: whether large weights of products are fp16, except those of the nodes
    (subgraph and position) ``in_float``.
    """

    model: Model
    specs: Sequence[Sequence[TensorSpec]]
    target: Target
    alignment: int
    cl_ops: Mapping[Op, DeviceOp]
    observe: Callable[[str, RegionGraph], None] | None = None
    in_float: Collection[tuple[int, int]] = ()
    halves: bool = False
    aliases: dict[Operand, Within] = field(default_factory=dict)
    slots: dict[Operand, Slot] = field(default_factory=dict)
    lstms: list[tuple[int, int]] = field(default_factory=list)
    merged: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    loops: list[tuple[int, int]] = field(default_factory=list)
    graphs: dict[int, Inlined] = field(default_factory=dict)

    def graph(self, subgraph: int) -> Inlined:
        """Return a subgraph with calls inlined."""
        if subgraph not in self.graphs:
            self.graphs[subgraph] = inlined(self.model, self.specs, subgraph)
        return self.graphs[subgraph]

    def in_halves(self, origins: Iterable[Origin]) -> bool:
        """Return whether large weights of fused nodes are fp16, as none of them must compute in float32."""
        return self.halves and not any(origin in self.in_float for origin in origins)

    def place(self, operand: Operand) -> tuple[Operand, int]:
        """Return the operand whose memory contains this one, and the offset in bytes."""
        return place_of(operand, self.aliases)


class Values:
    """The operands of a graph's tensors, each created once: at the position that a pass assigned, or with own memory.

    pinned: the operands with prescribed memory. overwritten: the tensors that a node overwrites in place.
    """

    def __init__(self, planning: Planning, graph: RegionGraph, pinned: Collection[Operand]) -> None:
        self.planning, self.graph = planning, graph
        self.pinned = set(pinned)
        self._operands = dict(graph.given)
        self._newest: dict[int, Operand] = {}  # the values of variable tensors that nodes of this run have updated
        read = origins(graph.source, [node.position for node in graph.nodes])
        written = {read.get(node.inputs[0], node.inputs[0]) for node in graph.nodes if node.in_place}
        self.overwritten = written | {t for t, origin in read.items() if origin in written}
        for tensor, place in graph.places.items():  # wholes come before their parts
            operand = self._operands[tensor] = Operand(graph.specs[tensor], place.row_step)
            planning.aliases[operand] = Within(self.operand(place.whole), place.offset)

    def operand(self, tensor: int) -> Operand:
        """Return the operand of a tensor."""
        if tensor not in self._operands:
            self._operands[tensor] = Operand(self.graph.specs[tensor])
        return self._operands[tensor]

    def newest(self, tensor: int) -> Operand:
        """Return the operand that holds a tensor's value as of the last node lowered."""
        return self._newest.get(tensor) or self.operand(tensor)

    def inputs(self, node: RegionNode) -> list[Operand | None]:
        """Return a node's input operands, None for absent ones."""
        return [None if t == ABSENT else self.newest(t) for t in node.inputs]

    def outputs(self, node: RegionNode) -> list[Operand]:
        """Return a node's output operands, then the new values of the variables that it updates."""
        if node.in_place:
            self._operands.setdefault(node.outputs[0], self.newest(node.inputs[0]))
        return [*(self.operand(t) for t in node.outputs), *(self._state(t) for t in node.states)]

    def _state(self, tensor: int) -> Operand:
        """Return the operand of a variable's new value."""
        if tensor == ABSENT:
            return Operand(TensorSpec(TensorType.FLOAT32, ()))
        after = self._newest[tensor] = Operand(self.graph.specs[tensor])
        return after

    def work(self, position: int, launch: Launch) -> Work:
        """Return a node's launch as work, its record arguments replaced by constants."""
        subgraph, node = self.graph.origins[position]
        return Work(node, with_constants(launch), subgraph)

    def is_needed(self, tensor: int) -> bool:
        """Return whether anything reads a tensor."""
        return tensor in self.graph.kept or tensor in self.graph.readers

    def copy(self, position: int, source: Operand, into: Operand) -> Work:
        """Return a node's work that copies a whole tensor."""
        flat = view((source.spec.size,))
        launch = copy(source, flat, into, flat, bits(source.spec), self.planning.target)
        return self.work(position, launch)

    def assign(self, position: int, source: Operand, into: Operand) -> list[Part]:
        """Give ``into`` the value of ``source``: as an alias, or by a copy if its memory is already decided."""
        if self.planning.place(source) == self.planning.place(into):
            return []
        if self.has_place(into):
            return [self.copy(position, source, into)]
        self.planning.aliases[into] = Within(source)
        return []

    def has_place(self, operand: Operand) -> bool:
        """Return whether an operand's memory is decided."""
        return operand in self.pinned or operand in self.planning.aliases
