"""A region as launches: operands for its tensors, activations and residuals fused into producers, memory placed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from litecl.delegate.cl_op import Activation, Alias, Call, ClOp, Launch, Operand, Scratch, Step, Target
from litecl.delegate.memory import Arena, Usage, place
from litecl.delegate.ops import CL_OPS
from litecl.delegate.partition import Region, is_state, states_of
from litecl.interpreter.graph import ABSENT, Node, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_FUSED = {
    ActivationFunctionType.NONE: Activation(),
    ActivationFunctionType.RELU: Activation(low=0.0),
    ActivationFunctionType.RELU_N1_TO_1: Activation(low=-1.0, high=1.0),
    ActivationFunctionType.RELU6: Activation(low=0.0, high=6.0),
    ActivationFunctionType.TANH: Activation("TANH"),
}
_NONE = Activation()


@dataclass(frozen=True, eq=False)
class State:
    """A variable tensor: where the region reads it, and where it leaves the new value."""

    tensor: int
    before: Operand
    after: Operand


@dataclass(frozen=True, eq=False)
class Work:
    """A launch, and the node (its position in the subgraph) on whose behalf it runs."""

    node: int
    launch: Launch


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a runner needs to run a region.

    ``root`` follows aliases: the operand whose memory an operand uses. ``arena`` gives offsets for all operands and
    scratch but constants.
    """

    region: Region
    works: tuple[Work, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    states: tuple[State, ...]
    aliases: Mapping[Operand, Operand]
    arena: Arena

    def root(self, operand: Operand) -> Operand:
        """The operand in whose memory this one lies."""
        while operand in self.aliases:
            operand = self.aliases[operand]
        return operand


def plan(
    region: Region, graph: Subgraph, specs: Sequence[TensorSpec], target: Target, alignment: int
) -> Plan:
    """Lowers every node of a region and places its memory."""
    lowering = _Lowering(region, graph, specs, target)
    steps = [(i, step) for i in region.nodes for step in lowering.node(i)]
    aliases = {step.output: step.source for _, step in steps if isinstance(step, Alias)}
    works = tuple(Work(i, step) for i, step in steps if isinstance(step, Launch))
    inputs = tuple(lowering.operand(t) for t in region.inputs)
    outputs = tuple(lowering.newest(t) for t in region.outputs)
    unplaced = Plan(region, works, inputs, outputs, tuple(lowering.states), aliases, Arena({}, 0))
    return replace(unplaced, arena=place(_usages(unplaced), alignment))


def _usages(unplaced: Plan) -> list[Usage]:
    """Lifetimes in steps: inputs and states live all through a run, outputs from their making to its end."""
    end = len(unplaced.works)
    always = {unplaced.root(o) for o in unplaced.inputs}
    always |= {o for state in unplaced.states for o in (state.before, state.after)}
    first: dict[Operand | Scratch, int] = dict.fromkeys(always, 0)
    last: dict[Operand | Scratch, int] = dict.fromkeys(always, end)
    for step, item in _uses(unplaced):
        if not (isinstance(item, Operand) and item.data is not None):
            first.setdefault(item, step)
            last[item] = max(step, last.get(item, 0))
    last |= {root: end for o in unplaced.outputs if (root := unplaced.root(o)) in first}
    return [Usage(item, size_bytes(item), first[item], last[item]) for item in first]


def _uses(unplaced: Plan) -> Iterator[tuple[int, Operand | Scratch]]:
    for step, work in enumerate(unplaced.works):
        for arg in work.launch.args:
            if isinstance(arg, Operand):
                yield step, unplaced.root(arg)
            elif isinstance(arg, Scratch):
                yield step, arg


def size_bytes(item: Operand | Scratch) -> int:
    """The memory that something needs."""
    return item.size_bytes if isinstance(item, Scratch) else item.spec.size * item.spec.dtype.itemsize


class _Lowering:
    """Walks a region's nodes in order, giving every tensor one operand and skipping nodes fused into a producer."""

    def __init__(self, region: Region, graph: Subgraph, specs: Sequence[TensorSpec], target: Target) -> None:
        self._graph, self._specs, self._target = graph, specs, target
        self._operands: dict[int, Operand] = {}
        self._newest: dict[int, Operand] = {}  # variable tensors that a node of this region has updated
        self._fused: set[int] = set()
        self._kept = set(region.outputs)
        self._readers: dict[int, list[int]] = {}
        self._position = {node: i for i, node in enumerate(region.nodes)}
        self._made_at = {t: i for i, n in enumerate(region.nodes) for t in graph.nodes[n].outputs}
        for i in region.nodes:
            for tensor in graph.nodes[i].inputs:
                self._readers.setdefault(tensor, []).append(i)
        self.states: list[State] = []

    def operand(self, tensor: int) -> Operand:
        """The operand of a tensor."""
        if tensor not in self._operands:
            self._operands[tensor] = Operand(self._specs[tensor])
        return self._operands[tensor]

    def newest(self, tensor: int) -> Operand:
        """The operand that holds a tensor's value as of the last node lowered."""
        return self._newest.get(tensor) or self.operand(tensor)

    def node(self, index: int) -> list[Step]:
        """The steps of a node, with what follows it fused in; none for a node that was fused into an earlier one."""
        if index in self._fused:
            return []
        node = self._graph.nodes[index]
        cl_op = self._cl_op(node)
        output, activation, residual = self._fuse(index, node, cl_op)
        inputs = [None if t == ABSENT else self.newest(t) for t in node.inputs]
        outputs = [self.operand(output), *(self.operand(t) for t in node.outputs[1:]), *self._states(node)]
        return cl_op.lower(Call(node.options, inputs, outputs, self._target, activation, residual))

    def _fuse(self, index: int, node: Node, cl_op: ClOp) -> tuple[int, Activation, Operand | None]:
        """The tensor that a node computes at the end of what is fused into it, and what that is."""
        output, residual = node.outputs[0], None
        activation = _FUSED[getattr(node.options, "fused_activation_function", ActivationFunctionType.NONE)]
        floating = self._specs[output].type == TensorType.FLOAT32  # what follows integers has scales of its own
        while floating and activation == _NONE and (follower := self._only_reader(output)) is not None:
            following = self._graph.nodes[follower]
            addend = self._addend(index, output, following) if cl_op.fuses_residual and residual is None else None
            applied = self._applied(following) if cl_op.fuses_activation else None
            if addend is not None:
                residual = self.operand(addend)
                activation = _FUSED[following.options.fused_activation_function]
            elif applied is not None:
                activation = applied
            else:
                break
            self._fused.add(follower)
            output = following.outputs[0]
        return output, activation, residual

    def _only_reader(self, tensor: int) -> int | None:
        readers = self._readers.get(tensor, [])
        return readers[0] if len(readers) == 1 and tensor not in self._kept else None

    def _addend(self, index: int, output: int, following: Node) -> int | None:
        """The other operand of an ADD of equal shapes, if it is there before the producer runs."""
        if following.op is not ADD or len(set(following.inputs)) != 2:
            return None
        (other,) = set(following.inputs) - {output}
        specs = [self._specs[t] for t in (output, other, following.outputs[0])]
        if len({spec.shape for spec in specs}) != 1 or len({spec.type for spec in specs}) != 1:
            return None
        made_at = self._made_at.get(other, -1)
        return other if made_at < self._position[index] else None

    def _applied(self, following: Node) -> Activation | None:
        cl_op = self._cl_op(following)
        return None if cl_op.activates is None else cl_op.activates(following.options)

    def _cl_op(self, node: Node) -> ClOp:
        assert isinstance(node.op, Op)
        return CL_OPS[node.op]

    def _states(self, node: Node) -> list[Operand]:
        """Operands for the new values of the variables that a node updates."""
        news: list[Operand] = []
        for tensor in states_of(node):
            after = Operand(self._specs[tensor])
            news.append(after)
            if tensor == ABSENT:
                continue
            self._newest[tensor] = after
            if is_state(self._graph, self._specs, tensor):
                self.states = [s for s in self.states if s.tensor != tensor]
                self.states.append(State(tensor, self.operand(tensor), after))
        return news
