"""Turns TensorFlow 1's branches into If: Switch sends a value to one of two branches, Merge takes the live result.

The conditions under which a value is live follow from the Switches that it has passed and no Merge has joined.
"""

from dataclasses import dataclass

from litecl.converter.graph import Function, Node, Value
from litecl.converter.own_ops import GATED
from litecl.converter.passes.v1.extract import function_of, order_like
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

# (condition, branch): the value is live if the condition has this truth value.
_Literal = tuple[Value, int]
_Alive = dict[Value, frozenset[_Literal]]


def raise_branches(function: Function) -> None:
    """Replace every pair of Switch and Merge by an If, in the function and in all bodies."""
    function.tidy()
    _join_conditions(function)
    _pair_merges(function)
    while True:
        alive = _alive(function)
        seed = next((n for n in reversed(function.nodes) if n.op == "Merge" or (n.writes and _of(n, alive))), None)
        if seed is None:
            break
        _raise(function, seed, alive)
        function.tidy()
    for node in list(function.nodes):
        if node.op is GATED:
            function.replace_node(node, [node.input(0)])
        for body in node.bodies:
            raise_branches(body)
    function.tidy()
    left = next((node for node in function.nodes if node.op in ("Switch", "Merge")), None)
    if left is not None:
        raise ConversionError(f"{left}: a branch of TensorFlow 1 whose result is never merged cannot be converted")


def _join_conditions(function: Function) -> None:
    """Merge reads of a boolean variable with no write in between: a branch reads its condition several times."""
    reads: dict[Value, Value] = {}
    for node in function.nodes:
        if node.writes:
            reads.clear()
        elif node.op == "ReadVariableOp" and node.output.type == TensorType.BOOL:
            function.replace(node.output, reads.setdefault(node.input(0), node.output))
    function.tidy()


def _pair_merges(function: Function) -> None:
    """Split every Merge of more than two values into Merges of two."""
    for merge in [node for node in function.nodes if node.op == "Merge" and len(node.inputs) > 2]:
        if merge.outputs[1].users:
            raise ConversionError(f"{merge}: an If does not report the index of the branch it took")
        alive = _alive(function)
        operands = [value for value in merge.inputs if value is not None]
        function.replace(merge.output, _merged(function, merge, operands, alive, frozenset()))
        merge.rewire(())
        function.tidy()


def _merged(function: Function, merge: Node, operands: list[Value], alive: _Alive, decided: frozenset[Value]) -> Value:
    """Return the live one of several values, via a condition that separates them."""
    if len(operands) == 1:
        return operands[0]
    for condition in {c: None for value in operands for c, _ in alive[value] if c not in decided}:
        sides = [[v for v in operands if (condition, truth) in alive[v]] for truth in (0, 1)]
        if all(sides) and sum(map(len, sides)) == len(operands):
            parts = [_merged(function, merge, side, alive, decided | {condition}) for side in sides]
            outputs = [Value(v.type, v.shape, v.name) for v in merge.outputs]
            return function.add(Node("Merge", parts, outputs, merge.options, merge.name), before=merge).output
    raise ConversionError(f"{merge}: no Switch selects one of its operands")


@dataclass(frozen=True, eq=False)
class _Branching:
    """The Switches and Merges that one condition decides, and the other conditions under which they run."""

    condition: Value
    outside: frozenset[_Literal]
    switches: list[Node]
    merges: list[Node]


def _raise(function: Function, seed: Node, alive: _Alive) -> None:
    """Replace a Merge, its siblings under the same condition, and effects that depend on it, by an If."""
    branching = _branching(function, seed, alive)
    operands = list(dict.fromkeys([*(n.input(0) for n in branching.switches), *function.inputs]))
    branches, done = [], set(branching.merges)
    for truth in (1, 0):
        literals = {(branching.condition, truth), *branching.outside}
        effects = [node for node in function.nodes if node.writes and literals <= _of(node, alive)]
        name = f"{seed.name}/{'then' if truth else 'else'}"
        results = [_side(merge, branching.condition, truth, alive) for merge in branching.merges]
        inner = [_inner(function, branching, value, truth) for value in operands]
        branches.append(function_of(name, operands, inner, results, effects))
        order_like(function, branches[-1])
        done |= set(effects)
    outputs = [Value(m.output.type, m.output.shape, m.output.name) for m in branching.merges]
    function.add(Node("If", [branching.condition, *operands], outputs, {}, seed.name, branches), before=seed)
    for merge, output in zip(branching.merges, outputs, strict=True):
        if merge.outputs[1].users:
            raise ConversionError(f"{merge}: an If does not report the index of the branch it took")
        function.replace(merge.output, output)
    for node in done:
        node.rewire(())
    function.nodes = [node for node in function.nodes if node not in done]


