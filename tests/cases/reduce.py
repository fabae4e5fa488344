"""Cases of the reductions."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import SPECIAL, Random, i32, unfit
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.op import Op
from litecl.interpreter.ops import reduce as ops
from litecl.interpreter.ops.reduce import ReducerOptions
from litecl.interpreter.schema import TensorType

_random = Random(8)
_FLOAT = (ops.SUM, ops.MEAN, ops.REDUCE_PROD, ops.REDUCE_MAX, ops.REDUCE_MIN)
_AXES: tuple[tuple[str, Shape, list[int], bool], ...] = (
    ("last", (2, 3, 4), [2], False),
    ("last kept", (2, 3, 4), [-1], True),
    ("first", (2, 3, 4), [0], False),
    ("middle", (2, 3, 4), [1], False),
    ("two", (2, 3, 4, 5), [1, 2], False),
    ("two kept", (2, 3, 4, 5), [1, 2], True),
    ("apart", (2, 3, 4, 5), [0, 2], False),
    ("all", (2, 3, 4), [0, 1, 2], False),
    ("all kept", (2, 3, 4), [0, 1, 2], True),
    ("twice the same", (2, 3, 4), [1, -2], False),
    ("negative, unordered", (2, 3, 4), [-1, 0], False),
    ("none", (2, 3), [], False),
    ("long", (3, 1031), [1], False),
    ("rank 0", (), [], False),
    ("rank 5", (2, 1, 3, 2, 2), [1, 3], True),
)


def _case(name: str, op: Op, x: Array, axes: list[int], keep: bool = False) -> Case:
    inputs = [x, i32(*axes)]
    return Case(name, op, ReducerOptions(keep), inputs, frozenset({1}), device=unfit(inputs[0]))


def _float(op: Op) -> list[Case]:
    # Products of 1031 normal numbers would vanish.
    make = _random.positive if op is ops.REDUCE_PROD else _random.normal
    return [
        _case(name, op, np.asarray(make(*shape)), axes, keep)
        for name, shape, axes, keep in _AXES
        if not (op is ops.REDUCE_PROD and name == "long")
    ]


def _integers(op: Op) -> list[Case]:
    return [
        _case(t.name, op, _random.of(t, 3, 4, 5), axes, keep)
        for t in (TensorType.INT32, TensorType.INT64)
        for axes, keep in (([1], False), ([0, 2], True))
    ]


def _booleans(op: Op) -> list[Case]:
    x = _random.bools(2, 3, 4)
    return [
        _case("last", op, x, [2]),
        _case("first kept", op, x, [0], True),
        _case("all", op, x, [0, 1, 2]),
        _case("rank 0", op, np.array(True), []),
        _case("empty", op, np.zeros((2, 0), np.bool_), [1]),
    ]


CASES = (
    *(case for op in _FLOAT for case in _float(op)),
    *(case for op in _FLOAT for case in _integers(op)),
    *(case for op in (ops.REDUCE_ANY, ops.REDUCE_ALL) for case in _booleans(op)),
    *(_case("NaN", op, SPECIAL, [0]) for op in (ops.REDUCE_MAX, ops.REDUCE_MIN)),
    *(_case("empty", op, _random.normal(2, 0, 3), [1]) for op in (ops.SUM, ops.REDUCE_MAX, ops.REDUCE_PROD)),
    *(_case("int8", op, _random.integers(3, 4, dtype=np.int8), [1]) for op in (ops.REDUCE_MAX, ops.REDUCE_MIN)),
    _case("int32 wraps", ops.SUM, i32(2**31 - 1, 1, 5), [0]),
)
