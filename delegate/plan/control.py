"""WHILE, IF and calls as steps: the subgraphs that they run are lowered in place, each time anew.

A loop variable that iterations compute anew lies in one of two sets of memory, of which an iteration reads one and
writes the other; afterwards they change places. One that no iteration changes is read where it lies, and one of which
iterations update a part stays where it is, so nothing is copied from one iteration to the next unless the body hands
on a tensor that it has not made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from litecl.delegate.analysis.loop_variables import Kind, kinds, live_nodes, trip_count
from litecl.delegate.cl_op import Operand, Scratch
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.steps import Branch, Loop, Part, Slot, Work
from litecl.delegate.recurrent import lstm_loop
from litecl.interpreter.graph import Node, Subgraph, TensorSpec, callees_of
from litecl.interpreter.op import ControlOp
from litecl.interpreter.ops.control import CALL, IF, STABLEHLO_COMPOSITE, WHILE
from litecl.interpreter.schema import TensorType

if TYPE_CHECKING:
    from litecl.delegate.plan.scope import Lowered, Scope


def _while(scope: "Scope", index: int, node: Node) -> list[Part]:
    initial = [scope.newest(t) for t in node.inputs]
    trips = trip_count(node, scope.lowered.model, scope.specs, scope.lowered.specs)
    body = callees_of(node)[1]
    specs = [scope.specs[t] for t in node.inputs]
    lstm = lstm_loop.find(scope.lowered.model.subgraphs[body], scope.lowered.specs[body], specs, trips)
    return _loop(scope, index, node, initial, trips) if lstm is None else _lstm(scope, index, node, lstm, initial)


def _lstm(scope: "Scope", index: int, node: Node, loop: lstm_loop.LstmLoop, initial: Sequence[Operand]) -> list[Part]:
    """An LSTM as one walk along time."""
    scope.lowered.lstms.append((scope.subgraph, index))
    time, (batch, units) = initial[loop.x].shape[0], initial[loop.h].shape
    made = [TensorSpec(TensorType.FLOAT32, shape) for shape in ((time, batch, units), (batch, units), (batch, units))]
    sequence, h, c = results = [Operand(spec) for spec in made]
    parts: list[Part] = [
        Work(index, launch, scope.subgraph) for launch in lstm_loop.steps(loop, initial, results, scope.lowered.target)
    ]
    values = dict(enumerate(initial)) | {loop.h: h, loop.c: c, loop.list: sequence if loop.whole else h}
    values |= {i: Operand(TensorSpec(initial[i].spec.type, n.shape, data=n)) for i, n in loop.counters.items()}
    for position, tensor in enumerate(node.outputs):
        if scope.is_needed(tensor):
            parts += scope.place(index, values[position], scope.operand(tensor))
    return parts


def _loop(scope: "Scope", index: int, node: Node, initial: Sequence[Operand], trips: int | None) -> list[Part]:
    lowered = scope.lowered
    condition, body = (lowered.model.subgraphs[callee] for callee in callees_of(node))
    number, lowered.loops = lowered.loops, lowered.loops + 1
    ways = kinds(body)
    current, following = _variables(lowered, number, initial, ways)
    changing = [j for j, kind in enumerate(ways) if kind != Kind.READ_ONLY]
    parts: list[Part] = [scope.copy(index, initial[j], current[j]) for j in changing]
    cond_index, body_index = callees_of(node)
    tests = scope.inner(cond_index, live_nodes(condition), _bound(condition, current), {})
    owned = [t for t, kind in zip(body.inputs, ways, strict=True) if kind == Kind.IN_PLACE]
    results = [following[j] if j in changing else None for j in range(len(ways))]
    loop = Loop(
        index,
        scope.subgraph,
        number,
        tests.steps(),
        tests.newest(condition.outputs[0]),
        _run(scope, index, body_index, _bound(body, current), results, owned),
        Kind.SWAPPED in ways,
        trips,
    )
    parts.append(loop)
    for tensor, value in zip(node.outputs, current, strict=True):
        if scope.is_needed(tensor):
            parts += _leave(scope, index, value, scope.operand(tensor))
    return parts


def _variables(
    lowered: "Lowered", number: int, initial: Sequence[Operand], ways: Sequence[Kind]
) -> tuple[list[Operand], list[Operand]]:
    """Where an iteration reads each variable, and where it leaves the new value."""
    current = [x if kind == Kind.READ_ONLY else _variable(x) for x, kind in zip(initial, ways, strict=True)]
    following = [_variable(x) if kind == Kind.SWAPPED else x for x, kind in zip(current, ways, strict=True)]
    swapped = [j for j, kind in enumerate(ways) if kind == Kind.SWAPPED]
    offsets, end = {}, 0
    for j in swapped:
        offsets[j] = end
        end = align(end + max(1, current[j].spec.size * current[j].spec.dtype.itemsize), lowered.alignment)
    sets = Scratch(2 * end)
    for j in swapped:
        lowered.slots[current[j]] = Slot(sets, end, offsets[j], number, written=False)
        lowered.slots[following[j]] = Slot(sets, end, offsets[j], number, written=True)
    return current, following


def _variable(initial: Operand) -> Operand:
    """The operand of a variable, which is no constant even where it begins with one."""
    return Operand(replace(initial.spec, data=None))


def _leave(scope: "Scope", index: int, value: Operand, result: Operand) -> list[Part]:
    """A loop's result, which is copied if it lies in a set: which of the two is known only at run time."""
    if value in scope.lowered.slots:
        return [scope.copy(index, value, result)]
    return scope.place(index, value, result)