def _branching(function: Function, seed: Node, alive: _Alive) -> _Branching:
    """Return the branching that a Merge ends, or that contains an effect which no Merge follows."""
    if seed.op == "Merge":
        condition, outside = _condition(seed, alive), alive[seed.output]
    else:
        condition = min((c for c, _ in _of(seed, alive)), key=lambda c: len(alive.get(c, ())))
        outside = alive.get(condition, frozenset())
    merges = [
        n
        for n in function.nodes
        if n.op == "Merge" and alive[n.output] == outside and _condition(n, alive) is condition
    ]
    switches = [
        n
        for n in function.nodes
        if n.op == "Switch" and _source(n.input(1)) is condition and alive.get(n.input(0), frozenset()) == outside
    ]
    return _Branching(condition, outside, switches, merges)


def _inner(function: Function, branching: _Branching, value: Value, truth: int) -> list[Value]:
    """Return the values that stand for an operand of the If inside one branch."""
    switched = [node.outputs[truth] for node in branching.switches if node.input(0) is value]
    return [*switched, value] if value in function.inputs else switched


def _of(node: Node, alive: _Alive) -> frozenset[_Literal]:
    """Return the conditions under which a node runs."""
    return frozenset(x for value in node.inputs if value is not None for x in alive.get(value, frozenset()))


def _alive(function: Function) -> _Alive:
    """Return the conditions under which each value is live."""
    alive: _Alive = {value: frozenset() for value in function.inputs}

    for node in function.nodes:
        if node.op == "Merge":
            operands = [frozenset() if value is None else alive.get(value, frozenset()) for value in node.inputs]
            conditions = {condition for literals in operands for condition, _ in literals}
            decided = {c for c in conditions if _decides(c, operands)}
            joined = frozenset(x for literals in operands for x in literals if x[0] not in decided)
            alive.update(dict.fromkeys(node.outputs, joined))
            continue
        literals = _of(node, alive)
        for truth, value in enumerate(node.outputs):
            own = {(_source(node.input(1)), truth)} if node.op == "Switch" else set()
            alive[value] = literals | own
    return alive


def _decides(condition: Value, operands: list[frozenset[_Literal]]) -> bool:
    """Return whether a condition separates the operands of a Merge: no two depend on the same truth value."""
    truths = [truth for literals in operands for c, truth in literals if c is condition]
    return len(set(truths)) == len(truths)


def _condition(merge: Node, alive: _Alive) -> Value:
    outside = alive[merge.output]
    for value in merge.inputs:
        for literal in alive.get(value, frozenset()) if value is not None else ():
            if literal not in outside:
                return literal[0]
    raise ConversionError(f"{merge}: no Switch selects one of its operands")


def _side(merge: Node, condition: Value, truth: int, alive: _Alive) -> Value:
    """Return the operand that a Merge takes if the condition has a truth value; either operand tells the other."""
    a, b = merge.input(0), merge.input(1)
    for value, other in ((a, b), (b, a)):
        if (condition, truth) in alive.get(value, ()):
            return value
        if (condition, 1 - truth) in alive.get(value, ()):
            return other
    raise ConversionError(f"{merge}: no Switch selects one of its operands")


def _source(value: Value) -> Value:
    """Return a condition without identities in front of it."""
    while value.producer is not None and value.producer.op == "Identity" and value.type == TensorType.BOOL:
        value = value.producer.input(0)
    return value
