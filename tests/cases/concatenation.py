"""Cases of CONCATENATION."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.schema import TensorType

_random = Random(11)


def _case(name: str, axis: int, *parts: Array) -> Case:
    return Case(name, CONCATENATION, ConcatenationOptions(axis), parts, device=unfit(*parts))


CASES = (
    _case("last", -1, _random.normal(2, 3, 4), _random.normal(2, 3, 5)),
    _case("first", 0, _random.normal(2, 3), _random.normal(1, 3), _random.normal(4, 3)),
    _case("channels", 3, _random.normal(1, 4, 4, 3), _random.normal(1, 4, 4, 8)),
    _case("middle", -2, _random.normal(2, 1, 5), _random.normal(2, 3, 5)),
    _case("six", 0, *(_random.normal(1, 2) for _ in range(6))),
    _case("one", 1, _random.normal(2, 3)),
    _case("an empty part", 1, _random.normal(2, 0), _random.normal(2, 3)),
    *(
        _case(t.name, 1, _random.of(t, 2, 3), _random.of(t, 2, 1))
        for t in (TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.UINT8, TensorType.INT16)
    ),
    _case("float16", 0, np.ones(3, np.float16), np.zeros(2, np.float16)),
)
