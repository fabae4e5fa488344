"""Which nodes go to the device, in which regions, and why the others do not. A pure function of data."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from litecl.delegate.analysis.states import is_state
from litecl.delegate.cl_op import ClOp
from litecl.delegate.claim.control import FOLDED, refusal
from litecl.delegate.claim.options import CLOptions
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec, updated_by
from litecl.interpreter.op import ControlOp
from litecl.interpreter.schema import TensorType

_DEVICE_TYPES = frozenset(
    {
        *(TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.BOOL),
        *(TensorType.INT8, TensorType.UINT8, TensorType.INT16),
    }
)
# Constants that a lowering rewrites may be of these types too.
_CONSTANT_TYPES = _DEVICE_TYPES | {TensorType.INT4, TensorType.INT2}


@dataclass(frozen=True)
class Region:
    """Nodes of one subgraph that run on the device together: node positions in running order, tensors in and out."""

    subgraph: int
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Partitioning:
    """The regions of one subgraph, and the reason for every node outside them."""

    regions: tuple[Region, ...]
    reasons: dict[int, str]
    order: tuple[tuple[int, ...], ...]  # runs of nodes in a valid order; the nodes of a region are one run


def partition(
    index: int,
    model: Model,
    specs: Sequence[Sequence[TensorSpec]],
    options: CLOptions,
    *,
    preserve: bool = False,
    float64: bool = True,
) -> Partitioning:
    """Partition one subgraph. With ``preserve``, every tensor that a region computes is one of its outputs.

    float64: whether the device computes in float64.
    """
    graph = model.subgraphs[index]
    reasons = {
        i: reason
        for i in range(len(graph.nodes))
        if (reason := why_not(index, i, model, specs, options, preserve=preserve, float64=float64)) is not None
    }
    runs = _cluster(graph, reasons)
    candidates = [run for run in runs if run[0] not in reasons]
    for run, reason in _too_small(candidates, options):
        reasons |= dict.fromkeys(run, reason)
    readers = _readers(graph)
    regions = tuple(
        _region(index, graph, specs[index], run, readers, preserve) for run in runs if run[0] not in reasons
    )
    return Partitioning(regions, reasons, tuple(runs))


def why_not(
    index: int,
    position: int,
    model: Model,
    specs: Sequence[Sequence[TensorSpec]],
    options: CLOptions,
    *,
    preserve: bool = False,
    float64: bool = True,
) -> str | None:
    """Return the reason why a node stays on the CPU, or None if the device takes it."""
    node, known = model.subgraphs[index].nodes[position], specs[index]
    inputs, outputs = [None if t == ABSENT else known[t] for t in node.inputs], [known[t] for t in node.outputs]
    if outputs and all(spec.data is not None for spec in outputs):
        return FOLDED
    if (denied := options.why_denied(node.op.name, (index, position))) is not None:
        return denied
    if isinstance(node.op, ControlOp):
        if preserve:
            return f"{node.op.name}: the tensors of its subgraphs are kept, so the CPU runs it"
        inner = partial(why_not, model=model, specs=specs, options=options, float64=float64)
        return refusal(index, node, model, specs, inner) or _unfit(inputs, outputs)
    cl_op = options.cl_ops.get(node.op)
    if cl_op is None:
        return f"no device kernel for {node.op.name}"
    return _unfit(inputs, outputs) or _refusal(cl_op.select(inputs, outputs), node, inputs, outputs, float64)


def _unfit(inputs: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec]) -> str | None:
    for kind, specs in (("input", inputs), ("output", outputs)):
        for i, spec in enumerate(specs):
            if spec is None:
                continue
            if spec.shape is None:
                return f"{kind} {i} has a shape that is known only at run time"
            if spec.type not in (_DEVICE_TYPES if spec.data is None else _CONSTANT_TYPES):
                return f"{kind} {i} has type {spec.type.name}"
            if spec.size == 0 and spec.data is None:  # an empty constant gives a shape or axes
                return f"{kind} {i} has no elements"
            if spec.size >= 2**31:
                return f"{kind} {i} has {spec.size} elements, more than a kernel counts"
    return None


def _refusal(
    cl_op: ClOp, node: Node, inputs: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec], float64: bool
) -> str | None:
    refusal = cl_op.claim(node.options, inputs, outputs)
    if refusal is None and not float64 and cl_op.float64(node.options, inputs, outputs):
        return "its kernel computes in float64, and the device does not"
    return None if refusal is None else refusal.reason


def _dependencies(graph: Subgraph) -> list[set[int]]:
    """Return the nodes that each node must follow: producers of its inputs, and side effects in their order."""
    producer: dict[int, int] = {}
    readers: dict[int, set[int]] = {}
    result: list[set[int]] = []
    previous_effect: int | None = None
    for i, node in enumerate(graph.nodes):
        follows = {producer[t] for t in node.inputs if t in producer}
        if isinstance(node.op, ControlOp) or not node.op.pure:
            follows |= set() if previous_effect is None else {previous_effect}
            previous_effect = i
        for tensor in updated_by(node):  # updated in place: readers of the old value come before, of the new one after
            follows |= readers.get(tensor, set())
            producer[tensor] = i
        for tensor in node.inputs:
            readers.setdefault(tensor, set()).add(i)
        result.append(follows)
        producer |= dict.fromkeys(node.outputs, i)
    return result


def _cluster(graph: Subgraph, refused: dict[int, str]) -> list[tuple[int, ...]]:
    """Split nodes into runs on one side each, in an order that respects dependencies, as few as a greedy search finds.

    Like TFLite's epochs (graph_info.cc): the first ready node sets the side, then every ready node of that side joins.
    Folded nodes belong to neither side: they never run.
    """
    folded = {i for i, reason in refused.items() if reason == FOLDED}
    dependencies = _dependencies(graph)
    waits_for = [0 if i in folded else len(follows - folded) for i, follows in enumerate(dependencies)]
    followers: list[list[int]] = [[] for _ in graph.nodes]
    for i, follows in enumerate(dependencies):
        for before in follows - folded if i not in folded else ():
            followers[before].append(i)
    ready: dict[bool, list[int]] = {False: [], True: []}  # heaps: nodes join in model order
    for i, count in enumerate(waits_for):
        if not count and i not in folded:
            ready[i in refused].append(i)
    runs: list[tuple[int, ...]] = []
    while any(ready.values()):
        on_cpu = min((heap[0], side) for side, heap in ready.items() if heap)[1]
        run: list[int] = []
        while ready[on_cpu]:
            run.append(heapq.heappop(ready[on_cpu]))
            for i in followers[run[-1]]:
                waits_for[i] -= 1
                if not waits_for[i]:
                    heapq.heappush(ready[i in refused], i)
        runs.append(tuple(run))
    return runs


def _too_small(candidates: Sequence[tuple[int, ...]], options: CLOptions) -> list[tuple[tuple[int, ...], str]]:
    """Return the candidate regions that the options rule out, with the reason."""
    least, most = options.min_nodes_per_partition, options.max_delegated_partitions
    small = [run for run in candidates if len(run) < least]
    dropped = [(run, f"a partition of {len(run)} nodes, min_nodes_per_partition is {least}") for run in small]
    if most is None or most <= 0:
        return dropped
    largest_first = sorted((run for run in candidates if len(run) >= least), key=len, reverse=True)
    return dropped + [(run, f"not among the {most} largest partitions") for run in largest_first[most:]]


def _readers(graph: Subgraph) -> dict[int, list[int]]:
    """Return the nodes that read each tensor; one past the last node represents the subgraph, which reads its
    outputs.
    """
    readers: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        for tensor in node.inputs:
            readers.setdefault(tensor, []).append(i)
    for tensor in graph.outputs:
        readers.setdefault(tensor, []).append(len(graph.nodes))
    return readers


def _region(
    index: int,
    graph: Subgraph,
    specs: Sequence[TensorSpec],
    run: tuple[int, ...],
    readers: Mapping[int, Collection[int]],
    preserve: bool,
) -> Region:
    inside = set(run)
    made = {t for i in run for t in graph.nodes[i].outputs}
    read = {t for i in run for t in graph.nodes[i].inputs if t != ABSENT}
    updated = {t for i in run for t in updated_by(graph.nodes[i])}
    states = {t for t in updated if is_state(graph, specs, t)}  # kept on the device; one only read is an input
    inputs = sorted(t for t in read - made - states if specs[t].data is None)
    results = made | updated - states
    outputs = sorted(t for t in results if preserve or not inside.issuperset(readers.get(t, ())))
    return Region(index, run, tuple(inputs), tuple(outputs))
