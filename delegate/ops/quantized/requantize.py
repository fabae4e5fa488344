"""QUANTIZE and DEQUANTIZE of types too wide for a lookup table, and the last step of quantized sums."""

from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Launch, Operand, Refusal, Scratch, Step, Target
from litecl.delegate.kit.claims import BYTES, C_TYPES, QUANTIZED, Specs, given, typed
from litecl.delegate.kit.schedule import elements
from litecl.delegate.ops.quantized import table
from litecl.delegate.quantized.integers import Bounds, per_tensor
from litecl.delegate.target import own
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.arithmetic.fixed_point import Multiplier
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.kit.types import integer_limits
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.schema import TensorType

_FLOAT = TensorType.FLOAT32
_INTEGERS = (*QUANTIZED, TensorType.INT32)


def requantized(
    x: Operand | Scratch,
    type_: TensorType,
    y: Operand,
    factor: Multiplier,
    x_zero: int,
    bounds: Bounds,
    target: Target,
) -> Launch:
    """Compute ``(x - x_zero) * factor + bounds.zero``, clamped, for as many elements of ``type_`` as ``y`` has."""
    share = elements("requantize", y.spec.size, target)
    shifts = max(int(factor.shift), 0), max(-int(factor.shift), 0)
    numbers = (int(factor.value), *shifts, x_zero, bounds.zero, bounds.low, bounds.high)
    args: tuple[Arg, ...] = (x, y, *share.args, *(np.int32(number) for number in numbers))
    return share.launch("requantize_each", args, _defines(type_, y.spec.type), y.spec.size)


def scaled(sums: Operand | Scratch, type_: TensorType, x: TensorSpec, y: Operand, count: int, target: Target) -> Launch:
    """Rescale sums of ``count`` elements of ``x`` to the scale of ``y`` in float32 (QuantizedMeanOrSumExtraArgs)."""
    share = elements("requantize", y.spec.size, target)
    scale = np.float32(fixed_point.scale_of(x)) / np.float32(fixed_point.scale_of(y.spec))
    offset = np.float32(-fixed_point.zero_point_of(x)) * scale * np.float32(count)
    bounds = (np.int32(number) for number in astuple(_range(y.spec)))
    args: tuple[Arg, ...] = (sums, y, *share.args, scale, offset, *bounds)
    return share.launch("scale_each", args, _defines(type_, y.spec.type), y.spec.size)


def _defines(from_: TensorType, to: TensorType) -> dict[str, str | int | float]:
    flags: dict[str, str | int | float] = {"REAL_X": 1} if from_ == _FLOAT else {}
    flags |= {"REAL_Y": 1} if to == _FLOAT else {}
    return flags | {"X": C_TYPES[from_], "T": C_TYPES[to]}


def _range(y: TensorSpec) -> Bounds:
    return Bounds(fixed_point.zero_point_of(y), *integer_limits(y.type))


def _claim_quantize(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, (y,) = given(inputs, 0), outputs
    if refusal := typed((x,), (_FLOAT, *_INTEGERS), quantized=True) or per_tensor(y):
        return refusal
    if x.type == _FLOAT:
        return typed((y,), QUANTIZED, quantized=True)
    return typed((y,), _INTEGERS, quantized=True) or per_tensor(x)


def _lower_quantize(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    bounds = _range(y.spec)
    if x.spec.type == _FLOAT:
        return [_quantized(x, y, bounds, call.target)]
    scale, x_scale = (fixed_point.scale_of(operand.spec) for operand in (y, x))
    x_zero = fixed_point.zero_point_of(x.spec)
    if scale == x_scale:
        of_bytes = x.spec.type in BYTES and y.spec.type in BYTES
        lower = own(call.target, shifted_bytes) if of_bytes else shifted
        return [lower(x, y, replace(bounds, zero=bounds.zero - x_zero), call.target)]
    if x.spec.type in BYTES:
        return [table.applied(QUANTIZE, call)]
    factor = fixed_point.quantize_multiplier(x_scale / scale)
    return [requantized(x, x.spec.type, y, factor, x_zero, bounds, call.target)]


def _quantized(x: Operand, y: Operand, bounds: Bounds, target: Target) -> Launch:
    share = elements("requantize", y.spec.size, target)
    scale = np.float32(fixed_point.scale_of(y.spec))
    args: tuple[Arg, ...] = (x, y, *share.args, scale, *(np.int32(number) for number in astuple(bounds)))
    return share.launch("quantize", args, _defines(_FLOAT, y.spec.type), y.spec.size)


def shifted(x: Operand, y: Operand, bounds: Bounds, target: Target) -> Launch:
    """Return the launch that moves the zero point of any integers."""
    share = elements("requantize", y.spec.size, target)
    args: tuple[Arg, ...] = (x, y, *share.args, *(np.int32(number) for number in astuple(bounds)))
    return share.launch("shift_each", args, _defines(x.spec.type, y.spec.type), y.spec.size)


def shifted_bytes(x: Operand, y: Operand, bounds: Bounds, target: Target) -> Launch:
    """Return the launch that moves the zero point of bytes, without wider integers."""
    share = elements("requantize", y.spec.size, target)
    least, most = integer_limits(x.spec.type)
    reach = most - least
    up = min(max(least + bounds.zero - bounds.low, -reach), reach)  # of elements minus their type's least
    numbers = (-least, max(0, -up), min(reach, reach - up), up + bounds.low)
    args: tuple[Arg, ...] = (x, y, *share.args, *(np.int32(number) for number in numbers))
    return share.launch("shift_bytes", args, _defines(x.spec.type, y.spec.type), y.spec.size)


def _claim_dequantize(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x = given(inputs, 0)
    return typed((x,), _INTEGERS, quantized=True) or typed(outputs, (_FLOAT,)) or per_tensor(x)


def _lower_dequantize(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    scale = np.float32(fixed_point.scale_of(x.spec))
    zero = np.int32(fixed_point.zero_point_of(x.spec))
    share = elements("requantize", y.spec.size, call.target)
    args: tuple[Arg, ...] = (x, y, *share.args, scale, zero)
    return [share.launch("dequantize", args, _defines(x.spec.type, _FLOAT), y.spec.size)]


CL_OPS = (
    ClOp(QUANTIZE, claim=_claim_quantize, lower=_lower_quantize),
    ClOp(DEQUANTIZE, claim=_claim_dequantize, lower=_lower_dequantize),
)
