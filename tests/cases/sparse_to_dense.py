"""Cases of SPARSE_TO_DENSE."""

from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.sparse_to_dense import SPARSE_TO_DENSE, SparseToDenseOptions

_random = Random(35)


def _case(name: str, indices: Array, shape: list[int], values: Array, default: Any) -> Case:
    inputs = [indices, i32(*shape), values, scalar(default, values.dtype)]
    return Case(name, SPARSE_TO_DENSE, SparseToDenseOptions(), inputs, frozenset({0, 1}))


CASES = (
    _case("one element", scalar(3), [5], np.asarray(_random.normal()), 0),
    _case("vector", i32(1, 3), [5], _random.normal(2), -1.5),
    _case("one value", i32(1, 3), [5], np.asarray(_random.normal()), 0),
    _case("matrix", i32([[0, 1], [2, 3]]), [3, 4], _random.normal(2), 0.5),
    _case("rank 3", i32([[0, 1, 1], [1, 0, 0]]), [2, 2, 2], _random.normal(2), 0),
    _case("int32", i32(1, 3), [5], _random.integers(2), 7),
    _case("int64 indices", np.array([1, 3]), [5], _random.normal(2), 0),
)
