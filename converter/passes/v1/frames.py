"""Turns TensorFlow 1's loops into While: Enter, Merge, Switch, LoopCond, NextIteration and Exit, nested or not.

A loop is a frame, named by its Enters. For every variable, Merge joins the initial value and that of the last step, and
Switch sends it to the body or, via Exit, out. Enters marked constant pass in invariants.
"""

from dataclasses import dataclass

from litecl.converter.graph import Function, Node, Value
from litecl.converter.passes.v1.extract import function_of, order_like
from litecl.interpreter.errors import ConversionError

_MAX_FRAMES = 10_000


def raise_loops(function: Function) -> None:
    """Replace every frame by a While, innermost first; until then the function's nodes may form cycles."""
    for _ in range(_MAX_FRAMES):
        frames = _frames(function)
        if not frames:
            break
        innermost = next((enters for enters in frames.values() if _is_innermost(enters)), None)
        if innermost is None:
            raise ConversionError(f"{next(iter(frames.values()))[0]}: the loops of this graph are not nested")
        _raise(function, innermost)
    if any(node.op in ("Switch", "Merge") for node in function.nodes):
        return  # branches are next; they form no cycles
    function.tidy()


def _frames(function: Function) -> dict[str, list[Node]]:
    frames: dict[str, list[Node]] = {}
    for node in function.nodes:
        if node.op == "Enter" and node.inputs:
            frames.setdefault(str(node.attrs["frame_name"]), []).append(node)
    return frames


def _is_innermost(enters: list[Node]) -> bool:
    """Return whether no other frame is entered between a frame's Enters and Exits."""
    name = enters[0].attrs["frame_name"]
    return all(node.attrs["frame_name"] == name for node in _inside(enters) if node.op == "Enter")


@dataclass(frozen=True, eq=False)
class _Variable:
    """A loop variable: before the loop, after Merge, in the body, after a step, and after the loop."""

    initial: Value
    merged: Value
    switched: Value | None
    stepped: Value
    final: list[Value]


def _variable(enter: Node) -> _Variable:
    merge = next((user for user in enter.output.users if user.op == "Merge"), None)
    if merge is None:
        raise ConversionError(f"{enter}: nothing merges this loop variable")
    back = next((v.producer for v in merge.inputs if v is not None and v is not enter.output), None)
    if back is None or back.op != "NextIteration":
        raise ConversionError(f"{merge}: expected a NextIteration to feed this loop variable")
    switch = next((u for u in merge.output.users if u.op == "Switch" and u.input(0) is merge.output), None)
    exits = [] if switch is None else [user for user in switch.outputs[0].users if user.op == "Exit"]
    return _Variable(
        enter.input(0),
        merge.output,
        None if switch is None else switch.outputs[1],
        back.input(0),
        [node.output for node in exits],
    )


def _raise(function: Function, enters: list[Node]) -> None:
    name = str(enters[0].attrs["frame_name"])
    constant = [enter for enter in enters if enter.attrs.get("is_constant") or not _merges(enter)]
    variables = [_variable(enter) for enter in enters if enter not in constant]
    inside = _inside(enters)
    operands = [*(v.initial for v in variables), *(enter.input(0) for enter in constant)]
    bodies = _bodies(function, enters, variables, [[enter.output] for enter in constant], operands)
    outputs = [Value(v.type, v.shape, f"{name}/{v.name}") for v in operands]
    first_exit = next((node for node in function.nodes if node in inside and node.op == "Exit"), None)
    function.add(Node("While", operands, outputs, {}, name, bodies), before=first_exit)
    for variable, result in zip(variables, outputs, strict=False):
        result.shape = variable.merged.shape
        for final in variable.final:
            function.replace(final, result)
    for node in inside:
        node.rewire(())
    function.nodes = [node for node in function.nodes if node not in inside]


def _bodies(
    function: Function, enters: list[Node], variables: list[_Variable], fixed: list[list[Value]], operands: list[Value]
) -> tuple[Function, Function]:
    """Return a loop's condition and step, as functions of its variables and of the ``fixed`` values."""
    name = str(enters[0].attrs["frame_name"])
    condition = next((n for v in variables for u in v.merged.users for n in _loop_cond(u)), None)
    if condition is None:
        raise ConversionError(f"{enters[0]}: the loop {name!r} has no condition")
    inside = _inside(enters)
    effects = [node for node in function.nodes if node in inside and node.writes]
    cond = function_of(f"{name}_cond", operands, [*([v.merged] for v in variables), *fixed], [condition.input(0)])
    switched = [[] if v.switched is None else [v.switched] for v in variables]
    body = function_of(f"{name}_body", operands, [*switched, *fixed], [v.stepped for v in variables], effects)
    body.outputs += body.inputs[len(variables) :]
    order_like(function, cond)
    order_like(function, body)
    return cond, body


def _merges(enter: Node) -> bool:
    return any(user.op == "Merge" for user in enter.output.users)


def _loop_cond(node: Node) -> list[Node]:
    """Return the LoopCond that controls a Switch."""
    if node.op != "Switch":
        return []
    condition = node.input(1).producer
    while condition is not None and condition.op == "Identity":
        condition = condition.input(0).producer
    return [condition] if condition is not None and condition.op == "LoopCond" else []


def _inside(enters: list[Node]) -> set[Node]:
    """Return the nodes of a frame, from its Enters to its Exits."""
    inside: set[Node] = set()
    pending: list[Node] = list(enters)
    while pending:
        node = pending.pop()
        if node in inside:
            continue
        inside.add(node)
        if node.op != "Exit":
            pending += [user for value in node.outputs for user in value.users]
    return inside
