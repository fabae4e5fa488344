"""Cases of the operators of two inputs."""

from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, SPECIAL, Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary as ops
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_random = Random(5)
_SHAPES = (
    ("same shape", (2, 3, 4, 5), (2, 3, 4, 5)),
    ("channel", (2, 3, 4, 5), (5,)),
    ("row", (2, 3, 4, 5), (4, 1)),
    ("both broadcast", (2, 1, 4, 1), (3, 1, 5)),
    ("scalar", (3, 5), ()),
    ("scalar first", (), (3, 5)),
    ("both scalars", (), ()),
    ("rank 6", (2, 1, 2, 3, 1, 2), (2, 2, 1, 3, 2, 1)),
    ("rows of 2 that repeat", (3, 35, 2), (3, 1, 2)),
    ("rows of 8 that repeat", (1, 1, 8), (2, 77, 8)),
    ("odd length", (1031,), (1031,)),
    ("empty", (2, 0, 3), (1, 3)),
)
_WITH_ACTIVATION = (ops.ADD, ops.SUB, ops.MUL, ops.DIV)
_FLOAT = (*_WITH_ACTIVATION, ops.MAXIMUM, ops.MINIMUM, ops.SQUARED_DIFFERENCE, ops.FLOOR_MOD)
_INT32 = (ops.ADD, ops.SUB, ops.MUL, ops.MAXIMUM, ops.MINIMUM, ops.SQUARED_DIFFERENCE)
_INT64 = (ops.ADD, ops.SUB, ops.MUL, ops.MAXIMUM, ops.MINIMUM)
# Rank 6 is more than LiteRT broadcasts in these.
_RANK_4 = (ops.MAXIMUM, ops.MINIMUM, ops.SQUARED_DIFFERENCE, ops.FLOOR_MOD, ops.FLOOR_DIV, ops.POW)


def _case(
    name: str,
    op: Op,
    a: Array,
    b: Array,
    options: Any = None,
    constant: bool = False,
    device: str | None = None,
) -> Case:
    constants = frozenset({1} if constant else ())
    given = op.options() if options is None else options
    return Case(name, op, given, [a, b], constants, device=device or unfit(a, b))


def _broadcasts(op: Op) -> list[Case]:
    return [
        _case(name, op, _random.normal(*a), np.asarray(_random.positive(*b)))
        for name, a, b in _SHAPES
        if not (op in _RANK_4 and name == "rank 6")
    ]


def _activations(op: Op) -> list[Case]:
    functions = (ActivationFunctionType.RELU, ActivationFunctionType.RELU6, ActivationFunctionType.RELU_N1_TO_1)
    return [
        _case(function.name, op, _random.normal(3, 4), _random.positive(4), op.options(function), constant=True)
        for function in functions
    ]


_unsafe = "an integer divisor that may be zero"
_by_zero = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan], np.float32)
_big = i32(2**31 - 1, -(2**31), 7, -7)
_divisors = _random.positive(64)
_multiples = (_divisors.astype(np.float64) * np.arange(-32, 32)).astype(np.float32)
_divisors[-1], _multiples[-1] = 3e38, -1e-30  # a quotient that is less than any float
_extremes = np.array([1, -2.5, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 3e38], np.float32)
_pairs = np.array([[a, b] for a in (7.5, -7.5, 8.0, -8.0, 0.3) for b in (2.0, -2.0, 0.7)], np.float32)
_ints = i32([[a, b] for a in (7, -7, 8, -8, 0) for b in (2, -2, 3, -3)])

_WHOLE = (0, -0.0, 1, 2, 3, 4, 5, 8, 16, -1, -2, -3)


def _power(x: Array, exponent: float) -> Case:
    name = f"{x.dtype} {x.size} elements to the power of {exponent}"
    return _case(name, ops.POW, x, np.array(exponent, x.dtype), constant=True)


