"""Turns a graph into steps: lowers nodes in order, and control operators together with their subgraphs.

A step of a lowering may be free: its elements are already in position, or can be read in place.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from litecl.delegate.analysis.loop_variables import live_nodes
from litecl.delegate.cl_op import Alias, Call, Launch, Move, Operand, Step
from litecl.delegate.kit.claims import bits
from litecl.delegate.kit.strided import copy, is_dense, offset, same_steps
from litecl.delegate.matmul.product import in_halves
from litecl.delegate.ops.chain import Link, chain
from litecl.delegate.plan.control import CONTROL_STEPS
from litecl.delegate.plan.graph import RegionGraph, RegionNode, region_graph
from litecl.delegate.plan.grouping import narrowed
from litecl.delegate.plan.pipeline import fused
from litecl.delegate.plan.request import Request
from litecl.delegate.plan.steps import Part, Within
from litecl.delegate.plan.values import Lowered, Operands, Values, work
from litecl.delegate.target import own
from litecl.interpreter.graph import ABSENT, Array
from litecl.interpreter.op import ControlOp


def lower(request: Request, graph: RegionGraph, pinned: Iterable[Operand]) -> Lowered:
    """Fuse and lower the nodes of a graph. pinned: the operands with prescribed memory."""
    graph = own(request.target, fused)(graph, request.observe)
    values = Values(request, graph, pinned, partial(_subgraph, request))
    pairs = zip((None, *graph.nodes), graph.nodes, strict=False)
    return values.lowered([part for before, node in pairs for part in _node(values, node, before)])


def _subgraph(
    request: Request, subgraph: int, inputs: Sequence[Operand], pinned: Operands, owned: Collection[int]
) -> Lowered:
    """Lower a subgraph that a control operator runs; see ``values.Lower``."""
    request = own(request.target, narrowed)(request, subgraph)
    inner = request.inlined(subgraph)
    source = inner.source
    nodes, given = live_nodes(source), {**dict(zip(source.inputs, inputs, strict=True)), **pinned}
    graph = region_graph(subgraph, inner, nodes, source.outputs, request.cl_ops, request.alignment, given, owned)
    graph = replace(graph, is_inner=True)
    return lower(request, graph, pinned.values())


def _node(values: Values, node: RegionNode, before: RegionNode | None) -> list[Part]:
    if node.cl_op is None:
        assert isinstance(node.node.op, ControlOp)
        return CONTROL_STEPS[node.node.op](values, node)
    if node.steps:
        return [_chain(values, node)]
    residual = None if node.residual is None else values.newest(node.residual)
    inputs, outputs = [None if t == ABSENT else values.newest(t) for t in node.inputs], values.outputs(node)
    halves = values.request.in_halves(values.graph.origins[position] for position in node.positions)
    intermediates = [values.graph.specs[t] for t in node.node.intermediates]
    fresh = before is not None and node.inputs[:1] == before.outputs[:1]
    given = node.activation, residual, node.pads, intermediates, halves, fresh
    steps = node.cl_op.steps(Call(node.node.options, inputs, outputs, values.request.target, *given))
    if halves:
        steps = [in_halves(step) if isinstance(step, Launch) else step for step in steps]
    return [part for step in steps for part in _step(values, node, step)]


def _chain(values: Values, node: RegionNode) -> Part:
    links = [
        Link(step.name, None if step.tensor is None else values.newest(step.tensor), step.activation)
        for step in node.steps
    ]
    (x,), (y,) = node.inputs, node.outputs
    return work(values.origin(node), chain(values.newest(x), links, values.operand(y), values.request.target))


def _step(values: Values, node: RegionNode, step: Step) -> list[Part]:
    """Return the parts for a step of a lowering; none if it needs no launch."""
    if isinstance(step, Alias):
        if not step.offset and step.output.spec.size >= step.source.spec.size:
            return values.assign(node, step.source, step.output)
        values.aliases[step.output] = Within(step.source, step.offset)
        return []
    if not isinstance(step, Move):
        return [work(values.origin(node), step)]
    source, into = step.source, step.into
    if _start(values, source, step.at) == _start(values, into, step.to) and same_steps(step.at, step.to):
        return []
    if _may_read(values, node, step):
        values.aliases[into] = Within(source, offset(step.at) * source.spec.dtype.itemsize)
        return []
    launch = copy(source, step.at, into, step.to, bits(source.spec), values.request.target)
    return [work(values.origin(node), launch)]


def _start(values: Values, operand: Operand, elements: Array) -> tuple[Operand, int]:
    """Return the position of a view's first element: the operand with the memory, and the offset in bytes."""
    root, start = values.place(operand)
    return root, start + offset(elements) * operand.spec.dtype.itemsize


def _may_read(values: Values, node: RegionNode, move: Move) -> bool:
    """Return whether ``into`` may be an alias of a part of ``source``: contiguous, aligned, and never overwritten."""
    source, into, graph = move.source, move.into, values.graph
    start = offset(move.at) * source.spec.dtype.itemsize
    if source.data is not None or values.has_place(into) or start % graph.alignment:
        return False
    if values.overwritten.intersection(node.inputs) or graph.kept.intersection(node.outputs):
        return False
    return move.to.size == into.spec.size and is_dense(move.at) and is_dense(move.to)
