"""Simplifies arithmetic: additions of zero, multiplications by one, negations that become differences."""

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.passes.match import AnyTensor, Constant, Pattern, match
from litecl.converter.traits import traits_of
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

_NEUTRAL = {"AddV2": 0, "Add": 0, "Sub": 0, "Mul": 1, "RealDiv": 1, "Pow": 1}
_BOUNDED = frozenset({"Sigmoid", "Softmax", "Tanh"})
# Keras' shift in a normalisation: beta + (-mean) * scale.
_NEGATED_PRODUCT = Pattern(
    "AddV2", [Pattern("Mul", [Pattern("Neg", [AnyTensor("a")]), AnyTensor("b")]), AnyTensor("c")]
)
_TWO_FACTORS = Pattern("Mul", [Pattern("Mul", [AnyTensor("x"), Constant("a")]), Constant("b")])
_NEGATED = Pattern("AddV2", [Pattern("Neg", [AnyTensor("a")]), AnyTensor("b")])


def simplify_arithmetic(function: Function) -> None:
    """x + 0, x - 0, x * 1, x / 1 and x ** 1 become x; b + (-a) becomes b - a, also with products.

    Two consecutive products with constants become one; a product with zeros becomes zeros if x is never infinite.
    """
    for node in list(function.nodes):
        if node.op == "Mul" and (zeros := _vanishing(node)) is not None:
            function.replace_node(node, [constant(zeros, node.name)])
            continue
        if node.op in _NEUTRAL and len(node.inputs) == 2:
            kept = _kept(node)
            if kept is not None and kept.shape is not None and kept.shape == node.output.shape:
                function.replace_node(node, [kept])
                continue
        _narrow(node)
        if node.op == "AddV2":
            _use_difference(function, node)
        elif node.op == "Square":
            _square_difference(function, node)
        elif node.op == "Mul":
            _join_factors(function, node)
    function.tidy()


def _narrow(node: Node) -> None:
    """Replace a constant filled with one number by that number if the other operand has the result's shape."""
    if not traits_of(node.op).broadcasts or len(node.inputs) != 2 or node.output.shape is None:
        return
    x, y = node.input(0), node.input(1)
    for value, other in ((x, y), (y, x)):
        data = value.data
        if data is None or data.size < 2 or value.grid is not None or other.shape != node.output.shape:
            continue
        if other.data is None and not data.dtype.hasobject and bool(np.all(data == data.flat[0])):
            number = constant(np.array(data.flat[0], data.dtype), value.name)
            node.rewire([number if operand is value else operand for operand in node.inputs])


def _square_difference(function: Function, node: Node) -> None:
    difference = node.input(0).producer
    if difference is not None and difference.op == "Sub" and function.only_user(difference.output) is node:
        operands = [difference.input(0), difference.input(1)]
        function.replace_node(node, [_result(function, "SquaredDifference", operands, node.output, node)])


def _vanishing(node: Node) -> Array | None:
    """Return the zeros that a product equals: a gate times an initial state of zeros."""
    for x, y in (node.inputs, node.inputs[::-1]):
        bounded = x is not None and x.producer is not None and x.producer.op in _BOUNDED
        if bounded and y is not None and _is(y, 0) and y.data is not None and y.shape == node.output.shape:
            return y.data
    return None


def _kept(node: Node) -> Value | None:
    number = _NEUTRAL[node.op_name]
    x, y = node.input(0), node.input(1)
    if _is(y, number):
        return x
    return y if traits_of(node.op).commutative and _is(x, number) else None


def _is(value: Value, number: int) -> bool:
    return value.data is not None and value.data.size >= 1 and bool(np.all(value.data == number))


def _use_difference(function: Function, node: Node) -> None:
    bound = match(_NEGATED_PRODUCT, node.output)
    if bound is not None:
        like = next(v for v in node.inputs if v is not None and v is not bound["c"])
        product = _result(function, "Mul", [bound["a"], bound["b"]], like, node)
        function.replace_node(node, [_result(function, "Sub", [bound["c"], product], node.output, node)])
        return
    bound = match(_NEGATED, node.output)
    if bound is not None:
        function.replace_node(node, [_result(function, "Sub", [bound["b"], bound["a"]], node.output, node)])


def _join_factors(function: Function, node: Node) -> None:
    """Turn (x * a) * b into x * (a * b)."""
    bound = match(_TWO_FACTORS, node.output)
    if bound is None or node.output.type != TensorType.FLOAT32 or bound["x"].rank != node.output.rank:
        return
    a, b = bound["a"].data, bound["b"].data
    inner = next(v for v in node.inputs if v is not None and v is not bound["b"])
    if a is None or b is None or function.only_user(inner) is not node:
        return
    factor = constant((a.astype(np.float64) * b).astype(np.float32), bound["b"].name)
    if factor.data is not None and factor.data.size <= max(a.size, b.size):
        function.replace_node(node, [_result(function, "Mul", [bound["x"], factor], node.output, node)])


def _result(function: Function, op: str, operands: list[Value], like: Value, node: Node) -> Value:
    result = Value(like.type, like.shape, like.name)
    return function.add(Node(op, operands, [result], {}, node.name)).output
