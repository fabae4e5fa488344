"""MEAN of quantized tensors: sums of bytes, then one factor for the scales and the count."""

import math
from collections.abc import Sequence
from typing import Any

from litecl.delegate.cl_op import Call, ClOp, Refusal, Scratch, Step
from litecl.delegate.claims import BYTES, Specs, constant, integers, typed
from litecl.delegate.ops.reduce import SUMS, reduced
from litecl.delegate.ops.requantize import requantized
from litecl.delegate.quantized import bounds_of, per_tensor
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops import fixed_point
from litecl.interpreter.ops.fixed_point import Multiplier
from litecl.interpreter.ops.reduce import MEAN, mean_factor
from litecl.interpreter.schema import TensorType


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return (
        constant(inputs, axis=1)
        or typed((inputs[0], outputs[0]), BYTES, quantized=True)
        or per_tensor(inputs[0], outputs[0])
    )


def _lower(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    axes = {axis % len(x.shape) for axis in integers(call.input(1).data)}
    count = math.prod(x.shape[axis] for axis in axes)
    sums = Scratch(4 * y.spec.size)
    zero = fixed_point.zero_point_of(MEAN.name, x.spec) * count
    factor: Multiplier = mean_factor(MEAN.name, x.spec, y.spec, count)
    launches = reduced(x, sorted(axes), sums, TensorType.INT32, SUMS, call.target)
    source, type_ = (sums, TensorType.INT32) if launches else (x, x.spec.type)
    return [*launches, requantized(source, type_, y, factor, zero, bounds_of(call.options, y.spec), call.target)]


CL_OPS = (ClOp(MEAN, claim=_claim, lower=_lower),)
