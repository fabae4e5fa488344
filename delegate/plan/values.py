"""The operands of a subgraph's tensors in one run, and the positions of those without memory of their own."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from litecl.delegate.analysis.loop_variables import origins
from litecl.delegate.cl_op import Launch, Operand, Target
from litecl.delegate.kit.claims import bits
from litecl.delegate.kit.shared import with_constants
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.delegate.plan.inline import Origin
from litecl.delegate.plan.request import Request
from litecl.delegate.plan.steps import Part, Steps, Within, Work, place_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import ABSENT, TensorSpec
from litecl.interpreter.schema import TensorType

Operands = Mapping[int, Operand]


@dataclass(frozen=True, eq=False)
class Lowered:
    """One run of a subgraph, lowered together with the subgraphs that it runs.

    last: the origin of the last node. operands: of its tensors. updated: the new values of variable tensors that nodes
    update. aliases: the positions of operands without memory of their own. lstms: the loops that run as an LSTM.
    merged: nodes fused into another one, with that one. overwritten: the tensors that a node overwrites in place.
    """

    steps: Steps
    last: Origin
    operands: Operands
    updated: Operands
    aliases: Mapping[Operand, Within]
    lstms: Sequence[Origin]
    merged: Mapping[Origin, Origin]
    overwritten: Collection[int]

    def newest(self, tensor: int) -> Operand:
        """Return the operand that holds a tensor's value at the end."""
        return self.updated.get(tensor) or self.operands[tensor]

    def root(self, operand: Operand) -> Operand:
        """Return the operand whose memory contains this one."""
        return place_of(operand, self.aliases)[0]


Lower = Callable[[int, Sequence[Operand], Operands, Collection[int]], Lowered]
"""Lowers a subgraph, given its inputs' operands, those of outputs with decided memory, and the inputs that may be
overwritten.
"""


class Values:
    """The operands of a graph's tensors, each created once: at the position that a pass assigned, or with own memory.

    pinned: the operands with prescribed memory. aliases, lstms, overwritten: see ``Lowered``.
    """

    def __init__(self, request: Request, graph: RegionGraph, pinned: Iterable[Operand], lower: Lower) -> None:
        self.request, self.graph = request, graph
        self.lstms: list[Origin] = []
        self._pinned, self._lower = set(pinned), lower
        self._operands = dict(graph.given)
        self._newest: dict[int, Operand] = {}  # the values of variable tensors that nodes of this run have updated
        self.aliases: dict[Operand, Within] = {}
        self._merged = {graph.origins[p.position]: graph.origins[n.position] for n in graph.nodes for p in n.fused}
        read = origins(graph.source, [node.position for node in graph.nodes])
        written = {read.get(node.inputs[0], node.inputs[0]) for node in graph.nodes if node.in_place}
        self.overwritten = written | {t for t, origin in read.items() if origin in written}
        for tensor, place in graph.places.items():  # wholes come before their parts
            operand = self._operands[tensor] = Operand(graph.specs[tensor], place.row_step)
            self.aliases[operand] = Within(self.operand(place.whole), place.offset)

    def lowered(self, steps: Steps) -> Lowered:
        """Return the run once all nodes are lowered to steps."""
        last = self.origin(self.graph.nodes[-1]) if self.graph.nodes else (self.graph.subgraph, 0)
        operands = self._operands | {t: self.operand(t) for t in self.graph.kept}
        return Lowered(steps, last, operands, self._newest, self.aliases, self.lstms, self._merged, self.overwritten)

    def run(self, subgraph: int, inputs: Sequence[Operand], pinned: Operands, owned: Collection[int] = ()) -> Lowered:
        """Lower a subgraph that a node runs, as part of this run; see ``Lower``."""
        callee = self._lower(subgraph, inputs, pinned, owned)
        self.aliases |= callee.aliases
        self._merged |= callee.merged
        self.lstms += callee.lstms
        return callee

    def operand(self, tensor: int) -> Operand:
        """Return the operand of a tensor."""
        if tensor not in self._operands:
            self._operands[tensor] = Operand(self.graph.specs[tensor])
        return self._operands[tensor]

    def newest(self, tensor: int) -> Operand:
        """Return the operand that holds a tensor's value as of the last node lowered."""
        return self._newest.get(tensor) or self.operand(tensor)

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

    def origin(self, node: RegionNode) -> Origin:
        """Return a node's subgraph, and its position there."""
        return self.graph.origins[node.position]

    def is_needed(self, tensor: int) -> bool:
        """Return whether anything reads a tensor."""
        return tensor in self.graph.kept or tensor in self.graph.readers

    def copy(self, node: RegionNode, source: Operand, into: Operand) -> Work:
        """Return a node's work that copies a whole tensor."""
        return copied(self.origin(node), source, into, self.request.target)

    def assign(self, node: RegionNode, source: Operand, into: Operand) -> list[Part]:
        """Give ``into`` the value of ``source``: as an alias, or by a copy if its memory is already decided."""
        if self.place(source) == self.place(into):
            return []
        if self.has_place(into):
            return [self.copy(node, source, into)]
        self.aliases[into] = Within(source)
        return []

    def place(self, operand: Operand) -> tuple[Operand, int]:
        """Return the operand whose memory contains this one, and the offset in bytes."""
        return place_of(operand, self.aliases)

    def has_place(self, operand: Operand) -> bool:
        """Return whether an operand's memory is decided."""
        return operand in self._pinned or operand in self.aliases


def work(origin: Origin, launch: Launch) -> Work:
    """Return a node's launch as work, its record arguments replaced by constants."""
    subgraph, node = origin
    return Work(node, with_constants(launch), subgraph)


def copied(origin: Origin, source: Operand, into: Operand, target: Target) -> Work:
    """Return a node's work that copies a whole tensor."""
    flat = view((source.spec.size,))
    return work(origin, copy(source, flat, into, flat, bits(source.spec), target))
