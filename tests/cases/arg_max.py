"""Cases of ARG_MAX and ARG_MIN."""

from dataclasses import replace

import numpy as np

from litecl.cases import Case
from litecl.cases.integers import affine
from litecl.cases.values import Random, scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN
from litecl.interpreter.schema import TensorType

_random = Random(9)


def _case(name: str, op: Op, x: Array, axis: int, type_: TensorType = TensorType.INT32) -> Case:
    return Case(name, op, op.options(type_), [x, scalar(axis)], frozenset({1}))


def _quantized(name: str, op: Op, x: Array) -> Case:
    return replace(_case(f"{name} with a scale", op, x, 1), quantization={0: affine(0.1, 3)})


CASES = tuple(
    case
    for op in (ARG_MAX, ARG_MIN)
    for case in (
        _case("last", op, _random.normal(3, 17), -1),
        _case("first", op, _random.normal(5, 2, 3), 0),
        _case("middle", op, _random.normal(2, 5, 3), 1),
        _case("vector", op, _random.normal(1001), 0),
        _case("int64 positions", op, _random.normal(3, 4), 1, TensorType.INT64),
        _case("equal elements", op, np.array([[1, 3, 3, 1], [0, 0, 0, 0]], np.float32), 1),
        _case("equal elements, long", op, np.tile(np.array([[2, 5, 5, 2, 1]], np.float32), (3, 9)), 1),
        _case("uint8, longer than vectors", op, _random.integers(3, 75, low=0, dtype=np.uint8), 1),
        _case("infinite", op, np.full((2, 20), -np.inf, np.float32), 1),
        _case("int32", op, _random.integers(3, 9), 1),
        _case("uint8", op, _random.integers(3, 9, low=0, dtype=np.uint8), 1),
        _quantized("int8", op, _random.integers(3, 9, low=-128, high=128, dtype=np.int8)),
        _quantized("uint8", op, _random.integers(3, 9, low=0, high=256, dtype=np.uint8)),
    )
)
