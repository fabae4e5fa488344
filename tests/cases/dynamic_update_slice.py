"""Cases of DYNAMIC_UPDATE_SLICE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE

_random = Random(33)


def _case(name: str, x: Array, update: Array, start: Array) -> Case:
    return Case(name, DYNAMIC_UPDATE_SLICE, NoOptions(), [x, update, start], device=unfit(x, update))


CASES = (
    _case("box", _random.normal(4, 5), _random.normal(2, 3), i32(1, 1)),
    _case("row", _random.normal(1, 6, 4), _random.normal(1, 1, 4), i32(0, 3, 0)),
    _case("moved inside", _random.normal(4, 5), _random.normal(2, 3), i32(3, 9)),
    _case("negative start", _random.normal(4, 5), _random.normal(2, 3), i32(-2, 1)),
    _case("whole", _random.normal(2, 3), _random.normal(2, 3), i32(0, 0)),
    _case("nothing", _random.normal(4, 5), _random.normal(0, 3), i32(1, 1)),
    _case("vector", _random.normal(5), _random.normal(2), i32(2)),
    _case("int32", _random.integers(3, 3), _random.integers(1, 2), i32(1, 0)),
    _case("bool", _random.bools(3, 3), _random.bools(1, 2), i32(1, 0)),
    _case("int64 start", _random.normal(4, 5), _random.normal(2, 3), np.array([1, 1])),
)
