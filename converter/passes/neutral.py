"""Drops arithmetic that changes nothing: sums with zero, products with one."""

import numpy as np

from litecl.converter.graph import Function, Node, Value

_NEUTRAL = {"AddV2": 0, "Add": 0, "Sub": 0, "Mul": 1, "RealDiv": 1, "Pow": 1}
_COMMUTATIVE = frozenset({"AddV2", "Add", "Mul"})


def drop_neutral(function: Function) -> None:
    """Lets readers of x + 0, x - 0, x * 1, x / 1 and x ** 1 read x."""
    for node in function.nodes:
        if node.op in _NEUTRAL and len(node.inputs) == 2:
            kept = _kept(node)
            if kept is not None and kept.shape == node.output.shape:
                function.replace_node(node, [kept])
    function.tidy()


def _kept(node: Node) -> Value | None:
    number = _NEUTRAL[str(node.op)]
    x, y = node.input(0), node.input(1)
    if _is(y, number):
        return x
    return y if node.op in _COMMUTATIVE and _is(x, number) else None


def _is(value: Value, number: int) -> bool:
    # A constant that is longer than the other operand would broadcast it.
    return value.data is not None and value.data.size >= 1 and bool(np.all(value.data == number))
