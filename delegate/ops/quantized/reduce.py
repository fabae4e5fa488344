"""SUM and MEAN of quantized tensors: sums of the integers, then one factor for the scales and the count."""

import math
from collections.abc import Sequence
from typing import Any

from litecl.delegate.cl_op import Call, ClOp, Operand, Refusal, Scratch, Step
from litecl.delegate.kit.claims import QUANTIZED, Specs, constant, given, integers, typed
from litecl.delegate.ops.quantized.requantize import requantized, scaled
from litecl.delegate.ops.reduce import SUMS, reduced
from litecl.delegate.quantized.integers import bounds_of, per_tensor, words, zero_point
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.reduce import MEAN, SUM, mean_factor
from litecl.interpreter.schema import TensorType

_MOST = {1: 1 << 23, 2: 1 << 16}  # elements whose sum fits an int, by the size of an element in bytes


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, (y,) = given(inputs, 0), outputs
    if refusal := constant(inputs, axis=1) or typed((x, y), QUANTIZED, quantized=True):
        return refusal
    if x.size // max(1, y.size) > (most := _MOST[x.dtype.itemsize]):
        return Refusal(f"sums of more than {most} elements")
    return per_tensor(x, y) or words(x, y)


def _sums(call: Call) -> tuple[list[Step], Operand | Scratch, TensorType, int]:
    """Return the launches that add up, the memory and type of the sums, and the number of terms."""
    x, (y,) = call.input(0), call.outputs
    axes = {axis % len(x.shape) for axis in integers(call.input(1).data)} if x.shape else set()
    count = math.prod(x.shape[axis] for axis in axes)
    sums = Scratch(4 * y.spec.size)
    launches = reduced(x, sorted(axes), sums, TensorType.INT32, SUMS, call.target)
    return (launches, sums, TensorType.INT32, count) if launches else ([], x, x.spec.type, count)


def _by_factor(op: Op, call: Call, *, mean: bool) -> list[Step]:
    """Rescale in fixed point (QuantizedMeanOrSum)."""
    x, (y,) = call.input(0), call.outputs
    launches, source, type_, count = _sums(call)
    zero, factor = zero_point(x.spec) * count, mean_factor(x.spec, y.spec, count if mean else 1)
    return [*launches, requantized(source, type_, y, factor, zero, bounds_of(call.options, y.spec), call.target)]


def _mean(call: Call) -> list[Step]:
    return _by_factor(MEAN, call, mean=True)


def _sum(call: Call) -> list[Step]:
    """Rescale UINT8 in fixed point and signed integers in float32, as the interpreter does."""
    if call.outputs[0].spec.type == TensorType.UINT8:
        return _by_factor(SUM, call, mean=False)
    launches, source, type_, count = _sums(call)
    return [*launches, scaled(source, type_, call.input(0).spec, call.outputs[0], count, call.target)]


CL_OPS = (
    ClOp(MEAN, claim=_claim, lower=_mean),
    ClOp(SUM, claim=_claim, lower=_sum),
)
