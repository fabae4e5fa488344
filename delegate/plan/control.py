"""Lowers WHILE, IF and calls: their subgraphs are lowered inline at each use.

A loop variable that iterations recompute lies in two sets of memory: an iteration reads one and writes the other, and
then they are swapped. A variable that no iteration changes is read in place, and one that iterations update partially
stays in place. So nothing is copied between iterations unless the body passes on a tensor that it did not compute.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from litecl.delegate.analysis.loop_variables import Kind, kinds, live_nodes, trip_count
from litecl.delegate.cl_op import Operand, Scratch
from litecl.delegate.matmul.product import in_halves
from litecl.delegate.plan.graph import RegionNode
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.steps import Branch, Loop, Part, Slot
from litecl.delegate.plan.values import Planning, Values
from litecl.interpreter.graph import Subgraph, TensorSpec, callees_of
from litecl.interpreter.op import ControlOp
from litecl.interpreter.ops.control import CALL, CALL_ONCE, IF, STABLEHLO_COMPOSITE, WHILE
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE
from litecl.interpreter.schema import TensorType

if TYPE_CHECKING:
    from litecl.delegate.recurrent.lstm_loop import LstmLoop


class Run(Protocol):
    """Lowers nodes of another subgraph. given: its inputs' operands. pinned: outputs' operands with decided memory."""

    def __call__(
        self,
        subgraph: int,
        nodes: Sequence[int],
        given: Mapping[int, Operand],
        pinned: Mapping[int, Operand],
        owned: Sequence[int] = (),
    ) -> tuple[list[Part], Values]:
        """Return the steps and the tensors' operands. owned: inputs that may be overwritten."""


def _while(values: Values, node: RegionNode, run: Run) -> list[Part]:
    from litecl.delegate.recurrent import lstm_loop  # few models have loops

    planning, specs = values.planning, values.graph.specs
    initial = [values.newest(t) for t in node.inputs]
    trips = trip_count(node.node, planning.model, specs, planning.specs)
    body = callees_of(node.node)[1]
    given = [specs[t] for t in node.inputs]
    lstm = lstm_loop.find(planning.model.subgraphs[body], planning.specs[body], given, trips)
    return _loop(values, node, run, initial, trips) if lstm is None else _lstm(values, node, lstm, initial, body)


def _lstm(values: Values, node: RegionNode, loop: "LstmLoop", initial: Sequence[Operand], body: int) -> list[Part]:
    """Lower a loop that is an LSTM over all time steps at once. body: its subgraph."""
    from litecl.delegate.recurrent import lstm_loop

    planning = values.planning
    planning.lstms.append(values.graph.origins[node.position])
    time, (batch, units) = initial[loop.x].shape[0], initial[loop.h].shape
    made = [TensorSpec(TensorType.FLOAT32, shape) for shape in ((time, batch, units), (batch, units), (batch, units))]
    sequence, h, c = results = [Operand(spec) for spec in made]
    halves = planning.in_halves(planning.graph(body).origins)
    launches = lstm_loop.steps(loop, initial, results, planning.target, halves=halves)
    parts: list[Part] = [values.work(node.position, in_halves(step) if halves else step) for step in launches]
    after = dict(enumerate(initial)) | {loop.h: h, loop.c: c, loop.list: sequence if loop.whole else h}
    after |= {i: Operand(TensorSpec(initial[i].spec.type, n.shape, data=n)) for i, n in loop.counters.items()}
    for position, tensor in enumerate(node.outputs):
        if values.is_needed(tensor):
            parts += values.assign(node.position, after[position], values.operand(tensor))
    return parts


def _loop(values: Values, node: RegionNode, run: Run, initial: Sequence[Operand], trips: int | None) -> list[Part]:
    planning = values.planning
    cond_index, body_index = callees_of(node.node)
    condition, body = (planning.graph(index).source for index in (cond_index, body_index))
    number = len(planning.loops)
    planning.loops.append(values.graph.origins[node.position])
    ways = kinds(body)
    current, following = _variables(planning, number, initial, ways)
    # Copies to and from the sets are adjacent to the loop: other copies, often larger, must not separate them from it.
    changing = sorted(
        (j for j, kind in enumerate(ways) if kind != Kind.READ_ONLY), key=lambda j: ways[j] == Kind.SWAPPED
    )
    parts: list[Part] = [values.copy(node.position, initial[j], current[j]) for j in changing]
    tests, tested = run(cond_index, live_nodes(condition), _bound(condition, current), {})
    owned = [t for t, kind in zip(body.inputs, ways, strict=True) if kind == Kind.IN_PLACE]
    results = [following[j] if j in changing else None for j in range(len(ways))]
    subgraph, position = values.graph.origins[node.position]
    loop = Loop(
        position,
        subgraph,
        number,
        tests,
        tested.newest(condition.outputs[0]),
        _steps(values, node, run, body_index, _bound(body, current), results, owned),
        Kind.SWAPPED in ways,
        trips,
    )
    parts.append(loop)
    for j in sorted(range(len(ways)), key=lambda j: ways[j] != Kind.SWAPPED):
        if values.is_needed(tensor := node.outputs[j]):
            parts += _leave(values, node, current[j], values.operand(tensor))
    return parts


