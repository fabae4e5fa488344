"""Elementwise operators."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.stablehlo.values import Rule, Spread, element_type, words


def _each(function: Callable[..., Any]) -> Rule:
    """Return the rule for an elementwise function."""
    return _with(lambda op: function)


def _with(choose: Callable[[Any], Callable[..., Any]]) -> Rule:
    """Return the rule for an elementwise function that the operation's attributes choose."""

    def rule(op: Any, *operands: Any) -> Any:
        result = choose(op)(*(operand.value if isinstance(operand, Spread) else operand for operand in operands))
        spread = [operand for operand in operands if isinstance(operand, Spread)]
        # clamp and select take scalars beside tensors.
        rank = op.results[0].type.rank
        all_spread = all(isinstance(operand, Spread) or operand.shape.rank < rank for operand in operands)
        return Spread(result, spread[0].shape) if spread and all_spread else result

    return rule


def _either(logical: Callable[..., Any], bitwise: Callable[..., Any]) -> Rule:
    """Return the rule for an operator that differs between booleans and integers."""
    return _each(lambda *x: logical(*x) if x[0].dtype == tf.bool else bitwise(*x))


def _divide(x: Any, y: Any) -> Any:
    return tf.divide(x, y) if x.dtype.is_floating else tf.truncatediv(x, y)


def _convert(op: Any) -> Callable[[Any], Any]:
    to = element_type(op)
    return lambda x: tf.not_equal(x, tf.zeros([], x.dtype)) if to == tf.bool else tf.cast(x, to)


_COMPARISONS = {
    "EQ": tf.equal,
    "NE": tf.not_equal,
    "LT": tf.less,
    "LE": tf.less_equal,
    "GT": tf.greater,
    "GE": tf.greater_equal,
}


def _round_away(x: Any) -> Any:
    return tf.sign(x) * tf.floor(tf.abs(x) + 0.5)


def _shift_right(x: Any, by: Any) -> Any:
    """Shift right, filling with zeros."""
    if x.dtype.is_unsigned:
        return tf.bitwise.right_shift(x, by)
    unsigned = tf.as_dtype(f"u{x.dtype.name}")
    return tf.bitcast(tf.bitwise.right_shift(tf.bitcast(x, unsigned), tf.bitcast(by, unsigned)), x.dtype)


RULES: Mapping[str, Rule] = {
    "abs": _each(tf.abs),
    "add": _either(tf.logical_or, tf.add),
    "and": _either(tf.logical_and, tf.bitwise.bitwise_and),
    "atan2": _each(tf.atan2),
    "bitcast_convert": _with(lambda op: lambda x: tf.bitcast(x, element_type(op))),
    "cbrt": _each(lambda x: tf.sign(x) * tf.abs(x) ** (1 / 3)),
    "ceil": _each(tf.math.ceil),
    "clamp": _each(lambda low, x, high: tf.minimum(tf.maximum(x, low), high)),
    "compare": _with(lambda op: _COMPARISONS[words(op, "comparison_direction")]),
    "convert": _with(_convert),
    "cosine": _each(tf.cos),
    "divide": _each(_divide),
    "exponential": _each(tf.exp),
    "exponential_minus_one": _each(tf.math.expm1),
    "floor": _each(tf.floor),
    "is_finite": _each(tf.math.is_finite),
    "log": _each(tf.math.log),
    "log_plus_one": _each(tf.math.log1p),
    "logistic": _each(tf.sigmoid),
    "maximum": _either(tf.logical_or, tf.maximum),
    "minimum": _either(tf.logical_and, tf.minimum),
    "multiply": _either(tf.logical_and, tf.multiply),
    "negate": _each(tf.negative),
    "not": _either(tf.logical_not, tf.bitwise.invert),
    "optimization_barrier": lambda op, *operands: list(operands),
    "or": _either(tf.logical_or, tf.bitwise.bitwise_or),
    "power": _each(tf.pow),
    "remainder": _each(tf.truncatemod),
    "round_nearest_afz": _each(_round_away),
    "round_nearest_even": _each(tf.round),
    "rsqrt": _each(tf.math.rsqrt),
    "select": _each(tf.where),
    "shift_left": _each(tf.bitwise.left_shift),
    "shift_right_arithmetic": _each(tf.bitwise.right_shift),
    "shift_right_logical": _each(_shift_right),
    "sign": _each(tf.sign),
    "sine": _each(tf.sin),
    "sqrt": _each(tf.sqrt),
    "subtract": _each(tf.subtract),
    "tan": _each(tf.tan),
    "tanh": _each(tf.tanh),
    "xor": _either(tf.math.logical_xor, tf.bitwise.bitwise_xor),
}
