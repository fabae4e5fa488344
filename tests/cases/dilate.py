"""Cases of DILATE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.dilate import DILATE
from litecl.interpreter.schema import TensorType

_random = Random(61)


def _case(name: str, x: Array, dilations: tuple[int, ...], value: float) -> Case:
    inputs = [x, i32(*dilations), np.array(value, x.dtype)]
    return Case(name, DILATE, NoOptions(), inputs, frozenset({1, 2}), device=unfit(x))


CASES = (
    _case("image", _random.normal(2, 3, 4, 3), (1, 2, 3, 1), 0.0),
    _case("every axis", _random.normal(2, 3, 2), (3, 2, 4), -1.5),
    _case("vector", _random.normal(9), (2,), 7.25),
    _case("nothing", _random.normal(2, 3), (1, 1), 5.0),
    _case("one element", _random.normal(1, 1), (4, 5), 5.0),
    _case("rank 6", _random.normal(2, 1, 2, 2, 1, 3), (1, 2, 1, 2, 3, 2), 0.5),
    _case("infinity between", _random.normal(3, 2), (2, 2), np.inf),
    *(
        _case(t.name, _random.of(t, 2, 3), (2, 3), 1)
        for t in (TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64, TensorType.UINT8)
    ),
)
