"""SOFTMAX: exponentials along the last axis, normalised to sum to one."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from litecl.interpreter.arithmetic import fixed_math, fixed_point, gemmlowp, halves, lookup
from litecl.interpreter.arithmetic.quantized_unary import QUANTIZED, symmetric
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import UNIT
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import TensorType

_INTEGER_BITS = 5  # of differences from the largest element
_ACCUMULATOR_BITS = 12


@dataclass(frozen=True)
class SoftmaxOptions:
    beta: float = 0.0


def difference_multiplier(scale: float, beta: float) -> fixed_point.Multiplier:
    """Return the factor that brings differences of elements to five integer bits (PreprocessSoftmaxScaling)."""
    most = float((1 << 31) - 1)
    return fixed_point.quantize_multiplier(min(beta * scale * (1 << (31 - _INTEGER_BITS)), most))


def smallest_difference(shift: int) -> int:
    """Return the least difference that is large enough to count (CalculateInputRadius)."""
    return -int(((1 << _INTEGER_BITS) - 1) * 2.0 ** (31 - _INTEGER_BITS) / 2.0**shift)


def exponentials(options: SoftmaxOptions, x: TensorSpec) -> Array:
    """Return exponentials, without integer bits, of bytes by their distance below the largest (0 to 255)."""
    factor = difference_multiplier(float(fixed_point.scale_of(x)), options.beta)
    differences = -np.arange(256)
    counts = differences >= smallest_difference(int(factor.shift))
    scaled = fixed_point.multiply_by_quantized_multiplier(np.where(counts, differences, 0), factor)
    return np.where(counts, gemmlowp.exp_on_negative_values(scaled, _INTEGER_BITS), 0)


def _infer(options: SoftmaxOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types_or_quantized(x, types.FLOAT, QUANTIZED)
    require.rank(x, at_least=1)
    if x.dtype.itemsize == 1 and not options.beta > 0:  # 8-bit kernels take exponentials of negative numbers only
        raise ModelError(f"beta: expected a positive number for {x.type.name}, got {options.beta:g}")
    return [TensorSpec(x.type, x.shape)]


def _run(options: SoftmaxOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    with np.errstate(all="ignore"):
        e = np.exp((x - x.max(axis=-1, keepdims=True, initial=-np.inf)) * np.float32(options.beta))
        return [(e / e.sum(axis=-1, keepdims=True)).astype(x.dtype)]


def _bind(options: SoftmaxOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    (output,) = require.present(outputs, 1)
    if not require.is_quantized(x):
        return None
    if x.type == TensorType.INT16:
        symmetric(x, output)
        return integer_16(difference_multiplier_16(x, options.beta), *tables_16())
    expected = (x.type, TensorType.INT16)
    require.types(output, expected)
    return _softmax8(options, x, output)


def _softmax8(options: SoftmaxOptions, x: TensorSpec, output: TensorSpec) -> Run:
    """Return the kernel: exponentials and the reciprocal of their sum in fixed point (reference/softmax.h)."""
    scale, zero = fixed_point.scale_of(output), fixed_point.zero_point_of(output)
    if output.type == TensorType.INT8 and (zero != -128 or abs(scale - 1 / 256) > 1e-3 / 256):
        raise ModelError(f"expected an INT8 output of scale 1/256 and zero point -128, got {scale:g}, {zero}")
    low, high = types.limits(output.dtype)
    bits = output.dtype.itemsize * 8
    table = exponentials(options, x)
    addends = fixed_math.rescale(table, 0, _ACCUMULATOR_BITS)

    def run(options: SoftmaxOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        if not x.size:
            return [np.zeros(x.shape, output.dtype)]
        difference = x.max(axis=-1, keepdims=True).astype(np.int64) - x
        e = table[difference]
        total = addends[difference].sum(axis=-1, keepdims=True)
        inverse, over = fixed_math.reciprocal(total, _ACCUMULATOR_BITS)
        product = fixed_point.saturating_rounding_doubling_high_mul(e, inverse)
        result = fixed_point.rounding_divide_by_pot(product, over + 31 - bits) + low
        return [np.minimum(np.maximum(result, low), high).astype(output.dtype)]

    return run


@cache
def tables_16(precision: type = np.float64) -> tuple[Array, Array]:
    """Return 513 samples each of ``exp`` on [-10, 0] and of ``1 / (1 + x)`` on [0, 1], both in units of 2**-15.

    precision: of the second, whose samples differ.
    """
    span = 65535.0
    exponential = lookup.table_of_16_bits(np.exp, (10.0 / span, 2.0 / span), (32767, 0))
    inverse = lookup.table_of_16_bits(lambda x: 1 / (1 + x), (1.0 / span, 2.0 / span), (-32768, 0), precision)
    return exponential, inverse


def difference_multiplier_16(x: TensorSpec, beta: float) -> fixed_point.Multiplier:
    """Return the factor that brings differences of 16-bit elements to the steps of the table."""
    scale = np.float32(fixed_point.scale_of(x)) * np.float32(beta)
    return fixed_point.quantize_multiplier(float(scale) / (10.0 / 65535.0))


def integer_16(factor: fixed_point.Multiplier, exponential: Array, inverse: Array) -> Run:
    """Return the kernel of 16 bits, by the factor of differences and the tables (SoftmaxInt16)."""

    def run(options: SoftmaxOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        if not x.size:
            return [np.zeros(x.shape, np.int16)]
        wide = x.astype(np.int64)
        scaled = fixed_point.multiply_by_quantized_multiplier(wide - wide.max(axis=-1, keepdims=True), factor)
        e = lookup.interpolated(exponential, np.clip(scaled + 32767, -32768, 32767))
        total = e.sum(axis=-1, keepdims=True)
        headroom = fixed_math.leading_zeros(total)
        shifted = ((total << (headroom - 1)) + (1 << 13)) >> 14
        indices = np.clip(shifted - (1 << 15) - (1 << 16), -32768, 32767)
        right = 31 - headroom
        result = (e * lookup.interpolated(inverse, indices) + (np.int64(1) << (right - 1))) >> right
        return [np.clip(result, 0, 32767).astype(np.int16)]

    return run


SOFTMAX = halves.also(
    Op(
        "SOFTMAX",
        versions=range(1, 5),
        options=SoftmaxOptions,
        infer=_infer,
        run=_run,
        bind=_bind,
        declared_types=True,
        integers=UNIT,
        lowest=lowest.integers(2, 3),
    )
)
