"""One run of a subgraph as a graph: its nodes, and the results of passes. Pure data."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from litecl.delegate.analysis.states import states_of
from litecl.delegate.cl_op import Activation, ClOp, DeviceOp, Operand, Pads
from litecl.delegate.kit.claims import fused_activation
from litecl.delegate.plan.inline import Inlined, Origin
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import ABSENT, Array, Node, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD, MAXIMUM, MINIMUM, MUL

NONE = Activation()
_NO_PADS = Pads()
_COMMUTATIVE = frozenset({ADD, MUL, MAXIMUM, MINIMUM})


@dataclass(frozen=True)
class ElementwiseStep:
    """A step of a chain: its name in chain.cl, and the tensor that it combines with the running value, if any.

    activation: the step itself if it has no tensor, else a clamp after it.
    """

    name: str
    tensor: int | None = None
    activation: Activation = NONE


@dataclass(frozen=True)
class Place:
    """The position of a tensor that is computed as part of another: ``offset`` bytes into ``whole``.

    row_step: the elements from one row to the next, None if the tensor is dense.
    """

    whole: int
    offset: int
    row_step: int | None = None


@dataclass(frozen=True, eq=False)
class RegionNode:
    """A node of the model with everything fused into it, lowered by one call.

    position: its index in the graph's source. at: its index in running order. cl_op: its kernel's record, None for
    control operators. inputs, outputs: the tensors that the fused node reads and computes. activation: applied to the
    result. residual: a tensor added before the activation. pads: zeros around the first input. steps: of a chain that
    begins with the first input. in_place: whether the result may take the first input's memory. fused: the nodes that
    are part of this one, in order. states: the variables that the node updates, ABSENT for missing ones.
    """

    position: int
    at: int
    node: Node
    cl_op: ClOp | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    activation: Activation = NONE
    residual: int | None = None
    pads: Pads = _NO_PADS
    steps: tuple[ElementwiseStep, ...] = ()
    in_place: bool = False
    fused: tuple["RegionNode", ...] = ()
    states: tuple[int, ...] = ()

    @cached_property
    def reads(self) -> tuple[int, ...]:
        """The tensors that the node reads, with repetitions."""
        others = (self.residual, *(step.tensor for step in self.steps))
        return tuple(t for t in (*self.inputs, *others) if t is not None and t != ABSENT)

    @cached_property
    def positions(self) -> frozenset[int]:
        """The positions of the node and of those fused into it."""
        return frozenset(part.position for part in (self, *self.fused))

    @property
    def is_plain(self) -> bool:
        """True if the node computes its operator and nothing else."""
        return not self.steps and (self.activation, self.residual, self.pads) == (NONE, None, _NO_PADS)

    @property
    def writes_rows(self) -> bool:
        """True if the node can write its first output into rows of a wider tensor."""
        alone = self.cl_op is not None and self.cl_op.writes_rows and self.residual is None
        return bool(self.steps) or alone

    def reads_rows(self, tensor: int) -> bool:
        """Return whether the node can read a tensor from rows of a wider one."""
        alone = self.cl_op is not None and self.cl_op.reads_rows and tensor != self.residual
        return bool(self.steps) or alone

    def followed_by(self, *nodes: "RegionNode", **changes: Any) -> "RegionNode":
        """Fuse later nodes, which continue with this one's result, into it. changes: of other fields."""
        outputs = (*nodes[-1].outputs, *self.outputs[1:])
        return replace(self, outputs=outputs, fused=self._fused_with(nodes), **changes)

    def behind(
        self,
        *nodes: "RegionNode",
        kernel: ClOp,
        inputs: Sequence[int],
        options: Any,
        outputs: Sequence[int] | None = None,
    ) -> "RegionNode":
        """Fuse other nodes into this one, for a kernel that computes them all. outputs: this node's by default."""
        whole = Node(kernel.op, tuple(inputs), tuple(self.outputs if outputs is None else outputs), options)
        fused = self._fused_with(nodes)
        return replace(self, node=whole, cl_op=kernel, inputs=whole.inputs, outputs=whole.outputs, fused=fused)

    def _fused_with(self, nodes: Sequence["RegionNode"]) -> tuple["RegionNode", ...]:
        """Return all fused nodes, in order, after fusing others, including those already fused into them."""
        parts = (*self.fused, *(part for node in nodes for part in (node, *node.fused)))
        return tuple(sorted(parts, key=lambda part: part.at))