def _if(scope: "Scope", index: int, node: Node) -> list[Part]:
    predicate, *arguments = (scope.newest(t) for t in node.inputs)
    results = [scope.operand(t) if scope.is_needed(t) else None for t in node.outputs]
    then, otherwise = (
        _run(scope, index, callee, _bound(scope.lowered.model.subgraphs[callee], arguments), results)
        for callee in callees_of(node)
    )
    return [Branch(index, scope.subgraph, predicate, then, otherwise)]


def _call(scope: "Scope", index: int, node: Node) -> list[Part]:
    (callee,) = callees_of(node)
    arguments = _bound(scope.lowered.model.subgraphs[callee], [scope.newest(t) for t in node.inputs])
    results = [scope.operand(t) if scope.is_needed(t) else None for t in node.outputs]
    return _run(scope, index, callee, arguments, results)


def _run(
    scope: "Scope",
    index: int,
    subgraph: int,
    given: Mapping[int, Operand],
    results: Sequence[Operand | None],
    owned: Sequence[int] = (),
) -> list[Part]:
    """The steps of a subgraph that leaves its outputs in ``results``; None where an output is not wanted."""
    graph = scope.lowered.model.subgraphs[subgraph]
    specs = scope.lowered.specs[subgraph]
    made = {t for node in graph.nodes for t in node.outputs if specs[t].data is None}
    pinned: dict[int, Operand] = {}
    for tensor, result in zip(graph.outputs, results, strict=True):
        if result is not None and tensor in made:
            pinned.setdefault(tensor, result)
    inner = scope.inner(subgraph, live_nodes(graph), given, pinned, owned)
    parts = inner.steps()
    for tensor, result in zip(graph.outputs, results, strict=True):
        if result is not None and pinned.get(tensor) is not result:
            parts.append(scope.copy(index, inner.newest(tensor), result))
    return parts


def _bound(graph: Subgraph, operands: Sequence[Operand]) -> dict[int, Operand]:
    """The inputs of a subgraph as operands."""
    return dict(zip(graph.inputs, operands, strict=True))


CONTROL_STEPS: dict[ControlOp, Callable[["Scope", int, Node], list[Part]]] = {
    WHILE: _while,
    IF: _if,
    CALL: _call,
    STABLEHLO_COMPOSITE: _call,
}
"""How each is lowered: a function of the scope, the node's position and the node."""
