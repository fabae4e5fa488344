"""The nodes of one run of a subgraph as steps: operands for its tensors, activations and residuals fused in."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from litecl.delegate.analysis.loop_variables import in_place
from litecl.delegate.analysis.states import is_state, states_of, updated_by
from litecl.delegate.cl_op import Activation, Alias, Call, ClOp, DeviceOp, Move, Operand, Pads, Step, Target
from litecl.delegate.kit.claims import bits, fused_activation
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.plan import places
from litecl.delegate.plan.chain import chain_from
from litecl.delegate.plan.control import CONTROL_STEPS
from litecl.delegate.plan.steps import Part, Slot, Within, Work, place_of
from litecl.interpreter.graph import ABSENT, Model, Node, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.binary import ADD, MUL
from litecl.interpreter.ops.unary import LOGISTIC
from litecl.interpreter.schema import Padding, TensorType

_NONE = Activation()


@dataclass(frozen=True, eq=False)
class State:
    """A variable tensor: where the region reads it, and where it leaves the new value."""

    tensor: int
    before: Operand
    after: Operand


@dataclass
class Lowered:
    """What all scopes of a plan share: the model, and what they found out about its operands.

    aliases: where an operand lies that has no memory of its own. slots: the places of loop variables. lstms: loops
    (subgraph and node) that run as an LSTM.
    """

    model: Model
    specs: Sequence[Sequence[TensorSpec]]
    target: Target
    alignment: int
    cl_ops: Mapping[Op, DeviceOp]
    aliases: dict[Operand, Within] = field(default_factory=dict)
    slots: dict[Operand, Slot] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    lstms: list[tuple[int, int]] = field(default_factory=list)
    loops: int = 0

    def place(self, operand: Operand) -> tuple[Operand, int]:
        """The operand in whose memory one lies, as far as that is settled, and how many bytes from its beginning."""
        return place_of(operand, self.aliases)


class Scope:
    """Walks nodes in order, giving every tensor one operand and skipping nodes fused into a producer.

    nodes: positions in the subgraph. kept: tensors that are read when the nodes have run. given: operands of tensors
    that exist already. pinned: operands in which tensors must end up. owned: given tensors that may be overwritten.
    overwritten: tensors into which a node writes in place.
    """

    def __init__(
        self,
        lowered: Lowered,
        subgraph: int,
        nodes: Sequence[int],
        kept: Collection[int],
        given: Mapping[int, Operand] | None = None,
        pinned: Mapping[int, Operand] | None = None,
        owned: Collection[int] = (),
    ) -> None:
        self.lowered, self.subgraph = lowered, subgraph
        self.graph, self.specs = lowered.model.subgraphs[subgraph], lowered.specs[subgraph]
        self._nodes, self.kept = nodes, set(kept)
        self._pinned = set((pinned or {}).values())
        self._operands: dict[int, Operand] = {**(given or {}), **(pinned or {})}
        self._newest: dict[int, Operand] = {}  # variable tensors that a node of this scope has updated
        self._fused: set[int] = set()
        self._padded: dict[int, tuple[int, Pads]] = {}  # images that their reader pads: from which tensor, how
        self._updated = {t for n in nodes for t in updated_by(self.graph.nodes[n])}
        self._readers: dict[int, list[int]] = {}
        self._position = {node: i for i, node in enumerate(nodes)}
        self._made_at = {t: i for i, n in enumerate(nodes) for t in self.graph.nodes[n].outputs}
        self._in_place = in_place(self.graph, nodes, self.kept, owned)
        self.overwritten = {self.graph.nodes[i].inputs[0] for i in self._in_place}
        for i in (n for n in nodes if not self._is_folded(n)):
            for tensor in self.graph.nodes[i].inputs:
                self._readers.setdefault(tensor, []).append(i)

    def steps(self) -> list[Part]:
        """The steps of all nodes."""
        return [part for i in self._nodes if not self._is_folded(i) for part in self._node(i)]

    def inner(
        self,
        subgraph: int,
        nodes: Sequence[int],
        given: Mapping[int, Operand],
        pinned: Mapping[int, Operand],
        owned: Collection[int] = (),
    ) -> "Scope":
        """The scope of a run of another subgraph."""
        kept = self.lowered.model.subgraphs[subgraph].outputs
        return Scope(self.lowered, subgraph, nodes, kept, given, pinned, owned)

    def operand(self, tensor: int, writes_rows: bool = False) -> Operand:
        """The operand of a tensor. writes_rows: whether what computes it can do so row by row into a wider one."""
        if tensor not in self._operands:
            self._operands[tensor] = places.joined(self, tensor, writes_rows) or Operand(self.specs[tensor])
        return self._operands[tensor]

    def newest(self, tensor: int) -> Operand:
        """The operand that holds a tensor's value as of the last node lowered."""
        return self._newest.get(tensor) or self.operand(tensor)

    def readers(self, tensor: int) -> Sequence[int]:
        """The nodes that read a tensor, in order; one that reads it twice is there twice."""
        return self._readers.get(tensor, ())

    def is_needed(self, tensor: int) -> bool:
        """Whether anybody reads a tensor."""
        return tensor in self.kept or tensor in self._readers

    def copy(self, node: int, source: Operand, into: Operand) -> Work:
        """The work of copying a whole tensor."""
        flat = view((source.spec.size,))
        return Work(node, copy(source, flat, into, flat, bits(source.spec), self.lowered.target), self.subgraph)

    def place(self, node: int, source: Operand, into: Operand) -> list[Part]:
        """Makes one operand the value of another: nothing to do unless it has a place already."""
        if self.lowered.place(source) == self.lowered.place(into):
            return []
        if self.has_place(into):
            return [self.copy(node, source, into)]
        self.lowered.aliases[into] = Within(source)
        return []

    def has_place(self, operand: Operand) -> bool:
        """Whether it is settled where an operand lies."""
        return operand in self._pinned or operand in self.lowered.aliases

    def _is_folded(self, index: int) -> bool:
        outputs = self.graph.nodes[index].outputs
        return bool(outputs) and all(self.specs[t].data is not None for t in outputs)

    def _node(self, index: int) -> list[Part]:
        """The steps of a node, with what follows it fused in; none for a node that was fused into an earlier one."""
        if index in self._fused:
            return []
        node = self.graph.nodes[index]
        if isinstance(node.op, ControlOp):
            return CONTROL_STEPS[node.op](self, index, node)
        cl_op = self.cl_op(node)
        if self._is_padded_by_reader(node, cl_op):
            return []
        if (chained := chain_from(self, index)) is not None:
            return [chained]
        output, activation, residual = self._fuse(index, node, cl_op)
        sources = [self._padded.get(t, (t, Pads())) for t in node.inputs]
        inputs = [None if t == ABSENT else self.newest(t) for t, _ in sources]
        pads = next((pads for _, pads in sources if pads != Pads()), Pads())
        if index in self._in_place and output not in self._operands:
            self._operands[output] = self.newest(node.inputs[0])
        rows = cl_op.writes_rows and residual is None
        outputs = [self.operand(output, rows), *(self.operand(t) for t in node.outputs[1:]), *self._states(node)]
        steps = cl_op.lower(Call(node.options, inputs, outputs, self.lowered.target, activation, residual, pads))
        return [part for step in steps for part in self._step(index, step)]

    def _step(self, index: int, step: Step) -> list[Part]:
        if isinstance(step, Alias):
            return self.place(index, step.source, step.output)
        if isinstance(step, Move):
            return places.move(self, index, step)
        return [Work(index, step, self.subgraph)]

    def _is_padded_by_reader(self, node: Node, cl_op: ClOp) -> bool:
        """Whether a node does no more than pad an image for the one operator that reads it, which can do so itself."""
        reader = self.only_reader(node.outputs[0])
        if cl_op.pads is None or reader is None:
            return False
        following, pads = self.graph.nodes[reader], cl_op.pads(self.given(node))
        if pads is None or isinstance(following.op, ControlOp) or not self.cl_op(following).fuses_pads:
            return False
        if following.inputs[0] != node.outputs[0] or following.options.padding != Padding.VALID:
            return False
        if not self.is_steady(node.inputs[0]):
            return False
        self._padded[node.outputs[0]] = node.inputs[0], pads
        return True

    def _fuse(self, index: int, node: Node, cl_op: ClOp) -> tuple[int, Activation, Operand | None]:
        """The tensor that a node computes at the end of what is fused into it, and what that is."""
        output, residual = node.outputs[0], None
        activation = fused_activation(node.options)
        floating = self.specs[output].type == TensorType.FLOAT32  # what follows integers has scales of its own
        while floating and activation == _NONE:
            following = self.activation_after(output) if cl_op.fuses_activation else None
            addend = self._addend(index, output) if cl_op.fuses_residual and residual is None else None
            if addend is not None:
                reader = self.readers(output)[0]
                residual = self.newest(addend)
                output = self.fuse([reader])
                activation = fused_activation(self.graph.nodes[reader].options)
            elif following is not None:
                activation, nodes = following
                output = self.fuse(nodes)
            else:
                break
        return output, activation, residual

    def fuse(self, nodes: Sequence[int]) -> int:
        """Takes nodes as computed; the tensor that the last of them computes."""
        self._fused.update(nodes)
        return self.graph.nodes[nodes[-1]].outputs[0]

    def activation_after(self, tensor: int) -> tuple[Activation, tuple[int, ...]] | None:
        """An activation that is all that becomes of a tensor, and the nodes that it consists of."""
        readers = self.readers(tensor)
        if tensor in self.kept or any(isinstance(self.graph.nodes[i].op, ControlOp) for i in readers):
            return None
        if len(readers) == 1:
            following = self.graph.nodes[readers[0]]
            activates = self.cl_op(following).activates
            applied = None if activates is None else activates(following.options)
            return None if applied is None else (applied, (readers[0],))
        return (Activation("SWISH", 0.0, 0.0), (readers[0], readers[1])) if self._is_swish(tensor, readers) else None

    def _is_swish(self, tensor: int, readers: Sequence[int]) -> bool:
        """Whether the readers of a tensor multiply it by its sigmoid."""
        if len(readers) != 2:
            return False
        sigmoid, product = (self.graph.nodes[i] for i in readers)
        if sigmoid.op is not LOGISTIC or product.op is not MUL or self.only_reader(sigmoid.outputs[0]) != readers[1]:
            return False
        plain = fused_activation(product.options) == _NONE
        return plain and set(product.inputs) == {tensor, sigmoid.outputs[0]}

    def only_reader(self, tensor: int) -> int | None:
        """The node that is all that reads a tensor."""
        readers = self.readers(tensor)
        return readers[0] if len(readers) == 1 and tensor not in self.kept else None

    def _addend(self, index: int, output: int) -> int | None:
        """The other operand of an ADD of equal shapes, if it is all that reads an output and the other is there."""
        reader = self.only_reader(output)
        following = None if reader is None else self.graph.nodes[reader]
        if following is None or following.op is not ADD or len(set(following.inputs)) != 2:
            return None
        (other,) = set(following.inputs) - {output}
        specs = [self.specs[t] for t in (output, other, following.outputs[0])]
        if len({spec.shape for spec in specs}) != 1 or len({spec.type for spec in specs}) != 1:
            return None
        return other if self.is_there(other, index) and self.newest(other).row_step is None else None

    def is_there(self, tensor: int, index: int) -> bool:
        """Whether a tensor is computed before a node, and then as any later node finds it."""
        return self._made_at.get(tensor, -1) < self._position[index] and self.is_steady(tensor)

    def is_steady(self, tensor: int) -> bool:
        """Return whether no node updates a tensor, so that it may be read sooner or later than the model says."""
        return tensor not in self._updated

    def cl_op(self, node: Node) -> ClOp:
        """Return the record of the kernel that runs a node."""
        assert isinstance(node.op, Op)
        return self.lowered.cl_ops[node.op].select(self.given(node), [self.specs[t] for t in node.outputs])

    def given(self, node: Node) -> list[TensorSpec | None]:
        """Return what a node's inputs are, None for those that are absent."""
        return [None if t == ABSENT else self.specs[t] for t in node.inputs]

    def _states(self, node: Node) -> list[Operand]:
        """Operands for the new values of the variables that a node updates."""
        news: list[Operand] = []
        for tensor in states_of(node):
            after = Operand(TensorSpec(TensorType.FLOAT32, ()) if tensor == ABSENT else self.specs[tensor])
            news.append(after)
            if tensor == ABSENT:
                continue
            self._newest[tensor] = after
            if is_state(self.graph, self.specs, tensor):
                states = self.lowered.states
                self.lowered.states = [s for s in states if s.tensor != tensor]
                self.lowered.states.append(State(tensor, self.operand(tensor), after))
        return news
