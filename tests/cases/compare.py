"""Cases of the comparisons."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import SPECIAL, Random, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import compare as ops
from litecl.interpreter.schema import TensorType

_random = Random(6)
_ALL = (ops.EQUAL, ops.NOT_EQUAL, ops.GREATER, ops.GREATER_EQUAL, ops.LESS, ops.LESS_EQUAL)
_TYPES = (TensorType.INT32, TensorType.INT64)


def _case(name: str, op: Op, a: Array, b: Array) -> Case:
    return Case(name, op, NoOptions(), [a, b], device=unfit(a, b))


def _table(op: Op) -> tuple[Case, ...]:
    x = np.round(_random.normal(2, 3, 4))
    return (
        _case("float", op, x, np.round(_random.normal(2, 3, 4))),
        _case("channel", op, x, np.round(_random.normal(4))),
        _case("both broadcast", op, np.round(_random.normal(3, 1)), np.round(_random.normal(1, 5))),
        _case("scalars", op, np.array(1.0, np.float32), np.array(1.0, np.float32)),
        _case("rank 4, row", op, np.round(_random.normal(2, 1, 3, 2)), np.round(_random.normal(2, 3, 1))),
        _case("infinities and NaN", op, SPECIAL, SPECIAL),
        _case("NaN", op, SPECIAL, np.array([np.nan], np.float32)),
        _case("empty", op, np.zeros((0, 4), np.float32), np.zeros(4, np.float32)),
        *(_case(t.name, op, _random.of(t, 3, 4), _random.of(t, 4)) for t in _TYPES),
    )


CASES = (
    *(case for op in _ALL for case in _table(op)),
    *(
        _case(t.name, op, _random.of(t, 3, 4), _random.of(t, 3, 4))
        for op in (ops.EQUAL, ops.NOT_EQUAL)
        for t in (TensorType.BOOL, TensorType.STRING)
    ),
)
