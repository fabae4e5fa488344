"""A delegate that emulates a device with 16-bit floats, for every float operator of every subgraph."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from litecl.delegate.claim.kept import Place, kept_in_float
from litecl.delegate.claim.options import KeptNode
from litecl.delegate.report import Counters, DelegationReport, NodeRow
from litecl.halves.kernels import IN_HALVES
from litecl.halves.sums import BLOCK, Sums, largest_lost, rounded
from litecl.interpreter.delegation import Memory
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import TensorType

Mode = Literal["storage", "sums", "both"]


@dataclass(frozen=True)
class Ran:
    """One run of a node, in halves and in float32. reads: the largest operand that overflows a half; sums: the largest
    partial sum that does; 0 if there was none.
    """

    subgraph: int
    node: int
    exact: Sequence[Array]
    halves: Sequence[Array]
    reads: float
    sums: float


Look = Callable[[Ran], None]


@dataclass(frozen=True)
class Emulation:
    """A delegate that emulates a device with 16-bit floats: ``Interpreter(model, delegates=[Emulation("both")])``.

    mode: "storage" rounds the values that nodes read and write (activations, weights, inputs and outputs) and computes
        in float32; "sums" accumulates in halves inside convolutions, matrix products, poolings, means, softmax and the
        like, with operands rounded to halves; "both" does both. Everything else in an operator is one float32 step.
        Recurrent cells and products with integer weights don't accumulate in halves.
    keep_float: nodes that stay in float32, including their results, as for ``CLDelegate``.
    block: how many products a block accumulates (``Sums``).
    look: called for each run of a node. Nodes then pass on float32 results, so that every node gets right inputs.

    Raises ModelError for another mode, DelegateError for an unknown node in ``keep_float``.
    """

    mode: Mode = "both"
    keep_float: Collection[KeptNode] = ()
    block: int = BLOCK
    look: Look | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ModelError(f"fp16: expected one of {', '.join(get_args(Mode))}, got {self.mode!r}")

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> "Emulated":
        """See ``Delegate.apply``."""
        kept = kept_in_float(model, self.keep_float)
        graphs = [self._graph(i, graph, specs[i], kept) for i, graph in enumerate(model.subgraphs)]
        return Emulated(replace(model, subgraphs=tuple(graphs)), self.mode)

    def _graph(self, index: int, graph: Subgraph, specs: Sequence[TensorSpec], kept: Collection[Place]) -> Subgraph:
        nodes = [
            self._node(index, position, node) if (index, position) not in kept and _has_floats(node, specs) else node
            for position, node in enumerate(graph.nodes)
        ]
        return replace(graph, nodes=tuple(nodes))

    def _node(self, subgraph: int, position: int, node: Node) -> Node:
        op = node.op
        assert isinstance(op, Op)

        def bind(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
            run = (op.bind and op.bind(options, inputs, outputs)) or op.run
            return self._run(subgraph, position, node, run)

        emulated = replace(op, run=self._run(subgraph, position, node, op.run), bind=op.bind and bind)
        return replace(node, op=emulated)

    def _run(self, subgraph: int, position: int, node: Node, run: Run) -> Run:
        def emulated(options: Any, inputs: Inputs) -> list[Array]:
            with np.errstate(all="ignore"):
                halves, reads, sums = self._halves(node, run, options, inputs)
                if self.look is None:
                    return halves
                exact, count = run(options, inputs), len(node.outputs)
                self.look(Ran(subgraph, position, exact[:count], halves[:count], reads, sums))
                return exact

        return emulated

    def _halves(self, node: Node, run: Run, options: Any, inputs: Inputs) -> tuple[list[Array], float, float]:
        """Return a node's results, and the largest operand and partial sum that overflowed."""
        kernel = IN_HALVES.get(node.op) if self.mode != "storage" and _are_floats(inputs) else None  # type: ignore[arg-type]
        if kernel is None and self.mode == "sums":
            return run(options, inputs), 0.0, 0.0
        given = [rounded(x) if x is not None and x.dtype == np.float32 else x for x in inputs]
        pairs = [(x, y) for x, y in zip(inputs, given, strict=True) if x is not None and y is not None and y is not x]
        lost, sums = [largest_lost(x, y) for x, y in pairs], Sums(self.block)
        outputs = run(options, given) if kernel is None else [kernel(options, given, sums)]
        if self.mode != "sums":
            outputs = [rounded(y) if y.dtype == np.float32 else y for y in outputs]
        return outputs, max(lost, default=0.0), sums.overflow


def _has_floats(node: Node, specs: Sequence[TensorSpec]) -> bool:
    read = any(specs[t].type == TensorType.FLOAT32 for t in (*node.inputs, *node.outputs) if t != ABSENT)
    return isinstance(node.op, Op) and read


def _are_floats(inputs: Inputs) -> bool:
    """Return whether all operands are float32, or int32 such as shapes and axes: not integer or mixed arithmetic."""
    return all(x is None or x.dtype in (np.float32, np.int32) for x in inputs)


@dataclass(frozen=True)
class Emulated(Memory):
    """A ``Delegation`` whose nodes compute in halves."""

    model: Model
    mode: Mode

    def report(self) -> DelegationReport:
        """Return that the CPU runs every node."""
        why = f"emulated in half precision ({self.mode})"
        nodes = [(i, n, node) for i, graph in enumerate(self.model.subgraphs) for n, node in enumerate(graph.nodes)]
        rows = tuple(NodeRow(i, n, node.op.name, False, None, why) for i, n, node in nodes)
        return DelegationReport("none", rows, (), Counters(), 0.0, 0, halves=why)
