"""How each variable of a loop is stored, and how often the loop runs, by static analysis."""

from collections.abc import Collection, Sequence
from enum import Enum

import numpy as np

from litecl.interpreter.graph import Model, Node, Subgraph, TensorSpec, updated_by
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD, LOGICAL_AND
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.gather import GATHER, GATHER_ND
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE
from litecl.interpreter.schema import ActivationFunctionType

# Operators whose result never shares memory with their inputs.
_READERS = (GATHER, GATHER_ND, SLICE, STRIDED_SLICE)


class Kind(Enum):
    """READ_ONLY: never changed by an iteration. IN_PLACE: partly updated by each iteration. SWAPPED: computed anew."""

    READ_ONLY = 0
    IN_PLACE = 1
    SWAPPED = 2


def live_nodes(
    graph: Subgraph, nodes: Sequence[int] | None = None, kept: Collection[int] | None = None
) -> tuple[int, ...]:
    """Return, in order, the nodes that ``kept`` tensors or side effects depend on. nodes: the candidates, all by
    default. kept: the tensors read afterwards, the outputs by default.
    """
    needed = set(graph.outputs if kept is None else kept)
    live: list[int] = []
    for i in reversed(range(len(graph.nodes)) if nodes is None else nodes):
        node = graph.nodes[i]
        if _acts(node) or needed.intersection(node.outputs):
            live.append(i)
            needed.update(node.inputs)
    return tuple(reversed(live))


def _acts(node: Node) -> bool:
    """Return whether a node has side effects."""
    return not node.outputs or (isinstance(node.op, Op) and (bool(node.op.states) or not node.op.pure))


def in_place(graph: Subgraph, nodes: Sequence[int], kept: Collection[int], owned: Collection[int]) -> set[int]:
    """Return the DYNAMIC_UPDATE_SLICE nodes that may write into their operand, as nothing needs its old value.
    kept: tensors read after the nodes have run. owned: inputs of the subgraph that may be overwritten.
    """
    result: set[int] = set()
    read = origins(graph, nodes)
    fresh, needed = ({read.get(t, t) for t in tensors} for tensors in (owned, kept))
    for position, i in enumerate(nodes):
        node = graph.nodes[i]
        if node.op is not DYNAMIC_UPDATE_SLICE:
            continue
        tensor = read.get(node.inputs[0], node.inputs[0])
        readers = [
            (at, graph.nodes[n])
            for at, n in enumerate(nodes)
            if n != i and tensor in (read.get(t, t) for t in graph.nodes[n].inputs)
        ]
        harmless = all((at < position and n.op in _READERS) or _only_names(n) for at, n in readers)
        once = [read.get(t, t) for t in node.inputs].count(tensor) == 1
        if harmless and tensor in fresh and tensor not in needed and once:
            result.add(i)
        fresh.add(node.outputs[0])
    return result


def origins(graph: Subgraph, nodes: Sequence[int]) -> dict[int, int]:
    """Map the outputs of READ_VARIABLE nodes to the tensors that hold the variables' values."""
    variables: dict[int, int] = {}
    for node in (graph.nodes[i] for i in nodes):
        if node.op is READ_VARIABLE:
            variables |= dict.fromkeys(node.outputs, variables.get(node.inputs[0], node.inputs[0]))
    return variables


def _only_names(node: Node) -> bool:
    """Return whether a node only names a value: it reads or assigns an explicit variable without a copy."""
    return node.op is READ_VARIABLE or (node.op is ASSIGN_VARIABLE and not node.outputs)


def kinds(body: Subgraph) -> list[Kind]:
    """Return how each variable of a loop with this body is stored."""
    producers = {t: i for i, node in enumerate(body.nodes) for t in node.outputs}
    live = live_nodes(body)
    updates = in_place(body, live, body.outputs, body.inputs)
    states = {t for i in live for t in updated_by(body.nodes[i])}
    read = origins(body, live)

    def kind(given: int, result: int) -> Kind:
        if given == result:
            return Kind.SWAPPED if given in states else Kind.READ_ONLY
        while producers.get(result) in updates:
            updated = body.nodes[producers[result]].inputs[0]
            result = read.get(updated, updated)
            if result == given:
                return Kind.IN_PLACE
        return Kind.SWAPPED

    return [kind(given, result) for given, result in zip(body.inputs, body.outputs, strict=True)]


def trip_count(
    node: Node, model: Model, caller: Sequence[TensorSpec], specs: Sequence[Sequence[TensorSpec]]
) -> int | None:
    """Return the trip count of a WHILE that counts from one constant to another; None if it isn't static.

    The condition must be ``i < n``, or several of these joined by LOGICAL_AND, and the body must add a constant to
    every such ``i``.
    """
    condition, body = node.options.cond_subgraph_index, node.options.body_subgraph_index
    graph = model.subgraphs[condition]
    counts = [
        None if comparison is None else _count(comparison, node, model.subgraphs[body], caller, specs[body])
        for comparison in _comparisons(graph, graph.outputs[0], specs[condition])
    ]
    known = [count for count in counts if count is not None]
    return min(known) if known and len(known) == len(counts) else None


def _comparisons(graph: Subgraph, tensor: int, specs: Sequence[TensorSpec]) -> list[tuple[int, int] | None]:
    """Split a condition into its ``i < n`` terms: the variable's position, and the limit; None for any other term."""
    maker = next((node for node in graph.nodes if tensor in node.outputs), None)
    if maker is not None and maker.op is LOGICAL_AND:
        return [comparison for t in maker.inputs for comparison in _comparisons(graph, t, specs)]
    if maker is None or maker.op is not LESS or maker.inputs[0] not in graph.inputs:
        return [None]
    limit = specs[maker.inputs[1]].data
    if limit is None or limit.size != 1 or limit.dtype.kind != "i":
        return [None]
    return [(graph.inputs.index(maker.inputs[0]), int(limit.item()))]


def _count(
    comparison: tuple[int, int], node: Node, body: Subgraph, caller: Sequence[TensorSpec], specs: Sequence[TensorSpec]
) -> int | None:
    position, limit = comparison
    start = caller[node.inputs[position]].data
    maker = next((n for n in body.nodes if body.outputs[position] in n.outputs), None)
    if start is None or start.size != 1 or maker is None or maker.op is not ADD:
        return None
    plain = maker.options.fused_activation_function == ActivationFunctionType.NONE
    if body.inputs[position] not in maker.inputs or not plain:
        return None
    others = [t for t in maker.inputs if t != body.inputs[position]]
    step = specs[others[0]].data if len(others) == 1 else None
    if step is None or step.size != 1 or step.item() <= 0:
        return None
    if limit + int(step.item()) > np.iinfo(step.dtype).max:
        return None
    return max(0, -((int(start.item()) - limit) // int(step.item())))
