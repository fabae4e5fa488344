"""Removes variables that loops need not carry: invariant, unread, and duplicate ones."""

from collections.abc import Hashable

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant

_SMALL = 64


def simplify_loops(function: Function) -> bool:
    """Simplify the loops of a function; return whether one changed."""
    changed = False
    for node in function.nodes:
        if node.op == "While":
            changed |= _push_invariants(function, node)
            changed |= _merge_equal(function, node)
            changed |= _join_limits(node.bodies[0])
            changed |= _derive(function, node)
            changed |= _drop_dead(function, node)
    if changed:
        function.tidy()
    return changed


def _push_invariants(function: Function, loop: Node) -> bool:
    """Read invariants from outside the loop; inside, replace constant ones by constants."""
    changed = False
    cond, body = loop.bodies
    for i, (value, inner) in enumerate(zip(loop.inputs, body.inputs, strict=True)):
        assert value is not None
        if not _is_invariant(body, i, value):
            continue
        changed |= bool(loop.outputs[i].users) or function.is_output(loop.outputs[i])
        function.replace(loop.outputs[i], value)
        if value.data is None:
            continue
        for graph, argument in ((cond, cond.inputs[i]), (body, inner)):
            if argument.users or (graph is cond and graph.is_output(argument)):
                graph.replace(argument, constant(value.data, value.name))
                changed = True
        body.outputs[i] = inner
    return changed


def _is_invariant(body: Function, position: int, value: Value) -> bool:
    result = body.outputs[position]
    if result is body.inputs[position]:
        return True
    return value.data is not None and result.data is not None and _key(value) == _key(result)


def _merge_equal(function: Function, loop: Node) -> bool:
    """Merge variables that start equal and change alike, such as Keras' step and counter."""
    cond, body = loop.bodies
    first: dict[Hashable, int] = {}
    changed = False
    for i, value in enumerate(loop.inputs):
        assert value is not None
        change = _change(body, i)
        if change is None:
            continue
        kept = first.setdefault((_key(value), change), i)
        if kept == i or not (body.inputs[i].users or cond.inputs[i].users or loop.outputs[i].users):
            continue
        for graph in (cond, body):
            graph.replace(graph.inputs[i], graph.inputs[kept])
        body.outputs[i] = body.inputs[i]
        function.replace(loop.outputs[i], loop.outputs[kept])
        changed = True
    return changed


def _change(body: Function, position: int) -> Hashable | None:
    """Return how a step changes a variable: not at all, or by adding a constant; None if otherwise."""
    argument, result = body.inputs[position], body.outputs[position]
    if result is argument:
        return "unchanged"
    node = result.producer
    if node is None or node.op not in ("AddV2", "Add"):
        return None
    a, b = node.input(0), node.input(1)
    if b is argument:
        a, b = b, a
    return ("plus", _key(b)) if a is argument and b.data is not None and b.data.size == 1 else None


def _key(value: Value) -> Hashable:
    data = value.data
    if data is None or data.size > _SMALL or data.dtype.hasobject:
        return value
    return (value.type, data.shape, data.tobytes())


def _derive(function: Function, loop: Node) -> bool:
    """Compute a result after the loop if its last step makes it from another result by changing the shape."""
    cond, body = loop.bodies
    if not _runs(loop):
        return False
    positions = {value: i for i, value in enumerate(body.outputs)}
    changed = False
    for i, value in enumerate(body.outputs):
        maker = value.producer
        source = None if maker is None or maker.op not in ("ExpandDims", "Reshape") else positions.get(maker.input(0))
        if maker is None or source is None or body.inputs[i].users or cond.inputs[i].users:
            continue
        target = maker.input(1).data
        result = loop.outputs[i]
        if target is None or not (result.users or function.is_output(result)):
            continue
        operands = [loop.outputs[source], constant(target, maker.name)]
        function.replace(result, function.emit(maker.op_name, operands, result, maker.name))
        changed = True
    return changed


def _runs(loop: Node) -> bool:
    """Return whether the body certainly runs once: a count starts below a constant limit."""
    (result,) = loop.bodies[0].outputs
    less = result.producer
    if less is None or less.op != "Less" or less.input(0) not in loop.bodies[0].inputs:
        return False
    start, limit = loop.input(loop.bodies[0].inputs.index(less.input(0))).data, less.input(1).data
    return start is not None and limit is not None and bool(start < limit)


def _drop_dead(function: Function, loop: Node) -> bool:
    """Drop variables that neither the condition, nor results read outside, nor the body's effects depend on."""
    cond, body = loop.bodies
    cond.tidy()
    live = {i for i, value in enumerate(loop.outputs) if value.users or function.is_output(value)}
    live |= {i for i, value in enumerate(cond.inputs) if value.users or cond.is_output(value)}
    while True:
        needed = _arguments(body, [body.outputs[i] for i in live])
        if needed <= live:
            break
        live |= needed
    if len(live) == len(loop.inputs):
        return False
    kept = sorted(live)
    loop.rewire([loop.inputs[i] for i in kept])
    loop.outputs = tuple(loop.outputs[i] for i in kept)
    cond.inputs = [cond.inputs[i] for i in kept]
    body.inputs, body.outputs = [body.inputs[i] for i in kept], [body.outputs[i] for i in kept]
    body.tidy()
    return True


def _arguments(body: Function, wanted: list[Value]) -> set[int]:
    """Return the positions of the arguments that the wanted values and the body's effects depend on."""
    positions = {value: i for i, value in enumerate(body.inputs)}
    arguments: set[int] = set()
    seen: set[Value] = set()
    pending = [*wanted, *(v for node in body.nodes if node.writes for v in node.inputs if v is not None)]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in positions:
            arguments.add(positions[value])
        elif value.producer is not None:
            pending += [v for v in value.producer.inputs if v is not None]
    return arguments


def _join_limits(cond: Function) -> bool:
    """Turn count < a and count < b, with constants, into count < min(a, b); of two equal conditions keep one."""
    (result,) = cond.outputs
    both = result.producer
    if both is None or both.op != "LogicalAnd":
        return False
    a, b = both.input(0).producer, both.input(1).producer
    if a is None or b is None or a.op != "Less" or b.op != "Less" or a.input(0) is not b.input(0):
        return False
    first, second = a.input(1), b.input(1)
    if first is second or _key(first) == _key(second):
        cond.replace_node(both, [a.output])
    elif first.data is not None and second.data is not None:
        limit = constant(np.minimum(first.data, second.data), first.name)
        cond.replace_node(both, [cond.emit("Less", [a.input(0), limit], result, both.name)])
    else:
        return False
    cond.tidy()
    return True
