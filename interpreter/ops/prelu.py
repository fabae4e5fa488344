"""PRELU: the input, negative elements times a slope that is a tensor, broadcast to it."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic import fixed_point, halves
from litecl.interpreter.arithmetic.quantized_unary import BYTES, QUANTIZED, Ratio, real_ratio, symmetric
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import Integers
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, alpha = require.present(inputs, 2)
    if (x.type, alpha.type) != (TensorType.INT16, TensorType.INT8):
        require.same_type(x, alpha)
        require.types(alpha, (*types.FLOAT, *BYTES))
    for spec in (x, alpha):
        require.types_or_quantized(spec, types.FLOAT, QUANTIZED)
    if require.broadcast(x, alpha) != x.shape:
        raise ShapeError(f"alpha {alpha.shape} does not broadcast to the input {x.shape}")
    return [TensorSpec(x.type, x.shape)]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, alpha = require.arrays(inputs, 2)
    return [np.where(x >= 0, x, x * alpha)]


def _bind(options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    """Return the kernel: one factor per sign; that of negative elements leaves out alpha's integers."""
    x, _ = require.present(inputs, 2)
    return integer(inputs, outputs[0], real_ratio) if require.is_quantized(x) else None


def integer(inputs: Specs, output: TensorSpec, ratio: Ratio) -> Run:
    """Return the kernel of integers, whose factors are ratios of scales."""
    x, alpha = require.present(inputs, 2)
    symmetric(x, output)
    positive, negative = ratio(x, output), ratio(x, output, float(fixed_point.scale_of(alpha)))
    x_zero, alpha_zero, zero = (fixed_point.zero_point_of(spec) for spec in (x, alpha, output))
    low, high = types.limits(output.dtype)

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        x, alpha = (value.astype(np.int64) for value in require.arrays(inputs, 2))
        value = x - x_zero
        slope = fixed_point.multiply_by_quantized_multiplier(value * (alpha - alpha_zero), negative)
        result = np.where(value >= 0, fixed_point.multiply_by_quantized_multiplier(value, positive), slope)
        return [np.clip(result + zero, low, high).astype(output.dtype)]

    return run


PRELU = halves.also(
    Op("PRELU", options=NoOptions, infer=_infer, run=_run, bind=_bind, integers=Integers(weights={1: None}))
)
