"""Lowers WHILE, IF and calls: their subgraphs are lowered inline at each use.

A loop variable that iterations recompute lies in two sets of memory: an iteration reads one and writes the other, and
then they are swapped. A variable that no iteration changes is read in place, and one that iterations update partially
stays in place. So nothing is copied between iterations unless the body passes on a tensor that it did not compute.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from litecl.delegate.analysis.loop_variables import Kind, kinds, trip_count
from litecl.delegate.cl_op import Operand
from litecl.delegate.matmul.product import in_halves
from litecl.delegate.plan.graph import RegionNode
from litecl.delegate.plan.steps import Branch, Loop, Part, Steps
from litecl.delegate.plan.values import Values, work
from litecl.interpreter.graph import TensorSpec, callees_of
from litecl.interpreter.op import ControlOp
from litecl.interpreter.ops.control import CALL, CALL_ONCE, IF, STABLEHLO_COMPOSITE, WHILE
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE
from litecl.interpreter.schema import TensorType

if TYPE_CHECKING:
    from litecl.delegate.recurrent.lstm_loop import LstmLoop


def _while(values: Values, node: RegionNode) -> list[Part]:
    from litecl.delegate.recurrent import lstm_loop  # few models have loops

    request, specs = values.request, values.graph.specs
    initial = [values.newest(t) for t in node.inputs]
    trips = trip_count(node.node, request.model, specs, request.specs)
    body = callees_of(node.node)[1]
    given = [specs[t] for t in node.inputs]
    lstm = lstm_loop.find(request.model.subgraphs[body], request.specs[body], given, trips)
    return _loop(values, node, initial, trips) if lstm is None else _lstm(values, node, lstm, initial, body)


def _lstm(values: Values, node: RegionNode, loop: "LstmLoop", initial: Sequence[Operand], body: int) -> list[Part]:
    """Lower a loop that is an LSTM over all time steps at once. body: its subgraph."""
    from litecl.delegate.recurrent import lstm_loop

    values.lstms.append(values.origin(node))
    time, (batch, units) = initial[loop.x].shape[0], initial[loop.h].shape
    shapes = (time, batch, units), (batch, units), (batch, units)
    sequence, h, c = results = [Operand(TensorSpec(TensorType.FLOAT32, shape)) for shape in shapes]
    halves = values.request.in_halves(values.request.inlined(body).origins)
    launches = lstm_loop.steps(loop, initial, results, values.request.target, halves=halves)
    parts: list[Part] = [work(values.origin(node), in_halves(step) if halves else step) for step in launches]
    after = dict(enumerate(initial)) | {loop.h: h, loop.c: c, loop.list: sequence if loop.whole else h}
    after |= {i: Operand(TensorSpec(initial[i].spec.type, n.shape, data=n)) for i, n in loop.counters.items()}
    for position, tensor in enumerate(node.outputs):
        if values.is_needed(tensor):
            parts += values.assign(node, after[position], values.operand(tensor))
    return parts


def _loop(values: Values, node: RegionNode, initial: Sequence[Operand], trips: int | None) -> list[Part]:
    condition, body = callees_of(node.node)
    graph = values.request.inlined(body).source
    ways = kinds(graph)
    current = [x if kind == Kind.READ_ONLY else _variable(x) for x, kind in zip(initial, ways, strict=True)]
    following = [_variable(x) if kind == Kind.SWAPPED else x for x, kind in zip(current, ways, strict=True)]
    # Copies to and from the sets are adjacent to the loop: other copies, often larger, must not separate them from it.
    by_kind = sorted(range(len(ways)), key=lambda j: ways[j] == Kind.SWAPPED)
    changing = [j for j in by_kind if ways[j] != Kind.READ_ONLY]
    parts: list[Part] = [values.copy(node, initial[j], current[j]) for j in changing]
    tests = values.run(condition, current, {})
    predicate = tests.newest(values.request.model.subgraphs[condition].outputs[0])
    owned = [t for t, kind in zip(graph.inputs, ways, strict=True) if kind == Kind.IN_PLACE]
    results = [x if j in changing else None for j, x in enumerate(following)]
    steps = _callee(values, node, body, current, results, owned)
    swapped = [(current[j], following[j]) for j in changing if ways[j] == Kind.SWAPPED]
    subgraph, position = values.origin(node)
    parts.append(Loop(position, subgraph, tests.steps, predicate, steps, swapped, trips))
    for j in sorted(by_kind, key=lambda j: ways[j] != Kind.SWAPPED):
        if values.is_needed(tensor := node.outputs[j]):
            if ways[j] == Kind.SWAPPED:  # only run time decides which of the two sets has the value
                parts.append(values.copy(node, current[j], values.operand(tensor)))
            else:
                parts += values.assign(node, current[j], values.operand(tensor))
    return parts


def _variable(initial: Operand) -> Operand:
    """Return an operand for a variable, which is no constant even if its initial value is."""
    return Operand(replace(initial.spec, data=None))


def _if(values: Values, node: RegionNode) -> list[Part]:
    predicate, *arguments = (values.newest(t) for t in node.inputs)
    then, otherwise = (_callee(values, node, callee, arguments) for callee in callees_of(node.node))
    subgraph, position = values.origin(node)
    return [Branch(position, subgraph, predicate, then, otherwise)]


def _call(values: Values, node: RegionNode) -> list[Part]:
    (callee,) = callees_of(node.node)
    return [*_callee(values, node, callee, [values.newest(t) for t in node.inputs])]


def _same(values: Values, node: RegionNode) -> list[Part]:
    """Return the steps of a node that reads or assigns a variable: the result equals the first input."""
    source, needed = values.newest(node.inputs[0]), filter(values.is_needed, node.outputs)
    return [part for t in needed for part in values.assign(node, source, values.operand(t))]


def _callee(
    values: Values,
    node: RegionNode,
    subgraph: int,
    arguments: Sequence[Operand],
    results: Sequence[Operand | None] | None = None,
    owned: Collection[int] = (),
) -> Steps:
    """Return the steps of a subgraph that writes its outputs to ``results``, None for unread ones; by default to the
    outputs of the node that runs it.
    """
    if results is None:
        results = [values.operand(t) if values.is_needed(t) else None for t in node.outputs]
    graph, specs = values.request.model.subgraphs[subgraph], values.request.specs[subgraph]
    computed = {t for inner in graph.nodes for t in inner.outputs if specs[t].data is None}
    written = (x if x is None or x.data is None else None for x in results)  # a constant never is
    outputs = [(t, x) for t, x in zip(graph.outputs, written, strict=True) if x is not None]
    pinned: dict[int, Operand] = {}
    for tensor, result in outputs:
        if tensor in computed:
            pinned.setdefault(tensor, result)
    inner = values.run(subgraph, arguments, pinned, owned)
    copies = [values.copy(node, inner.newest(t), x) for t, x in outputs if pinned.get(t) is not x]
    return [*inner.steps, *copies]


CONTROL_STEPS: dict[ControlOp, Callable[[Values, RegionNode], list[Part]]] = {
    WHILE: _while,
    IF: _if,
    CALL: _call,
    STABLEHLO_COMPOSITE: _call,
    READ_VARIABLE: _same,
    ASSIGN_VARIABLE: _same,
    CALL_ONCE: lambda values, node: [],  # the host runs it before the region
}
"""Lowerings of control operators."""
