"""Where litecl and LiteRT's reference kernels compute something else: every row of docs/differences.md, on all devices.

LiteRT's side is tested too, so that a row that no longer holds fails. Loops are in test_swapped_updates.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError, UnsupportedOp
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary, pool_2d
from litecl.interpreter.ops.add_n import ADD_N
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.quantize import QUANTIZE
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType
from support import compare, devices, oracle

INF, NAN = np.inf, np.nan
MOST = float(np.finfo(np.float32).max)
NONE = NoOptions()
DEVICES = [None, *devices.with_native()]
on_all = pytest.mark.parametrize("device", DEVICES, ids=devices.named)


@dataclass(frozen=True, eq=False)
class Difference:
    """A case with what litecl makes of it, and what LiteRT's reference kernels do."""

    case: Case
    ours: Sequence[Array]
    theirs: Sequence[Array]


def _f(*values: float) -> Array:
    return np.float32(values)


X, Y = _f(INF, -INF, NAN, 1), _f(2, 3, 4, 5)
IMAGE = _f(INF, 1, 2, 3, -INF, -INF, NAN, 1).reshape(1, 2, 4, 1)
ONE = np.ones((1, 1, 1, 1), np.float32)
WEIGHTS = frozenset({1, 2})


def _clamped(case: Case, *ours: float) -> Difference:
    """LiteRT clamps to the largest numbers where there is no activation."""
    kept = _f(*ours)
    return Difference(case, [kept], [np.clip(kept, np.float32(-MOST), np.float32(MOST))])


def _arithmetic(op: Any, *ours: float) -> Difference:
    return _clamped(Case(op.name, op, op.options(), [X, Y]), *ours)


def _pool(op: Any, *ours: float) -> Difference:
    options = op.options(padding=Padding.VALID, stride_w=2, stride_h=1, filter_width=2, filter_height=1)
    return _clamped(Case(op.name, op, options, [IMAGE]), *ours)


def _conv(op: Any, options: Any) -> Difference:
    case = Case(op.name, op, options, [IMAGE, ONE, _f(0)], WEIGHTS)
    return _clamped(case, INF, 1, 2, 3, -INF, -INF, NAN, 1)


def _dense() -> Difference:
    inputs = [IMAGE.reshape(8, 1), ONE.reshape(1, 1), _f(0)]
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
    operands = [np.int32([values]) for values in (1, end, 1)]
    case = Case("STRIDED_SLICE", STRIDED_SLICE, options, [_f(1, 2, 3, 4), *operands], frozenset({1, 2, 3}))
    return Difference(case, [ours], [theirs])


def _quantized(values: Array, ours: Sequence[int], theirs: Sequence[int]) -> Difference:
    spec = TensorSpec(TensorType.INT8, None, quantization=Quantization(_f(0.5), np.int64([0])))
    case = Case("QUANTIZE", QUANTIZE, NONE, [values], outputs=(spec,))
    return Difference(case, [np.int8(ours)], [np.int8(theirs)])


def _top() -> Difference:
    case = Case("TOPK_V2", TOPK_V2, NONE, [_f(3, NAN, 5, 1, NAN, 4), np.int32(6)], frozenset({1}))
    ours = [_f(NAN, NAN, 5, 4, 3, 1), np.int32([1, 4, 2, 5, 0, 3])]
    return Difference(case, ours, [_f(5, 4, 3, 1, NAN, NAN), np.int32([2, 5, 0, 3, 1, 4])])


def _summed() -> Difference:
    scales = {0: Quantization(_f(0.5), np.int64([0]))}
    spec = TensorSpec(TensorType.INT8, None, quantization=Quantization(_f(1.0), np.int64([0])))
    inputs = [np.int8([100, 100, -50]), np.int32([0])]
    case = Case("SUM", SUM, ReducerOptions(), inputs, frozenset({1}), quantization=scales, outputs=(spec,))
    return Difference(case, [np.int8(75)], [np.int8(-53)])


def _unsigned() -> Difference:
    """-1 wraps to the largest integer, which is more than the upper bound."""
    options = binary.MulOptions(ActivationFunctionType.RELU_N1_TO_1)
    case = Case("UINT32", binary.MUL, options, [np.uint32([0, 1, 5]), np.uint32([1, 1, 2])])
    return Difference(case, [np.uint32([0, 1, 1])], [np.uint32([1, 1, 1])])


