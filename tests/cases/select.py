"""Cases of SELECT, SELECT_V2 and WHERE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, Random, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.select import SELECT, SELECT_V2, WHERE
from litecl.interpreter.schema import TensorType

_random = Random(26)
_TYPES = (TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.UINT8, TensorType.INT16)


def _case(name: str, op: Op, condition: Array, x: Array, y: Array) -> Case:
    return Case(name, op, NoOptions(), [condition, x, y], device=unfit(condition, x, y))


def _where(name: str, condition: Array) -> Case:
    return Case(name, WHERE, NoOptions(), [condition], device="shape known at run time")


CASES = (
    *(
        _case("same shape", op, _random.bools(2, 3), _random.normal(2, 3), _random.normal(2, 3))
        for op in (SELECT, SELECT_V2)
    ),
    *(
        _case(t.name, op, _random.bools(2, 3), _random.of(t, 2, 3), _random.of(t, 2, 3))
        for op in (SELECT, SELECT_V2)
        for t in _TYPES
    ),
    _case("rows", SELECT, np.array([True, False, True]), _random.normal(3, 4), _random.normal(3, 4)),
    _case("rank 0", SELECT, np.array(True), _random.normal(), _random.normal()),
    _case("condition broadcasts", SELECT_V2, _random.bools(3, 1), _random.normal(3, 4), _random.normal(3, 4)),
    _case("values broadcast", SELECT_V2, _random.bools(3, 4), _random.normal(4), _random.normal(3, 1)),
    _case("scalar values", SELECT_V2, _random.bools(3, 4), _random.normal(), _random.normal()),
    _case("scalar condition", SELECT_V2, np.array(False), _random.normal(2, 3), _random.normal(2, 3)),
    _case("more axes", SELECT_V2, _random.bools(2, 1, 1, 2), _random.normal(3, 2), _random.normal(4, 1, 1)),
    _case("empty", SELECT_V2, _random.bools(0, 2), _random.normal(0, 2), _random.normal(0, 2)),
    _where("matrix", _random.bools(3, 4)),
    _where("rank 4", _random.bools(2, 1, 2, 3)),
    _where("vector", np.array([False, True, True])),
    _where("numbers", EDGES),
    _where("int32", _random.integers(3, 3, low=0, high=2)),
)
