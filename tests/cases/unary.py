"""Cases of the operators of one input."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, SPECIAL, Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import unary as ops

_random = Random(1)

_FLOAT = (
    ops.ABS,
    ops.NEG,
    ops.SIGN,
    ops.SQUARE,
    ops.SIN,
    ops.COS,
    ops.CEIL,
    ops.FLOOR,
    ops.ROUND,
    ops.EXP,
    ops.RELU,
    ops.RELU6,
    ops.RELU_0_TO_1,
    ops.RELU_N1_TO_1,
    ops.LOGISTIC,
    ops.TANH,
    ops.HARD_SWISH,
    ops.ELU,
)
_POSITIVE = (ops.SQRT, ops.RSQRT, ops.LOG)
# LiteRT has no reference kernels for these.
_OPTIMISED = (ops.CEIL, ops.ROUND, ops.ELU)
# sin, cos and e to the power of 80 leave no common scale; HARD_SWISH and ROUND of infinities are LiteRT's own business.
_FINITE = (ops.SIN, ops.COS, ops.HARD_SWISH, ops.CEIL, ops.ROUND)


def _case(name: str, op: Op, x: Array, device: str | None = None) -> Case:
    kernels = "optimised" if op in _OPTIMISED else "reference"
    return Case(name, op, NoOptions(), [x], device=device or unfit(x), kernels=kernels)


def _float(op: Op) -> tuple[Case, ...]:
    special = () if op in _FINITE else (_case("infinities and NaN", op, SPECIAL),)
    return (
        _case("rank 4", op, _random.normal(2, 3, 4, 5)),
        _case("edges", op, EDGES),
        _case("rank 0", op, np.array(-1.25, np.float32)),
        _case("rank 6", op, _random.normal(2, 1, 2, 1, 3, 2)),
        _case("odd length", op, _random.normal(1031)),
        _case("empty", op, _random.normal(2, 0, 3)),
        *special,
    )


def _waves(op: Op) -> Case:
    """Of a vector, PoCL computes small elements otherwise where another one is large."""
    x = np.logspace(-40, 0, 256).astype(np.float32) * np.resize([1, -1], 256)
    x[::16] = 1e8
    return _case("small beside large", op, x.astype(np.float32))


def _positive(op: Op) -> tuple[Case, ...]:
    return (
        _case("rank 4", op, _random.positive(2, 3, 4, 5)),
        _case("rank 0", op, np.array(2.25, np.float32)),
        _case("zero, negative, infinite", op, np.array([0.0, -1.0, np.inf, 1.0, np.nan], np.float32)),
        _case("empty", op, _random.positive(0)),
    )


CASES = (
    *(case for op in _FLOAT for case in _float(op)),
    *(case for op in _POSITIVE for case in _positive(op)),
    _waves(ops.SIN),
    _waves(ops.COS),
    _case("int32", ops.ABS, i32(0, -1, 5, -(2**31) + 1)),
    _case("int16", ops.ABS, np.array([0, -1, 5, -32767], np.int16), device="type"),
    _case("int32", ops.SIGN, i32(0, -7, 5)),
    _case("float64", ops.SIGN, np.array([0.0, -7.5, 1e-300])),
    _case("int32", ops.NEG, i32(0, -7, 5, -(2**31))),
    _case("int64", ops.NEG, np.array([0, -7, 2**40], np.int64)),
    _case("bool", ops.LOGICAL_NOT, np.array([[True, False], [False, True]])),
    _case("rank 0", ops.LOGICAL_NOT, np.array(True)),
)
