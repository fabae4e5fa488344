"""Cases of TILE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.schema import TensorType

_random = Random(23)


def _case(name: str, x: Array, *multiples: int, device: str | None = None) -> Case:
    return Case(name, TILE, NoOptions(), [x, i32(*multiples)], frozenset({1}), device=device or unfit(x))


CASES = (
    _case("vector", _random.normal(3), 4),
    _case("rows", _random.normal(2, 3), 3, 1),
    _case("every axis", _random.normal(2, 1, 3), 2, 3, 2),
    _case("nothing", _random.normal(2, 3), 1, 1),
    _case("rank 4", _random.normal(1, 2, 1, 3), 2, 1, 4, 1),
    _case("zero times", _random.normal(2, 3), 0, 1, device="no elements"),
    *(
        _case(t.name, _random.of(t, 2, 3), 2, 2)
        for t in (TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.STRING)
    ),
    Case("int64 multiples", TILE, NoOptions(), [_random.normal(2, 3), np.array([1, 2])], frozenset({1})),
)
