"""Partitions a subgraph into regions for the device, with reasons for the other nodes. A pure function of data."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from litecl.delegate.analysis import halves
from litecl.delegate.analysis.explicit import Explicit
from litecl.delegate.cl_op import ClOp, Target
from litecl.delegate.claim.abilities import beyond
from litecl.delegate.claim.control import VARIABLE_OPS, refusal
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.region import FOLDED, Partitioning, Region, RegionVariable
from litecl.delegate.ops import has_kernels
from litecl.interpreter.graph import ABSENT, Node, Subgraph, TensorSpec, acts, callees_of, updated_by
from litecl.interpreter.op import ControlOp
from litecl.interpreter.schema import TensorType

_DEVICE_TYPES = frozenset(
    {
        *(TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.BOOL),
        *(TensorType.INT8, TensorType.UINT8, TensorType.INT16),
    }
)
_COMPLEX = frozenset({TensorType.COMPLEX64})  # only for records with ``of_complex``
# Constants may have these types too, as lowerings unpack them.
_CONSTANT_TYPES = _DEVICE_TYPES | {TensorType.INT4, TensorType.INT2}


def partition(
    index: int,
    source: Explicit,
    options: CLOptions,
    *,
    preserve: bool = False,
    target: Target | None = None,
) -> Partitioning:
    """Partition one subgraph. With ``preserve``, a region outputs every tensor that it computes.

    target: the device; None assumes one that runs every kernel.
    """
    graph = source.model.subgraphs[index]
    reasons = {
        i: reason
        for i in range(len(graph.nodes))
        if (reason := why_not(index, i, source, options, preserve=preserve, target=target)) is not None
    }
    runs = _cluster(graph, reasons)
    candidates = [run for run in runs if run[0] not in reasons]
    for run, reason in [*_without_work(graph, candidates), *_too_small(candidates, options)]:
        reasons |= dict.fromkeys(run, reason)
    readers = _readers(graph, source.results[index], reasons)
    regions = tuple(_region(index, source, run, readers, preserve) for run in runs if run[0] not in reasons)
    return Partitioning(regions, reasons, tuple(runs))


def why_not(
    index: int,
    position: int,
    source: Explicit,
    options: CLOptions,
    *,
    preserve: bool = False,
    target: Target | None = None,
) -> str | None:
    """Return why a node stays on the CPU, or None if the device takes it."""
    node, known = source.model.subgraphs[index].nodes[position], source.specs[index]
    inputs, outputs = [None if t == ABSENT else known[t] for t in node.inputs], [known[t] for t in node.outputs]
    if outputs and all(spec.data is not None for spec in outputs) and not acts(source.model, node):
        return FOLDED
    if (denied := options.why_denied(node.op.name, (index, position))) is not None:
        return denied
    users = {cl_op.op for cl_op in options.custom_ops}
    if (as_half := halves.why_not(source, index, position, users)) is not None:
        return as_half
    if isinstance(node.op, ControlOp):
        if preserve and callees_of(node):
            return f"{node.op.name}: the tensors of its subgraphs are kept, so the CPU runs it"
        inner = partial(why_not, source=source, options=options, target=target)
        return refusal(index, position, source, inner) or _unfit(inputs, outputs)
    cl_op = options.cl_ops.get(node.op)
    if cl_op is None:
        if has_kernels(node.op.name):
            return f"{node.op.name}: the device computes LiteRT's numbers, not those that the interpreter was asked for"
        return f"no device kernel for {node.op.name}"
    record, results = cl_op.select(inputs, outputs), [*outputs, *(known[t] for t in node.intermediates)]
    more = _COMPLEX if record.of_complex else frozenset()
    reason = _unfit(inputs, outputs, more) or _refusal(record, node, inputs, results)
    if reason is None and target is not None:
        reason = beyond(target, record, node, inputs, results, is_users=record in options.custom_ops)
    return reason


def _unfit(
    inputs: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec], more: frozenset[TensorType] = frozenset()
) -> str | None:
    """Return why no kernel supports these tensors, or None. more: types that this kernel supports in addition."""
    for kind, specs in (("input", inputs), ("output", outputs)):
        for i, spec in enumerate(specs):
            if spec is None:
                continue
            if spec.shape is None:
                return f"{kind} {i} has a shape that is known only at run time"
            if spec.type not in (_DEVICE_TYPES if spec.data is None else _CONSTANT_TYPES) | more:
                return f"{kind} {i} has type {spec.type.name}"
            if spec.size == 0 and spec.data is None:  # an empty constant may be a shape or axes
                return f"{kind} {i} has no elements"
            if spec.size >= 2**31:
                return f"{kind} {i} has {spec.size} elements, more than a kernel counts"
    return None


def _refusal(cl_op: ClOp, node: Node, inputs: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec]) -> str | None:
    refusal = cl_op.claim(node.options, inputs, outputs)
    return None if refusal is None else refusal.reason


def _dependencies(graph: Subgraph, folded: Collection[int]) -> list[set[int]]:
    """Return the nodes that each node must follow: producers of its inputs, and side effects in order."""
    producer: dict[int, int] = {}
    readers: dict[int, set[int]] = {}
    result: list[set[int]] = []
    previous_effect: int | None = None
    for i, node in enumerate(graph.nodes):
        follows = {producer[t] for t in node.inputs if t in producer}
        if i not in folded and (isinstance(node.op, ControlOp) or not node.op.pure):
            follows |= set() if previous_effect is None else {previous_effect}
            previous_effect = i
        for tensor in updated_by(node):  # in place: after readers of the old value, before readers of the new one
            follows |= readers.get(tensor, set())
            producer[tensor] = i
        for tensor in node.inputs:
            readers.setdefault(tensor, set()).add(i)
        result.append(follows)
        producer |= dict.fromkeys(node.outputs, i)
    return result


def _cluster(graph: Subgraph, refused: dict[int, str]) -> list[tuple[int, ...]]:
    """Split nodes into runs, each on one side, in an order that respects dependencies; greedily minimize their number.

    Like TFLite's epochs (graph_info.cc): the first ready node sets the side, then every ready node of that side joins.
    Folded nodes belong to neither side: they never run.
    """
    folded = {i for i, reason in refused.items() if reason == FOLDED}
    dependencies = _dependencies(graph, folded)
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


def _without_work(graph: Subgraph, candidates: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], str]]:
    """Return the candidate regions that only move variables, with the reason to reject them."""
    idle = [run for run in candidates if all(graph.nodes[i].op in VARIABLE_OPS for i in run)]
    return [(run, "nothing is computed beside it on the device") for run in idle]


def _too_small(candidates: Sequence[tuple[int, ...]], options: CLOptions) -> list[tuple[tuple[int, ...], str]]:
    """Return the candidate regions that the options reject, with the reason."""
    least, most = options.min_nodes_per_partition, options.max_delegated_partitions
    small = [run for run in candidates if len(run) < least]
    dropped = [(run, f"a partition of {len(run)} nodes, min_nodes_per_partition is {least}") for run in small]
    if most is None or most <= 0:
        return dropped
    largest_first = sorted((run for run in candidates if len(run) >= least), key=len, reverse=True)
    return dropped + [(run, f"not among the {most} largest partitions") for run in largest_first[most:]]


def _readers(graph: Subgraph, results: Sequence[int], reasons: Mapping[int, str]) -> dict[int, list[int]]:
    """Return the nodes that read each tensor while the model runs, which folded ones don't (a SHAPE). The index past
    the last node is the subgraph, which reads its results.
    """
    readers: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        for tensor in node.inputs if reasons.get(i) != FOLDED else ():
            readers.setdefault(tensor, []).append(i)
    for tensor in results:
        readers.setdefault(tensor, []).append(len(graph.nodes))
    return readers


def _region(
    index: int, source: Explicit, run: tuple[int, ...], readers: Mapping[int, Collection[int]], preserve: bool
) -> Region:
    graph, specs, stored = source.model.subgraphs[index], source.specs[index], source.stored[index]
    inside = set(run)
    computed = {t for i in run for t in graph.nodes[i].outputs}
    read = {t for i in run for t in graph.nodes[i].inputs if t != ABSENT} - computed
    updated = {t for i in run for t in updated_by(graph.nodes[i])}
    inputs = sorted(t for t in read if specs[t].data is None and t not in stored)
    results = (computed | updated).difference(stored)
    outputs = sorted(t for t in results if preserve or not inside.issuperset(readers.get(t, ())))
    before = {stored[t]: t for t in sorted(read) if t in stored}
    after = {key: tensor for i in run for key, tensor in source.written[index].get(i, ())}
    keys = sorted({*before, *after}, key=str)
    variables = tuple(RegionVariable(key, before.get(key), after.get(key)) for key in keys)
    return Region(index, run, tuple(inputs), tuple(outputs), variables)
