"""Finds activations that TensorFlow writes as arithmetic and TFLite has as one operator."""

import math
from collections.abc import Mapping
from typing import Any

from litecl.converter.graph import Function, Node, Operator, Value
from litecl.converter.own_ops import (
    GELU,
    HARD_SWISH,
    L2_NORMALIZATION,
    LOG_SIGMOID,
    PRELU,
    RELU_N1_TO_1,
    TANH_OF_SOFTPLUS,
)
from litecl.converter.passes.match import AnyTensor, Bindings, Constant, Number, Pattern, Tree, match
from litecl.interpreter.schema import TensorType

_X = AnyTensor("x")
_SQRT_HALF = math.sqrt(0.5)


def _mul(*operands: Tree) -> Pattern:
    return Pattern("Mul", operands)


def _add(*operands: Tree) -> Pattern:
    return Pattern("AddV2", operands)


def _relu6_of_x_plus_3() -> Pattern:
    return Pattern("Relu6", [_add(_X, Number(3.0))])


_ERF = (
    Pattern("Erf", [_mul(_X, Number(_SQRT_HALF))]),
    Pattern("Erf", [Pattern("RealDiv", [_X, Number(math.sqrt(2.0))])]),
)
_ERFC = (
    Pattern("Erfc", [_mul(Pattern("Neg", [_X]), Number(_SQRT_HALF))]),
    Pattern("Erfc", [_mul(_X, Number(-_SQRT_HALF))]),
)
# https://arxiv.org/abs/1606.08415: sqrt(2 / pi) * (x + 0.044715 * x ** 3)
_CUBES = (
    Pattern("Pow", [_X, Number(3.0)]),
    _mul(_X, Pattern("Square", [_X])),
    _mul(_X, _mul(_X, _X)),
)
_TANH = tuple(
    Pattern("Tanh", [_mul(Number(math.sqrt(2.0 / math.pi)), _add(_X, _mul(Number(0.044715), cube)))]) for cube in _CUBES
)


def _half_x_times(factor: Tree) -> tuple[Pattern, ...]:
    return (
        _mul(_mul(Number(0.5), _X), factor),
        _mul(Number(0.5), _mul(_X, factor)),
        _mul(_X, _mul(Number(0.5), factor)),
    )


def _one_plus(trees: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    return tuple(_add(Number(1.0), tree) for tree in trees)


_SUM_OF_SQUARES = Pattern("Sum", [Pattern("Square", [_X]), Constant("axis")], name="sum")

_PATTERNS: tuple[tuple[Operator, Mapping[str, Any], tuple[Pattern, ...]], ...] = (
    (GELU, {"approximate": False}, tuple(p for e in (*_ERFC, *_one_plus(_ERF)) for p in _half_x_times(e))),
    (GELU, {"approximate": True}, tuple(p for t in _one_plus(_TANH) for p in _half_x_times(t))),
    (
        HARD_SWISH,
        {},
        (
            _mul(_X, Pattern("RealDiv", [_relu6_of_x_plus_3(), Number(6.0)])),
            _mul(_X, _mul(_relu6_of_x_plus_3(), Number(1 / 6))),
            _mul(_mul(_X, _relu6_of_x_plus_3()), Number(1 / 6)),
            Pattern("RealDiv", [_mul(_X, _relu6_of_x_plus_3()), Number(6.0)]),
        ),
    ),
    (
        PRELU,
        {},
        (
            _add(
                Pattern("Relu", [_X]),
                _mul(Constant("slope"), Pattern("Relu", [Pattern("Neg", [_X])])),
            ),
        ),
    ),
    (
        "Relu6",
        {},
        (
            Pattern("Minimum", [Pattern("Maximum", [_X, Number(0.0)]), Number(6.0)]),
            Pattern("Minimum", [Pattern("Relu", [_X]), Number(6.0)]),
            Pattern("Relu6", [Pattern("Relu", [_X])]),
        ),
    ),
    ("Relu", {}, (Pattern("Maximum", [_X, Number(0.0)]),)),
    (
        RELU_N1_TO_1,
        {},
        (
            Pattern("Minimum", [Pattern("Maximum", [_X, Number(-1.0)]), Number(1.0)]),
            Pattern("Maximum", [Pattern("Minimum", [_X, Number(1.0)]), Number(-1.0)]),
        ),
    ),
    (LOG_SIGMOID, {}, (Pattern("Neg", [Pattern("Softplus", [Pattern("Neg", [_X])])]),)),
    (TANH_OF_SOFTPLUS, {}, (Pattern("Tanh", [Pattern("Softplus", [_X])]),)),
    (L2_NORMALIZATION, {}, (_mul(_X, Pattern("Rsqrt", [Pattern("Maximum", [_SUM_OF_SQUARES, Number(1e-12)])])),)),
)


def fuse_activations(function: Function) -> None:
    """Replace arithmetic that computes GELU, HARD_SWISH, PRELU, RELU6 and the like by one operator."""
    for node in list(function.nodes):
        if len(node.outputs) == 1 and node.inputs and node.output.type == TensorType.FLOAT32:
            _fuse(function, node)
    function.tidy()


def _fuse(function: Function, node: Node) -> None:
    for op, attrs, patterns in _PATTERNS:
        for pattern in patterns:
            bound = match(pattern, node.output)
            if bound is not None and _same_shape(bound["x"], node.output) and _over_last(bound):
                function.add(_fused(op, attrs, bound, node))
                function.replace_node(node, [function.nodes[-1].output])
                return


def _fused(op: Operator, attrs: Mapping[str, Any], bound: Bindings, node: Node) -> Node:
    old = node.output
    inputs = [bound["x"], bound["slope"]] if "slope" in bound else [bound["x"]]
    return Node(op, inputs, [Value(old.type, old.shape, old.name)], attrs, node.name)


def _over_last(bound: Bindings) -> bool:
    """Return whether a pattern's sum, if any, is over the last dimension and keeps it."""
    if "axis" not in bound:
        return True
    axes, total, rank = bound["axis"].data, bound["sum"].producer, bound["x"].rank
    assert axes is not None and total is not None and rank is not None
    return bool(total.attrs["keep_dims"]) and [int(axis) % rank for axis in axes.reshape(-1)] == [rank - 1]


def _same_shape(x: Value, result: Value) -> bool:
    """Return whether no constant of a pattern broadcasts x to a larger shape."""
    return x.shape is not None and x.shape == result.shape
