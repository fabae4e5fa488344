"""Cases in which LiteRT's reference kernels compute something else than litecl: rows of docs/differences.md.

No table of ``tables``, whose cases agree. ``tests/whole/test_differences.py`` tests both sides, and ``litecl verify
--runtime`` whether another runtime has the same faults.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary, pool_2d
from litecl.interpreter.ops.add_n import ADD_N
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.local_response_normalization import (
    LOCAL_RESPONSE_NORMALIZATION,
    LocalResponseNormalizationOptions,
)
from litecl.interpreter.ops.quantize import QUANTIZE
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType

INF, NAN = np.inf, np.nan
MOST = float(np.finfo(np.float32).max)
NONE = NoOptions()


@dataclass(frozen=True, eq=False)
class Difference:
    """A case with what litecl makes of it, and what LiteRT's reference kernels do."""

    case: Case
    ours: Sequence[Array]
    theirs: Sequence[Array]


def f32(*values: float) -> Array:
    """A vector of float32."""
    return np.array(values, np.float32)


def _ints(values: Any, dtype: Any = np.int32) -> Array:
    return np.array(values, dtype)


X, Y = f32(INF, -INF, NAN, 1), f32(2, 3, 4, 5)
IMAGE = f32(INF, 1, 2, 3, -INF, -INF, NAN, 1).reshape(1, 2, 4, 1)
ONE = np.ones((1, 1, 1, 1), np.float32)
WEIGHTS = frozenset({1, 2})


def _clamped(case: Case, *ours: float) -> Difference:
    """LiteRT clamps to the largest numbers where there is no activation."""
    kept = f32(*ours)
    return Difference(case, [kept], [np.clip(kept, np.float32(-MOST), np.float32(MOST))])


def _arithmetic(op: Any, *ours: float) -> Difference:
    return _clamped(Case(op.name, op, op.options(), [X, Y]), *ours)


def _pool(op: Any, *ours: float) -> Difference:
    options = op.options(padding=Padding.VALID, stride_w=2, stride_h=1, filter_width=2, filter_height=1)
    return _clamped(Case(op.name, op, options, [IMAGE]), *ours)


def _conv(op: Any, options: Any) -> Difference:
    case = Case(op.name, op, options, [IMAGE, ONE, f32(0)], WEIGHTS)
    return _clamped(case, INF, 1, 2, 3, -INF, -INF, NAN, 1)


def _dense() -> Difference:
    inputs = [IMAGE.reshape(8, 1), ONE.reshape(1, 1), f32(0)]
    case = Case("FULLY_CONNECTED", FULLY_CONNECTED, FullyConnectedOptions(), inputs, WEIGHTS)
    return _clamped(case, INF, 1, 2, 3, -INF, -INF, NAN, 1)


INFINITIES = (
    _arithmetic(binary.ADD, INF, -INF, NAN, 6),
    _arithmetic(binary.SUB, INF, -INF, NAN, -4),
    _arithmetic(binary.MUL, INF, -INF, NAN, 5),
    _arithmetic(binary.DIV, INF, -INF, NAN, 0.2),
    _clamped(Case("ADD_N", ADD_N, NONE, [X, Y, Y]), INF, -INF, NAN, 11),
    _pool(pool_2d.MAX_POOL_2D, INF, 3, -INF, 1),
    _conv(CONV_2D, Conv2DOptions(Padding.VALID, 1, 1)),
    _conv(DEPTHWISE_CONV_2D, DepthwiseConv2DOptions(Padding.VALID, 1, 1, 1)),
    _dense(),
)


def _sliced(name: str, options: StridedSliceOptions, end: int, ours: Array, theirs: Array) -> Difference:
    operands = [_ints([values]) for values in (1, end, 1)]
    case = Case("STRIDED_SLICE", STRIDED_SLICE, options, [f32(1, 2, 3, 4), *operands], frozenset({1, 2, 3}))
    return Difference(case, [ours], [theirs])


def _quantized(values: Array, ours: Sequence[int], theirs: Sequence[int]) -> Difference:
    spec = TensorSpec(TensorType.INT8, None, quantization=Quantization(f32(0.5), _ints([0], np.int64)))
    case = Case("QUANTIZE", QUANTIZE, NONE, [values], outputs=(spec,))
    return Difference(case, [_ints(ours, np.int8)], [_ints(theirs, np.int8)])