def _variables(
    planning: Planning, number: int, initial: Sequence[Operand], ways: Sequence[Kind]
) -> tuple[list[Operand], list[Operand]]:
    """Return the operands that an iteration reads variables from, and those that it writes new values to."""
    current = [x if kind == Kind.READ_ONLY else _variable(x) for x, kind in zip(initial, ways, strict=True)]
    following = [_variable(x) if kind == Kind.SWAPPED else x for x, kind in zip(current, ways, strict=True)]
    swapped = [j for j, kind in enumerate(ways) if kind == Kind.SWAPPED]
    offsets, end = {}, 0
    for j in swapped:
        offsets[j] = end
        end = align(end + max(1, current[j].spec.size * current[j].spec.dtype.itemsize), planning.alignment)
    sets = Scratch(2 * end)
    for j in swapped:
        planning.slots[current[j]] = Slot(sets, end, offsets[j], number, written=False)
        planning.slots[following[j]] = Slot(sets, end, offsets[j], number, written=True)
    return current, following


def _variable(initial: Operand) -> Operand:
    """Return an operand for a variable, which is no constant even if its initial value is."""
    return Operand(replace(initial.spec, data=None))


def _leave(values: Values, node: RegionNode, value: Operand, result: Operand) -> list[Part]:
    """Return the steps for a loop's result: a copy if it is in a set, as only run time decides which of the two."""
    if value in values.planning.slots:
        return [values.copy(node.position, value, result)]
    return values.assign(node.position, value, result)


def _if(values: Values, node: RegionNode, run: Run) -> list[Part]:
    predicate, *arguments = (values.newest(t) for t in node.inputs)
    then, otherwise = (_callee(values, node, run, callee, arguments) for callee in callees_of(node.node))
    subgraph, position = values.graph.origins[node.position]
    return [Branch(position, subgraph, predicate, then, otherwise)]


def _call(values: Values, node: RegionNode, run: Run) -> list[Part]:
    (callee,) = callees_of(node.node)
    return _callee(values, node, run, callee, [values.newest(t) for t in node.inputs])


def _same(values: Values, node: RegionNode, run: Run) -> list[Part]:
    """Return the steps of a node that reads or assigns a variable: the result equals the first input."""
    source = values.newest(node.inputs[0])
    return [
        part
        for t in node.outputs
        if values.is_needed(t)
        for part in values.assign(node.position, source, values.operand(t))
    ]


def _callee(values: Values, node: RegionNode, run: Run, callee: int, arguments: Sequence[Operand]) -> list[Part]:
    """Return the steps of a callee, which writes the outputs of the node that runs it."""
    operands = [values.operand(t) if values.is_needed(t) else None for t in node.outputs]
    results = [None if o is None or o.data is not None else o for o in operands]  # a constant is never written
    return _steps(values, node, run, callee, _bound(values.planning.model.subgraphs[callee], arguments), results)


def _steps(
    values: Values,
    node: RegionNode,
    run: Run,
    subgraph: int,
    given: Mapping[int, Operand],
    results: Sequence[Operand | None],
    owned: Sequence[int] = (),
) -> list[Part]:
    """Return the steps of a subgraph that writes its outputs to ``results``, None for unread ones."""
    inlined = values.planning.graph(subgraph)
    graph, specs = inlined.source, inlined.specs
    made = {t for inner in graph.nodes for t in inner.outputs if specs[t].data is None}
    pinned: dict[int, Operand] = {}
    for tensor, result in zip(graph.outputs, results, strict=True):
        if result is not None and tensor in made:
            pinned.setdefault(tensor, result)
    parts, inner = run(subgraph, live_nodes(graph), given, pinned, owned)
    for tensor, result in zip(graph.outputs, results, strict=True):
        if result is not None and pinned.get(tensor) is not result:
            parts.append(values.copy(node.position, inner.newest(tensor), result))
    return parts


def _bound(graph: Subgraph, operands: Sequence[Operand]) -> dict[int, Operand]:
    """Map a subgraph's inputs to operands."""
    return dict(zip(graph.inputs, operands, strict=True))


CONTROL_STEPS: dict[ControlOp, Callable[[Values, RegionNode, Run], list[Part]]] = {
    WHILE: _while,
    IF: _if,
    CALL: _call,
    STABLEHLO_COMPOSITE: _call,
    READ_VARIABLE: _same,
    ASSIGN_VARIABLE: _same,
    CALL_ONCE: lambda values, node, run: [],  # the host runs it before the region
}
"""Lowerings of control operators."""
