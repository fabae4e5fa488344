"""Cases of PACK and UNPACK."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.pack import PACK, UNPACK, PackOptions, UnpackOptions

_random = Random(18)


def _pack(name: str, axis: int, *parts: Array) -> Case:
    return Case(name, PACK, PackOptions(len(parts), axis), parts, device=unfit(*parts))


def _unpack(name: str, axis: int, x: Array) -> Case:
    return Case(name, UNPACK, UnpackOptions(x.shape[axis], axis), [x], device=unfit(x))


CASES = (
    _pack("first", 0, _random.normal(2, 3), _random.normal(2, 3)),
    _pack("last", -1, _random.normal(2, 3), _random.normal(2, 3), _random.normal(2, 3)),
    _pack("middle", 1, _random.normal(2, 3), _random.normal(2, 3)),
    _pack("scalars", 0, *(np.asarray(_random.integers()) for _ in range(4))),
    _pack("one", 0, _random.normal(5)),
    _pack("int64", 0, _random.integers(2, dtype=np.int64), _random.integers(2, dtype=np.int64)),
    _pack("empty", 0, _random.normal(0, 2), _random.normal(0, 2)),
    _unpack("first", 0, _random.normal(3, 2, 4)),
    _unpack("last", -1, _random.normal(2, 3)),
    _unpack("middle", 1, _random.normal(2, 3, 4)),
    _unpack("to scalars", 0, _random.integers(4)),
    _unpack("bool", 0, _random.bools(2, 3)),
)