def _top() -> Difference:
    case = Case("TOPK_V2", TOPK_V2, NONE, [f32(3, NAN, 5, 1, NAN, 4), _ints(6)], frozenset({1}))
    ours = [f32(NAN, NAN, 5, 4, 3, 1), _ints([1, 4, 2, 5, 0, 3])]
    return Difference(case, ours, [f32(5, 4, 3, 1, NAN, NAN), _ints([2, 5, 0, 3, 1, 4])])


def _normalized() -> Difference:
    """The reference kernel's neighbourhood ends before its last channel."""
    options = LocalResponseNormalizationOptions(radius=1, bias=1.0, alpha=1.0, beta=1.0)
    case = Case("radius 1", LOCAL_RESPONSE_NORMALIZATION, options, [f32(1, 2, 3).reshape(1, 1, 1, 3)])
    ours, theirs = f32(1 / 6, 2 / 15, 3 / 14), f32(1 / 2, 2 / 6, 3 / 14)
    return Difference(case, [ours.reshape(1, 1, 1, 3)], [theirs.reshape(1, 1, 1, 3)])


def _summed() -> Difference:
    scales = {0: Quantization(f32(0.5), _ints([0], np.int64))}
    spec = TensorSpec(TensorType.INT8, None, quantization=Quantization(f32(1.0), _ints([0], np.int64)))
    inputs = [_ints([100, 100, -50], np.int8), _ints([0])]
    case = Case("SUM", SUM, ReducerOptions(), inputs, frozenset({1}), quantization=scales, outputs=(spec,))
    return Difference(case, [_ints(75, np.int8)], [_ints(-53, np.int8)])


def _subtracted() -> Difference:
    """Both operands are brought to a scale in which the result's is too small."""
    scales = {0: Quantization(f32(16), _ints([0], np.int64)), 1: Quantization(f32(1 / 16), _ints([0], np.int64))}
    spec = TensorSpec(TensorType.INT16, None, quantization=Quantization(f32(2**-11), _ints([0], np.int64)))
    operands = [_ints([20000, -20000, 0], np.int16), _ints([1, 1, 0], np.int16)]
    options = binary.SubOptions(pot_scale_int16=False)
    case = Case("INT16", binary.SUB, options, operands, quantization=scales, outputs=(spec,), version=5)
    return Difference(case, [_ints([32767, -32768, 0], np.int16)], [_ints([1, -1, 1], np.int16)])


def _beyond_int32() -> Difference:
    """Sums times a factor are rounded to int32, out of whose range a processor of x86 makes its lowest number."""
    scales = {i: Quantization(f32(1), _ints([0], np.int64)) for i in (0, 1)}
    spec = TensorSpec(TensorType.INT16, None, quantization=Quantization(f32(2**-10), _ints([0], np.int64)))
    inputs = [_ints([[30000], [30], [-30000]], np.int16), _ints([[100]], np.int8)]
    options, constants = FullyConnectedOptions(), frozenset({1})
    case = Case("INT16", FULLY_CONNECTED, options, inputs, constants, {}, scales, (spec,), version=7)
    ours, theirs = _ints([[32767], [32767], [-32768]], np.int16), _ints([[-32768], [32767], [-32768]], np.int16)
    return Difference(case, [ours], [theirs])


def _unsigned() -> Difference:
    """-1 wraps to the largest integer, which is more than the upper bound."""
    options = binary.MulOptions(ActivationFunctionType.RELU_N1_TO_1)
    case = Case("UINT32", binary.MUL, options, [_ints([0, 1, 5], np.uint32), _ints([1, 1, 2], np.uint32)])
    return Difference(case, [_ints([0, 1, 1], np.uint32)], [_ints([1, 1, 1], np.uint32)])


OTHERS = (
    _unsigned(),
    _quantized(f32(INF, -INF, NAN, 3e38, -3e38, 5), [127, -128, 127, 127, -128, 10], [-128] * 5 + [10]),
    _top(),
    _summed(),
    _subtracted(),
    _beyond_int32(),
    _normalized(),
    _sliced("new axis past the index", StridedSliceOptions(new_axis_mask=2), 4, f32(2, 3, 4), f32(2)),
)

CASES_OF_FAULTS = tuple(row.case for row in (*INFINITIES, *OTHERS))
"""The cases alone."""
