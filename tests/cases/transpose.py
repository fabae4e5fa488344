"""Cases of TRANSPOSE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.transpose import TRANSPOSE

_random = Random(19)


def _case(name: str, x: Array, *perm: int) -> Case:
    return Case(name, TRANSPOSE, NoOptions(), [x, i32(*perm)], frozenset({1}), device=unfit(x))


CASES = (
    _case("matrix", _random.normal(5, 7), 1, 0),
    _case("matrix, many tiles", _random.normal(67, 35), 1, 0),
    _case("NHWC to NCHW", _random.normal(2, 3, 4, 5), 0, 3, 1, 2),
    _case("NCHW to NHWC", _random.normal(2, 3, 4, 5), 0, 2, 3, 1),
    _case("batches", _random.normal(3, 4, 5), 0, 2, 1),
    _case("first two", _random.normal(3, 4, 5), 1, 0, 2),
    _case("reversed", _random.normal(2, 3, 4, 5), 3, 2, 1, 0),
    _case("same", _random.normal(2, 3, 4), 0, 1, 2),
    _case("negative axes", _random.normal(2, 3, 4), -1, 0, -2),
    _case("ones", _random.normal(1, 3, 1, 4), 2, 3, 0, 1),
    _case("rank 5", _random.normal(2, 3, 2, 3, 2), 4, 1, 3, 0, 2),
    _case("rank 6", _random.normal(2, 3, 2, 1, 3, 2), 5, 0, 4, 1, 3, 2),
    _case("vector", _random.normal(5), 0),
    _case("int32", _random.integers(3, 4), 1, 0),
    _case("bool", _random.bools(3, 4), 1, 0),
    _case("empty", _random.normal(0, 4), 1, 0),
    _case("planes to pixels", _random.normal(1, 3, 31, 37), 0, 2, 3, 1),
    _case("planes to pixels, batches", _random.normal(3, 2, 5, 7), 0, 2, 3, 1),
    _case("planes to pixels, bytes", _random.integers(2, 5, 9, 11).astype(np.int8), 0, 2, 3, 1),
    _case("planes to pixels, many around", _random.normal(2, 4, 3, 3, 6), 2, 0, 3, 4, 1),
    _case("planes to pixels, nine", _random.normal(7, 9), 1, 0),
    _case("pixels to planes", _random.normal(1, 31, 37, 3), 0, 3, 1, 2),
    _case("pixels to planes, batches", _random.normal(3, 5, 7, 2), 0, 3, 1, 2),
    _case("pixels to planes, int64", _random.integers(2, 9, 11, 4).astype(np.int64), 0, 3, 1, 2),
    _case("pixels to planes, bool", _random.bools(2, 9, 11, 7), 0, 3, 1, 2),
    _case("pixels to planes, many around", _random.normal(2, 3, 4, 9, 5), 1, 0, 4, 2, 3),
)