CASES = (
    *(case for op in _FLOAT for case in _broadcasts(op)),
    *(case for op in _WITH_ACTIVATION for case in _activations(op)),
    *(_case("int32", op, _random.integers(2, 3, 4), _random.integers(4)) for op in _INT32),
    *(_case("int32 scalar", op, _random.integers(), _random.integers(1)) for op in _INT32),
    *(_case("int64", op, _random.integers(3, 4, dtype=np.int64), np.array(2**40, np.int64)) for op in _INT64),
    *(_case("int32 wraps", op, _big, i32(1, -1, 2**30, -(2**30))) for op in (ops.ADD, ops.SUB, ops.MUL)),
    _case("int32 RELU6", ops.ADD, _random.integers(9), i32(1), ops.AddOptions(ActivationFunctionType.RELU6)),
    _case("constant", ops.ADD, _random.normal(2, 8), _random.normal(8), constant=True),
    # LiteRT's own kernels clamp infinities to the largest number; XNNPACK's do not.
    Case("by zero", ops.DIV, ops.DivOptions(), [_by_zero, np.zeros(1, np.float32)], kernels="default"),
    _case("int32 truncates", ops.DIV, _ints[:, 0], _ints[:, 1], device=_unsafe),
    _case("int32 truncates by a constant", ops.DIV, _ints[:, 0], _ints[:, 1], constant=True),
    _case("int32 truncates, constant", ops.DIV, _ints[:, 0], _ints[:, 1], constant=True),
    _case("NaN first", ops.MAXIMUM, np.full(8, np.nan, np.float32), SPECIAL),
    _case("NaN second", ops.MAXIMUM, SPECIAL, np.full(8, np.nan, np.float32)),
    _case("NaN first", ops.MINIMUM, np.full(8, np.nan, np.float32), SPECIAL),
    _case("NaN second", ops.MINIMUM, SPECIAL, np.full(8, np.nan, np.float32)),
    _case("int8", ops.MAXIMUM, _random.of(TensorType.INT8, 9), _random.of(TensorType.INT8, 9)),
    _case("uint8", ops.MINIMUM, _random.of(TensorType.UINT8, 9), np.array([3], np.uint8)),
    _case("float", ops.POW, _random.positive(3, 4), _random.normal(4, scale=1.0)),
    _case("float channel", ops.POW, EDGES, np.array([2.0], np.float32)),
    _case("int32", ops.POW, _random.integers(3, 4), i32(0, 1, 2, 3), device="exponents"),
    *(_power(EDGES, exponent) for exponent in (*_WHOLE, 0.5, -0.5, 1.5, 17, np.inf, -np.inf, np.nan)),
    *(_power(SPECIAL, exponent) for exponent in (0, 1, 0.5, np.inf)),  # LiteRT makes the largest number of infinities
    *(_power(i32(*range(-6, 7)), exponent) for exponent in (0, 1, 2, 3, 4, 11)),
    _case("float, one exponent for all", ops.POW, _random.normal(3, 7), np.full((3, 1), 3, np.float32), constant=True),
    _case(
        "float, exponents that differ",
        ops.POW,
        _random.positive(3, 4),
        np.array([0, 1, 2, -1], np.float32),
        constant=True,
    ),
    _case(
        "float, broadcast to the exponents",
        ops.POW,
        _random.normal(1, 7),
        np.full((3, 7), 2, np.float32),
        constant=True,
    ),
    _case("signs", ops.FLOOR_DIV, _pairs[:, 0], _pairs[:, 1]),
    *(_case("extremes", op, np.repeat(_extremes, 8), np.tile(_extremes, 8)) for op in (ops.FLOOR_DIV, ops.FLOOR_MOD)),
    _case("quotients that are nearly whole", ops.FLOOR_DIV, _multiples, _divisors),
    _case("int32 signs", ops.FLOOR_DIV, _ints[:, 0], _ints[:, 1], device=_unsafe),
    _case("int32 signs of a constant", ops.FLOOR_DIV, _ints[:, 0], _ints[:, 1], constant=True),
    _case("int32 signs, constant", ops.FLOOR_DIV, _ints[:, 0], _ints[:, 1], constant=True),
    *(
        _case(dtype.__name__, op, _ints[:, 0].astype(dtype), _ints[:, 1].astype(dtype), device="type")
        for op in (ops.FLOOR_DIV, ops.FLOOR_MOD)
        for dtype in (np.int16, np.int8)
    ),
    _case("scalar", ops.FLOOR_DIV, _random.normal(2, 3), np.array(0.7, np.float32)),
    _case("signs", ops.FLOOR_MOD, _pairs[:, 0], _pairs[:, 1]),
    _case("int32 signs", ops.FLOOR_MOD, _ints[:, 0], _ints[:, 1], device=_unsafe),
    _case("int32 signs of a constant", ops.FLOOR_MOD, _ints[:, 0], _ints[:, 1], constant=True),
    _case("int32 signs, constant", ops.FLOOR_MOD, _ints[:, 0], _ints[:, 1], constant=True),
    _case("int64 signs", ops.FLOOR_MOD, _ints[:, 0].astype(np.int64), _ints[:, 1].astype(np.int64), device=_unsafe),
    _case("rank 3", ops.ATAN2, _random.normal(2, 3, 4), _random.normal(2, 3, 4)),
    _case("rank 0", ops.ATAN2, _random.normal(), _random.normal()),
    _case("quadrants", ops.ATAN2, _pairs[:, 0], _pairs[:, 1]),
    _case("axes", ops.ATAN2, np.array([0, 0, 1, -1], np.float32), np.array([1, -1, 0, 0], np.float32)),
    _case("bool", ops.LOGICAL_AND, _random.bools(3, 4), _random.bools(4)),
    _case("bool", ops.LOGICAL_OR, _random.bools(3, 4), _random.bools(3, 1)),
    _case("scalars", ops.LOGICAL_AND, np.array(True), np.array(False)),
    _case("int32", ops.BITWISE_XOR, _random.integers(3, 4), _random.integers(4)),
    _case("uint8", ops.BITWISE_XOR, _random.integers(7, low=0, dtype=np.uint8), np.array([5], np.uint8)),
    _case("int32", ops.RIGHT_SHIFT, _random.integers(3, 4, low=-1000, high=1000), i32(0, 1, 3, 31)),
    _case("past the width", ops.RIGHT_SHIFT, i32(-5, 5, -1), i32(40, 32, -1)),
    _case("uint16", ops.RIGHT_SHIFT, np.array([65535, 256], np.uint16), np.array([3, 15], np.uint16)),
)
