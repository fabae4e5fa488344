"""Cases of SLICE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.schema import TensorType

_random = Random(15)


def _case(name: str, x: Array, begin: list[int], size: list[int]) -> Case:
    return Case(name, SLICE, NoOptions(), [x, i32(*begin), i32(*size)], frozenset({1, 2}), device=unfit(x))


CASES = (
    _case("box", _random.normal(4, 5, 6), [1, 0, 2], [2, 5, 3]),
    _case("to the end", _random.normal(4, 5, 6), [1, 2, 0], [-1, -1, -1]),
    _case("image", _random.normal(1, 4, 5, 3), [0, 1, 1, 0], [1, 2, 3, 2]),
    _case("vector", _random.normal(9), [3], [4]),
    _case("whole", _random.normal(2, 3), [0, 0], [2, 3]),
    _case("rank 5", _random.normal(2, 3, 2, 3, 2), [0, 1, 0, 1, 0], [2, 2, 1, 2, 1]),
    *(
        _case(t.name, _random.of(t, 3, 4), [1, 1], [2, -1])
        for t in (TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.STRING)
    ),
    Case("computed begin", SLICE, NoOptions(), [_random.normal(5, 4), i32(2, 0), i32(1, 4)], frozenset({2})),
    Case(
        "int64 operands",
        SLICE,
        NoOptions(),
        [_random.normal(5, 4), np.array([2, 0]), np.array([1, 4])],
        frozenset({1, 2}),
    ),
)
