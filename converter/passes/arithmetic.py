"""Simplifies arithmetic: sums with zero, products with one, negations that a difference can express."""

import numpy as np

from litecl.converter.graph import Function, Node, Value
from litecl.converter.passes.match import Any, Pattern, match

_NEUTRAL = {"AddV2": 0, "Add": 0, "Sub": 0, "Mul": 1, "RealDiv": 1, "Pow": 1}
_COMMUTATIVE = frozenset({"AddV2", "Add", "Mul"})
# How Keras writes the shift of a normalisation: beta + (-mean) * scale.
_NEGATED = Pattern("AddV2", [Pattern("Mul", [Pattern("Neg", [Any("a")]), Any("b")]), Any("c")])


def simplify_arithmetic(function: Function) -> None:
    """x + 0, x - 0, x * 1, x / 1 and x ** 1 become x; c + (-a) * b becomes c - a * b."""
    for node in list(function.nodes):
        if node.op in _NEUTRAL and len(node.inputs) == 2:
            kept = _kept(node)
            if kept is not None and kept.shape == node.output.shape:
                function.replace_node(node, [kept])
                continue
        bound = match(_NEGATED, node.output) if node.op == "AddV2" else None
        if bound is not None:
            _subtract(function, node, bound["a"], bound["b"], bound["c"])
    function.tidy()


def _kept(node: Node) -> Value | None:
    number = _NEUTRAL[str(node.op)]
    x, y = node.input(0), node.input(1)
    if _is(y, number):
        return x
    return y if node.op in _COMMUTATIVE and _is(x, number) else None


def _is(value: Value, number: int) -> bool:
    return value.data is not None and value.data.size >= 1 and bool(np.all(value.data == number))


def _subtract(function: Function, node: Node, a: Value, b: Value, c: Value) -> None:
    old = node.output
    shape = next((v.shape for v in node.inputs if v is not None and v is not c), None)
    product = function.add(Node("Mul", [a, b], [Value(old.type, shape, f"{old.name}/product")], {}, node.name)).output
    result = Value(old.type, old.shape, old.name)
    function.add(Node("Sub", [c, product], [result], {}, node.name))
    function.replace_node(node, [result])
