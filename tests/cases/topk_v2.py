"""Cases of TOPK_V2."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2

_random = Random(28)


def _case(name: str, x: Array, k: int) -> Case:
    return Case(name, TOPK_V2, NoOptions(), [x, scalar(k)], frozenset({1}))


CASES = (
    _case("vector", _random.normal(9), 3),
    _case("matrix", _random.normal(4, 17), 5),
    _case("rank 3", _random.normal(2, 3, 6), 2),
    _case("all", _random.normal(2, 5), 5),
    _case("equal elements", np.array([[1, 3, 3, 1, 3], [0, 0, 0, 0, 0]], np.float32), 4),
    _case("int32", _random.integers(3, 7), 3),
    _case("int64", _random.integers(3, 7, dtype=np.int64), 3),
    _case("uint8", _random.integers(9, low=0, dtype=np.uint8), 4),
    _case("extremes", np.array([-(2**31), 2**31 - 1, 0, -(2**31)], np.int32), 4),
)
