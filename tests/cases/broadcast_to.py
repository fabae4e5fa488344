"""Cases of BROADCAST_TO and BROADCAST_ARGS."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.broadcast_to import BROADCAST_ARGS, BROADCAST_TO

_random = Random(24)


def _to(name: str, x: Array, *shape: int, version: int = 2) -> Case:
    inputs = [x, i32(*shape)]
    return Case(name, BROADCAST_TO, NoOptions(), inputs, frozenset({1}), version=version, device=unfit(x))


def _args(name: str, a: Array, b: Array) -> Case:
    return Case(name, BROADCAST_ARGS, NoOptions(), [a, b], device=unfit(a, b))


CASES = (
    _to("rows", _random.normal(1, 3), 4, 3),
    _to("columns", _random.normal(3, 1), 3, 4),
    _to("more axes", _random.normal(3), 2, 2, 3),
    _to("both", _random.normal(2, 1, 3), 2, 4, 3),
    _to("rank 0", np.asarray(_random.normal()), 2, 3),
    _to("same", _random.normal(2, 3), 2, 3),
    _to("int32", _random.integers(1, 3), 2, 3),
    _to("bool", _random.bools(3, 1), 3, 2),
    _to("version 4", _random.normal(2, 1, 3), 2, 4, 3, version=4),
    _to("version 4, float16", _random.normal(1, 3).astype(np.float16), 2, 3, version=4),
    _args("same", i32(2, 3), i32(2, 3)),
    _args("longer second", i32(3), i32(2, 1)),
    _args("ones", i32(2, 1, 4), i32(3, 1)),
    _args("scalar", np.zeros(0, np.int32), i32(2, 3)),
    _args("int64", np.array([2, 1]), np.array([1, 5])),
)