OTHERS = (
    _unsigned(),
    _quantized(_f(INF, -INF, NAN, 3e38, -3e38, 5), [127, -128, 127, 127, -128, 10], [-128] * 5 + [10]),
    _top(),
    _summed(),
    _sliced("new axis past the index", StridedSliceOptions(new_axis_mask=2), 4, _f(2, 3, 4), _f(2)),
)


@on_all
@pytest.mark.parametrize("row", [*INFINITIES, *OTHERS], ids=lambda row: row.case.name)
def test_litecl(row: Difference, device: Any) -> None:
    for got, wanted in zip(_outputs(row.case, device), row.ours, strict=True):
        compare.assert_close(got.reshape(wanted.shape), wanted, 1e-6 if wanted.dtype.kind == "f" else 0.0)


@pytest.mark.parametrize("row", [*INFINITIES, *OTHERS], ids=lambda row: row.case.name)
def test_litert(row: Difference) -> None:
    for got, wanted in zip(oracle.run(write(row.case.model()), row.case.feeds), row.theirs, strict=True):
        compare.assert_close(got.reshape(-1)[: wanted.size].reshape(wanted.shape), wanted, 1e-6)


@pytest.mark.parametrize("row", INFINITIES[:4], ids=lambda row: row.case.name)
def test_litert_by_default_keeps_infinities_too(row: Difference) -> None:
    (got,) = oracle.run(write(row.case.model()), row.case.feeds, oracle.RESOLVERS["default"])
    compare.assert_close(got, row.ours[0], 1e-6)


SMALL = _f(0.5, -0.25, 1.5, -2, 0.125, 3, -1, 0.75)
FINITE = (
    *(Case(op.name, op, op.options(), [SMALL, _f(2)]) for op in (binary.ADD, binary.SUB, binary.MUL, binary.DIV)),
    *(replace(row.case, inputs=[SMALL.reshape(IMAGE.shape), *row.case.inputs[1:]]) for row in INFINITIES[5:8]),
)
ACTIVATIONS = [(ActivationFunctionType.TANH, np.tanh), (ActivationFunctionType.SIGN_BIT, np.signbit)]


def _with(case: Case, function: ActivationFunctionType) -> Case:
    return replace(case, options=replace(case.options, fused_activation_function=function))


@on_all
@pytest.mark.parametrize("function, of_numpy", ACTIVATIONS, ids=["TANH", "SIGN_BIT"])
@pytest.mark.parametrize("case", FINITE, ids=lambda case: case.op.name)
def test_activations_that_litert_leaves_out(case: Case, function: Any, of_numpy: Any, device: Any) -> None:
    (plain,) = oracle.run(write(case.model()), case.feeds)
    activated = _with(case, function)
    (theirs,) = oracle.run(write(activated.model()), case.feeds)
    np.testing.assert_array_equal(theirs, plain)
    (ours,) = _outputs(activated, device)
    compare.assert_close(ours, np.asarray(of_numpy(plain), np.float32), compare.DEVICE["float32"])


def _integers(op: Any) -> list[Case]:
    scale = Quantization(_f(0.5), np.int64([0]))
    plain = [np.int32([1, 2, 3]), np.int32([4, -5, 6])]
    quantized = Case(
        "quantized",
        op,
        op.options(),
        [value.astype(np.int8) for value in plain],
        quantization={0: scale, 1: scale},
        outputs=(TensorSpec(TensorType.INT8, None, quantization=scale),),
    )
    return [Case("INT32", op, op.options(), plain), quantized]


@on_all
@pytest.mark.parametrize("function", [function for function, _ in ACTIVATIONS], ids=lambda function: function.name)
@pytest.mark.parametrize("case", [case for op in (binary.ADD, binary.MUL) for case in _integers(op)], ids=repr)
def test_activations_that_integers_do_not_have(case: Case, function: Any, device: Any) -> None:
    with pytest.raises(UnsupportedOp, match=f"{case.op.name}: no kernel for fused {function.name} of (int32|INT8)"):
        _outputs(_with(case, function), device)


def _outputs(case: Case, device: Any) -> list[Array]:
    delegates = [] if device is None else [CLDelegate(device, num_threads=1, strict=True)]
    interpreter = Interpreter(model_content=write(case.model()), delegates=delegates)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


@on_all
def test_a_constant_of_zeros_is_refused_by_floor_div_on_devices_too(device: Any) -> None:
    case = Case("FLOOR_DIV", binary.FLOOR_DIV, NONE, [_f(1, 2), _f(1, 0)], frozenset({1}))
    with pytest.raises(ModelError, match="FLOOR_DIV: division by 0"):
        _outputs(case, device)
