"""Random numbers. A model draws different numbers than TensorFlow, from the same distribution."""

import math

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression
from litecl.converter.lower.functions import quantile_of_normal
from litecl.converter.records import Dims
from litecl.interpreter.op import Op
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.random import MULTINOMIAL, RANDOM_STANDARD_NORMAL, RANDOM_UNIFORM, RandomOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.schema import TensorType

_FLOAT32 = TensorType.FLOAT32
_BELOW_MINUS_2 = math.erfc(math.sqrt(2)) / 2  # of a normal distribution


def _seeds(b: Builder) -> RandomOptions:
    return RandomOptions(int(b.node.attrs.get("seed") or 0), int(b.node.attrs.get("seed2") or 0))


def _drawn(op: Op) -> Lowering:
    return lambda b: b.op(op, [b.int32(b.node.input(0))], _seeds(b))


def _uniform(b: Builder, shape: Value, result: Dims | None) -> Expression:
    return Expression(b, b.op(RANDOM_UNIFORM, [shape], _seeds(b), type=_FLOAT32, shape=result))


def _truncated_normal(b: Builder) -> Value:
    """Draw from a normal distribution truncated to -2 to 2, by its quantiles."""
    drawn = _uniform(b, b.int32(b.node.input(0)), b.node.output.shape)
    return quantile_of_normal(drawn * (1 - 2 * _BELOW_MINUS_2) + _BELOW_MINUS_2).value


def _integers(b: Builder) -> Value:
    low, high = (Expression(b, b.node.input(i)) for i in (1, 2))
    drawn = _uniform(b, b.int32(b.node.input(0)), b.node.output.shape)
    return ((drawn * (high - low).cast(_FLOAT32)).floor().cast(low.type) + low).value


def _multinomial(b: Builder) -> Value:
    return b.op(MULTINOMIAL, [b.node.input(0), b.int32(b.node.input(1))], _seeds(b))


def _shuffle(b: Builder) -> Value:
    """Return the rows in random order."""
    x = b.node.input(0)
    count = b.shape(x)[0]
    if count is None:
        raise b.error("the number of its rows must be known; give input_shapes")
    drawn = _uniform(b, b.const([count], np.int32), (count,))
    results = [b.value(_FLOAT32, (count,)), b.value(TensorType.INT32, (count,))]
    _, order = b.ops(TOPK_V2, [drawn.value, b.const(count, np.int32)], None, results)
    return b.op(GATHER, [x, order], GatherOptions())


LOWERINGS: dict[str, Lowering] = {
    "RandomUniform": _drawn(RANDOM_UNIFORM),
    "RandomStandardNormal": _drawn(RANDOM_STANDARD_NORMAL),
    "TruncatedNormal": _truncated_normal,
    "RandomUniformInt": _integers,
    "Multinomial": _multinomial,
    "RandomShuffle": _shuffle,
}
