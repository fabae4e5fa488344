"""Cases of ONE_HOT."""

from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.one_hot import ONE_HOT, OneHotOptions

_random = Random(22)


def _case(
    name: str, indices: Array, depth: int, on: float, off: float, axis: int = -1, dtype: Any = np.float32
) -> Case:
    inputs = [indices, scalar(depth), scalar(on, dtype), scalar(off, dtype)]
    return Case(name, ONE_HOT, OneHotOptions(axis), inputs, frozenset({1, 2, 3}))


CASES = (
    _case("vector", i32(0, 2, 1), 3, 1.0, 0.0),
    _case("values", i32(0, 2, 1), 4, 5.0, -2.0),
    _case("out of range", i32(-1, 9, 1), 3, 1.0, 0.0),
    _case("matrix", _random.integers(2, 3, low=0, high=5), 5, 1.0, 0.0),
    _case("axis 0", i32(0, 2, 1), 4, 1.0, 0.0, axis=0),
    _case("axis 1 of a matrix", _random.integers(2, 3, low=0, high=4), 4, 1.0, 0.0, axis=1),
    _case("rank 0", np.array(2, np.int32), 4, 1.0, 0.0),
    _case("int32", i32(0, 2), 3, 1, 0, dtype=np.int32),
    _case("bool", i32(0, 2), 3, True, False, dtype=np.bool_),
    _case("int64 indices", np.array([0, 2]), 3, 1.0, 0.0),
)
