"""Cases of PAD, PADV2 and MIRROR_PAD."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2, MirrorPadOptions
from litecl.interpreter.schema import MirrorPadMode, TensorType

_random = Random(12)


def _pad(name: str, x: Array, borders: list[list[int]]) -> Case:
    return Case(name, PAD, NoOptions(), [x, i32(borders)], frozenset({1}), device=unfit(x))


def _padv2(name: str, x: Array, borders: list[list[int]], value: float) -> Case:
    inputs = [x, i32(borders), np.array(value, x.dtype)]
    return Case(name, PADV2, NoOptions(), inputs, frozenset({1, 2}), device=unfit(x))


def _mirror(name: str, x: Array, borders: list[list[int]], mode: MirrorPadMode) -> Case:
    return Case(name, MIRROR_PAD, MirrorPadOptions(mode), [x, i32(borders)], frozenset({1}), device=unfit(x))


CASES = (
    _pad("image", _random.normal(1, 4, 5, 3), [[0, 0], [1, 2], [3, 0], [0, 0]]),
    _pad("every axis", _random.normal(2, 3, 2), [[1, 0], [0, 2], [1, 1]]),
    _pad("vector", _random.normal(5), [[2, 3]]),
    _pad("nothing", _random.normal(2, 3), [[0, 0], [0, 0]]),
    _pad("rank 5", _random.normal(1, 2, 2, 2, 2), [[0, 1], [1, 0], [0, 0], [1, 1], [0, 2]]),
    _pad("empty", _random.normal(0, 2), [[1, 1], [0, 1]]),
    *(
        Case(
            f"{dtype.__name__} borders",
            op,
            NoOptions(),
            [_random.normal(2, 3), np.array([[1, 0], [0, 1]], dtype), *value],
            frozenset({1}),
        )
        for dtype in (np.int16, np.int8, np.bool_)
        for op, value in ((PAD, []), (PADV2, [_random.normal()]))
    ),
    Case("int64 borders", PAD, NoOptions(), [_random.normal(2, 3), np.array([[1, 0], [0, 2]])], frozenset({1})),
    *(
        _pad(t.name, _random.of(t, 2, 3), [[1, 0], [0, 2]])
        for t in (TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.UINT8)
    ),
    _padv2("image", _random.normal(1, 4, 5, 3), [[0, 0], [1, 2], [3, 0], [0, 0]], -1.5),
    _padv2("lowest", _random.normal(3, 3), [[1, 1], [1, 1]], -3.4e38),
    _padv2("int32", _random.integers(3, 3), [[1, 1], [0, 1]], 7),
    *(
        case
        for mode in MirrorPadMode
        for case in (
            _mirror(f"{mode.name} image", _random.normal(1, 4, 5, 3), [[0, 0], [1, 2], [3, 0], [0, 0]], mode),
            _mirror(f"{mode.name} widest", _random.normal(3, 4), [[2, 2], [3, 3]], mode),
            _mirror(f"{mode.name} vector", _random.normal(6), [[2, 1]], mode),
            _mirror(f"{mode.name} int32", _random.integers(2, 3), [[1, 0], [0, 2]], mode),
        )
    ),
    _mirror("SYMMETRIC whole", _random.normal(2, 3), [[2, 2], [3, 3]], MirrorPadMode.SYMMETRIC),
)
