"""A model as frozen data: tensors, nodes, subgraphs, signatures.

The reader, the converter's emitter and delegates all speak in these records. A tensor's name is its index in its
subgraph; ``ABSENT`` stands for an optional operand that is not given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.tensor import Array as Array
from litecl.interpreter.tensor import DimensionMetadata as DimensionMetadata
from litecl.interpreter.tensor import Quantization as Quantization
from litecl.interpreter.tensor import Shape as Shape
from litecl.interpreter.tensor import Sparsity as Sparsity
from litecl.interpreter.tensor import TensorSpec as TensorSpec

ABSENT = -1
_ONCE = ("CALL_ONCE", "HASHTABLE_IMPORT")
CONTEXT_LENGTH = "litecl.context_length"
"""Metadata key of a language model: the number of tokens that its caches hold, in decimal; each has its own slot."""


@dataclass(frozen=True, eq=False)
class Node:
    """One operator at work: the tensors that it reads and writes, and its options (an instance of ``op.options``)."""

    op: "Op | ControlOp"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any = None
    intermediates: tuple[int, ...] = ()
    version: int = 1

    def moved(self, numbers: Mapping[int, int]) -> "Node":
        """Return the node with its tensors renumbered by ``numbers``, which maps ABSENT too."""
        inputs, outputs, intermediates = (
            tuple(numbers[t] for t in tensors) for tensors in (self.inputs, self.outputs, self.intermediates)
        )
        return replace(self, inputs=inputs, outputs=outputs, intermediates=intermediates)


@dataclass(frozen=True, eq=False)
class Subgraph:
    """Nodes in execution order, over a list of tensors."""

    tensors: tuple[TensorSpec, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: tuple[Node, ...]
    name: str = ""


@dataclass(frozen=True)
class Signature:
    """A named entry point: maps argument and result names to tensor indices of one subgraph."""

    key: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    subgraph: int = 0


@dataclass(frozen=True, eq=False)
class Model:
    """A whole model. ``subgraphs[0]`` is the one that ``invoke`` runs.

    associated: the zip of files that its metadata names, appended to the model's file (``file/associated.py``).
    """

    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...] = ()
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    description: str = ""
    associated: bytes = b""


def updated_by(node: Node) -> tuple[int, ...]:
    """Return the tensors that a node updates in place."""
    return tuple(t for t in states_of(node) if t != ABSENT)


def states_of(node: Node) -> tuple[int, ...]:
    """Return the tensors that a node updates, in the order of ``op.states``; ABSENT where one is not given."""
    if isinstance(node.op, ControlOp):
        return ()
    return tuple(node.inputs[p] if p < len(node.inputs) else ABSENT for p in node.op.states)


def callees_of(node: Node) -> tuple[int, ...]:
    """Return the subgraphs that a node runs."""
    return node.op.callees(node.options) if isinstance(node.op, ControlOp) else ()


def reached(model: Model, nodes: Sequence[Node]) -> tuple[int, ...]:
    """Return the subgraphs that nodes run, directly or through others."""
    indices: list[int] = []
    waiting = [callee for node in nodes for callee in callees_of(node)]
    while waiting:
        index = waiting.pop()
        if index not in indices:
            indices.append(index)
            waiting += [callee for node in model.subgraphs[index].nodes for callee in callees_of(node)]
    return tuple(sorted(indices))


def acts(model: Model, node: Node) -> bool:
    """Return whether a node, or one in a subgraph that it runs, does more than compute its outputs.

    It has no outputs, or updates a variable in place.
    """
    inner = [n for callee in reached(model, [node]) for n in model.subgraphs[callee].nodes]
    return any(not n.outputs or updated_by(n) for n in (node, *inner))


def keeps_states(model: Model, subgraph: int) -> bool:
    """Return whether a run of a subgraph may change its next run, by writing variables.

    Those that CALL_ONCE writes, and tables, which are filled once, do not count.
    """
    waiting, seen = [subgraph], set[int]()
    while waiting:
        index = waiting.pop()
        if index in seen:
            continue
        seen.add(index)
        graph = model.subgraphs[index]
        given = {*graph.inputs, *(t for node in graph.nodes for t in node.outputs)}
        for node in graph.nodes:
            if node.op.name in _ONCE:
                continue
            kept = [t for t in updated_by(node) if t not in given]
            if kept or not node.outputs or any(graph.tensors[t].is_variable for t in node.outputs):
                return True
            waiting += callees_of(node)
    return False


def entries(model: Model) -> tuple[int, ...]:
    """Return the subgraphs that a caller may run: the first, and those of signatures."""
    return tuple(sorted({0, *(signature.subgraph for signature in model.signatures)}))