@dataclass(frozen=True, eq=False)
class RegionGraph:
    """The nodes that run, in order, and the tensors between them.

    subgraph: its index in the model. source: the subgraph itself. kept: the tensors read after the nodes have run.
    given: the tensors with a decided operand: those that exist already, and results with prescribed memory. owned: the
    given tensors that may be overwritten. updated: the tensors that nodes update in place. alignment: of positions, in
    bytes. origins: the source's nodes in the model. places: the positions of tensors within others. is_inner: whether
    a control operator runs it, perhaps many times.
    """

    subgraph: int
    source: Subgraph
    specs: Sequence[TensorSpec]
    nodes: tuple[RegionNode, ...]
    kept: frozenset[int]
    given: Mapping[int, Operand]
    owned: frozenset[int]
    updated: frozenset[int]
    alignment: int
    origins: Sequence[Origin]
    places: Mapping[int, Place] = field(default_factory=dict)
    is_inner: bool = False

    @cached_property
    def readers(self) -> Mapping[int, Sequence[RegionNode]]:
        """The nodes that read each tensor, in order; one that reads it twice is listed twice."""
        readers: dict[int, list[RegionNode]] = {}
        for node in self.nodes:
            for tensor in node.reads:
                readers.setdefault(tensor, []).append(node)
        return readers

    @cached_property
    def at(self) -> Mapping[int, RegionNode]:
        """The nodes by ``at``."""
        return {node.at: node for node in self.nodes}

    @cached_property
    def _producers(self) -> Mapping[int, RegionNode]:
        return {tensor: node for node in self.nodes for tensor in node.outputs}

    @cached_property
    def _sources(self) -> Mapping[int, Node]:
        return {tensor: node for node in self.source.nodes for tensor in node.outputs}

    @cached_property
    def _overwritten(self) -> Mapping[int, Sequence[int]]:
        """The nodes (``at``) that write into each tensor's memory."""
        numbers: dict[int, list[int]] = {}
        for node in self.nodes:
            if node.in_place:
                numbers.setdefault(node.inputs[0], []).append(node.at)
        return numbers

    def with_nodes(self, nodes: Sequence[RegionNode]) -> "RegionGraph":
        """Return the graph with its nodes replaced."""
        return replace(self, nodes=tuple(nodes))

    def producer(self, tensor: int) -> RegionNode | None:
        """Return the node that computes a tensor; None if none does."""
        return self._producers.get(tensor)

    def computed_before(self, tensor: int) -> Node | None:
        """Return the model's node that computed a folded constant; None for any other tensor."""
        return None if self.value(tensor) is None else self._sources.get(tensor)

    def consumers(self, tensor: int) -> Sequence[RegionNode]:
        """Return the nodes that read a tensor, in order; one that reads it twice is listed twice."""
        return self.readers.get(tensor, ())

    def operands(self, node: RegionNode) -> Sequence[int | None]:
        """Return a node's inputs, None for absent ones."""
        return [None if tensor == ABSENT else tensor for tensor in node.inputs]

    def results(self, node: RegionNode) -> Sequence[int]:
        """Return a node's outputs."""
        return node.outputs

    def is_a(self, node: RegionNode, op: object) -> bool:
        """Return whether a node, fused or not, has this operator (``Op``) or kernel (``ClOp``)."""
        return not node.steps and op in (node.node.op, node.cl_op)

    def commutes(self, node: RegionNode) -> bool:
        """Return whether a node's inputs may be swapped."""
        return node.node.op in _COMMUTATIVE

    def only_reader(self, tensor: int) -> RegionNode | None:
        """Return the only reader of a tensor; None if there are more or none."""
        readers = self.consumers(tensor)
        return readers[0] if len(readers) == 1 and tensor not in self.kept else None

    def is_steady(self, tensor: int) -> bool:
        """Return whether no node updates a tensor, so that reads of it may be moved."""
        return tensor not in self.updated

    def is_there(self, tensor: int, node: RegionNode) -> bool:
        """Return whether a tensor is computed before a node and never updated."""
        maker = self.producer(tensor)
        return (maker is None or maker.at < node.at) and self.is_steady(tensor)

    def may_change(self, tensor: int, first: RegionNode, last: RegionNode) -> bool:
        """Return whether a tensor may change between two nodes."""
        writes = self._overwritten.get(tensor, ())
        return not self.is_steady(tensor) or any(first.at < at < last.at for at in writes)

    def are_constant(self, tensors: Sequence[int]) -> bool:
        """Return whether all tensors are constants or absent."""
        return all(t == ABSENT or self.value(t) is not None for t in tensors)

    def value(self, tensor: int) -> Array | None:
        """Return the value of a constant; None for any other tensor."""
        return self.given[tensor].data if tensor in self.given else self.specs[tensor].data

    def inputs_of(self, node: RegionNode) -> list[TensorSpec | None]:
        """Return the specs of a node's inputs, None for absent ones."""
        return [None if t == ABSENT else self.specs[t] for t in node.inputs]


def region_graph(
    subgraph: int,
    inner: Inlined,
    nodes: Sequence[int],
    kept: Collection[int],
    cl_ops: Mapping[Op, DeviceOp],
    alignment: int,
    given: Mapping[int, Operand] | None = None,
    owned: Collection[int] = (),
) -> RegionGraph:
    """Build the graph of a subgraph's nodes (positions in running order), with nothing fused."""
    source, specs = inner.source, inner.specs
    running = [i for i in nodes if not _is_folded(source.nodes[i], specs)]
    return RegionGraph(
        subgraph,
        source,
        specs,
        tuple(_node(i, at, source.nodes[i], specs, cl_ops) for at, i in enumerate(running)),
        frozenset(kept),
        given or {},
        frozenset(owned),
        frozenset(t for i in running for t in states_of(source.nodes[i]) if t != ABSENT),
        alignment,
        inner.origins,
    )


def _is_folded(node: Node, specs: Sequence[TensorSpec]) -> bool:
    return bool(node.outputs) and all(specs[t].data is not None for t in node.outputs)


def _node(position: int, at: int, node: Node, specs: Sequence[TensorSpec], cl_ops: Mapping[Op, DeviceOp]) -> RegionNode:
    if not isinstance(node.op, Op):
        return RegionNode(position, at, node, None, node.inputs, node.outputs)
    inputs = [None if t == ABSENT else specs[t] for t in node.inputs]
    cl_op = cl_ops[node.op].select(inputs, [specs[t] for t in node.outputs])
    activation = fused_activation(node.options)
    return RegionNode(position, at, node, cl_op, node.inputs, node.outputs, activation, states=states_of(node))
