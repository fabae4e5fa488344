"""LOG_SOFTMAX: the logarithm of SOFTMAX along the last axis."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic import fixed_math, fixed_point, gemmlowp, halves
from litecl.interpreter.arithmetic.quantized_unary import BYTES
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import Integers
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.ops.softmax import difference_multiplier, smallest_difference
from litecl.interpreter.schema import TensorType

_INTEGER_BITS = 5


@dataclass(frozen=True)
class LogSoftmaxOptions:
    pass


def _infer(options: LogSoftmaxOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types_or_quantized(x, types.FLOAT, BYTES)
    require.rank(x, at_least=1)
    return [TensorSpec(x.type, x.shape)]


def _run(options: LogSoftmaxOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    shifted = x - x.max(axis=-1, keepdims=True, initial=-np.inf)
    return [shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))]


def _bind(options: LogSoftmaxOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    """Return the kernel: fixed-point exponentials, their sum and its logarithm (integer_ops/log_softmax.h)."""
    (x,) = require.present(inputs, 1)
    if not require.is_quantized(x):
        return None
    output = outputs[0]
    low, high = types.limits(output.dtype)
    scale, zero = fixed_point.scale_of(output), fixed_point.zero_point_of(output)
    if scale != 1 / 16 or zero != high:
        raise ModelError(f"expected an output of scale 1/16 and zero point {high}, got {scale:g}, {zero}")
    factor = difference_multiplier(float(fixed_point.scale_of(x)), 1.0)
    least = smallest_difference(int(factor.shift))
    back = fixed_point.quantize_multiplier((1 << (31 - factor.shift)) / float(factor.value))

    def run(options: LogSoftmaxOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        if not x.size:
            return [np.zeros(x.shape, output.dtype)]
        wide = x.astype(np.int64)
        difference = wide - wide.max(axis=-1, keepdims=True)
        counts = difference >= least
        scaled = fixed_point.multiply_by_quantized_multiplier(np.where(counts, difference, 0), factor)
        e = fixed_math.rescale(gemmlowp.exp_on_negative_values(scaled, _INTEGER_BITS), 0, 12)
        total = np.where(counts, e, 0).sum(axis=-1, keepdims=True)
        log = fixed_math.log_of_one_or_more(total, 12, _INTEGER_BITS)
        floor = np.maximum(least - 1, fixed_point.multiply_by_quantized_multiplier(log - (1 << 31), back))
        result = fixed_point.rounding_divide_by_pot(scaled - log, 31 - _INTEGER_BITS - 4) + zero
        return [np.where(difference > floor, np.clip(result, low, high), low).astype(output.dtype)]

    return run


LOG_SOFTMAX = halves.also(
    Op(
        "LOG_SOFTMAX",
        versions=range(1, 3),
        options=LogSoftmaxOptions,
        infer=_infer,
        run=_run,
        bind=_bind,
        integers=Integers((TensorType.INT8,), fixed={TensorType.INT8: (16 / 256, 127)}),
        lowest=lowest.integers(2),
    )
)
