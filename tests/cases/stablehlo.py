"""Cases of the StableHLO operators that run no subgraphs."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import stablehlo as ops
from litecl.interpreter.schema import TensorType as T

_random = Random(73)
_TYPES = (T.FLOAT32, T.INT32, T.INT64, T.INT8, T.UINT8, T.INT16)


def _pad(name: str, x: Array, low: tuple[int, ...], high: tuple[int, ...], inner: tuple[int, ...]) -> Case:
    return Case(name, ops.STABLEHLO_PAD, ops.StablehloPadOptions(low, high, inner), [x, scalar(7, x.dtype)])


def _gather(name: str, x: Array, indices: Array, *options: tuple[int, ...] | int) -> Case:
    return Case(name, ops.STABLEHLO_GATHER, ops.StablehloGatherOptions(*options), [x, indices])  # type: ignore[arg-type]


_cube = _random.normal(3, 4, 2)

CASES = (
    *(
        Case(t.name, op, NoOptions(), [_random.of(t, 3, 4), _random.of(t, 3, 4)])
        for op in (ops.STABLEHLO_ADD, ops.STABLEHLO_MULTIPLY, ops.STABLEHLO_MAXIMUM, ops.STABLEHLO_MINIMUM)
        for t in (T.FLOAT32, T.INT32)
    ),
    *(
        # LiteRT has no reference kernels of these.
        Case(f"{t.name}", op, NoOptions(), [_random.of(t, 3, 4), np.abs(_random.of(t, 3, 4))], kernels="optimised")
        for op in (ops.STABLEHLO_AND, ops.STABLEHLO_SHIFT_LEFT)
        for t in (T.INT32, T.INT8, T.INT16)
    ),
    *(_pad(t.name, _random.of(t, 2, 3), (1, 0), (0, 2), (0, 1)) for t in _TYPES),
    _pad("cut", _random.normal(4, 5), (-1, -2), (-1, 1), (0, 0)),
    _pad("cut and spread", _random.normal(4, 5), (-1, -2), (2, -3), (1, 2)),
    _pad("all cut", _random.normal(3), (-5,), (1,), (0,)),
    _gather(
        "slices",
        _cube,
        np.array([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]], np.int64),
        (2, 3),
        (0,),
        (1, 0),
        2,
        (1, 2, 2),
    ),
    _gather("rows", _random.normal(5, 3), i32([[4], [0], [2], [-1]]), (1,), (0,), (0,), 1, (1, 3)),
    _gather("windows", _random.normal(5, 4), i32([[0, 1], [3, 3]]), (0, 1), (), (0, 1), 1, (2, 2)),
)
