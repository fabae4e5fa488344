"""Values that the tables of quantized operators share: random integers, and quantization under which results spread."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, compare, reduce, unary
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.gelu import GELU
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.ops.softmax import SOFTMAX
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.schema import TensorType

T = TensorType


def affine(scale: float | Sequence[float] | Array, zero_point: int = 0, axis: int = 0) -> Quantization:
    """A quantization with one scale, or one for every index along an axis."""
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    return Quantization(scales, np.full(scales.shape, zero_point, np.int64), axis)


_BYTES = (T.INT8, T.UINT8)
_QUANTIZED = (*_BYTES, T.INT16)
_INTEGERS = (*_QUANTIZED, T.INT32)

COMPARISONS = (
    compare.EQUAL,
    compare.NOT_EQUAL,
    compare.GREATER,
    compare.GREATER_EQUAL,
    compare.LESS,
    compare.LESS_EQUAL,
)

# The types of quantized inputs and outputs that the device takes, by operator.
ON_DEVICE: dict[Op, tuple[TensorType, ...]] = {
    **dict.fromkeys((CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED), _QUANTIZED),
    **dict.fromkeys((AVERAGE_POOL_2D, MAX_POOL_2D), _QUANTIZED),
    **dict.fromkeys((binary.ADD, binary.SUB, binary.MUL, binary.DIV, binary.MAXIMUM, binary.MINIMUM), _QUANTIZED),
    **dict.fromkeys((binary.SQUARED_DIFFERENCE, PRELU), _BYTES),
    **dict.fromkeys(COMPARISONS, _QUANTIZED),
    **dict.fromkeys((reduce.SUM, reduce.MEAN, reduce.REDUCE_MAX, reduce.REDUCE_MIN), _QUANTIZED),
    **dict.fromkeys((unary.ABS, unary.NEG, unary.EXP, unary.LOG, unary.ELU, GELU, LEAKY_RELU), _QUANTIZED),
    **dict.fromkeys((unary.RELU, unary.RELU6, unary.RELU_0_TO_1, unary.RELU_N1_TO_1), _QUANTIZED),
    **dict.fromkeys((unary.LOGISTIC, unary.TANH, unary.HARD_SWISH, unary.RSQRT, SOFTMAX), _QUANTIZED),
    **dict.fromkeys((QUANTIZE, DEQUANTIZE), (*_INTEGERS, T.FLOAT32)),
}


def unfit(op: Op, *types: TensorType) -> str | None:
    """Return why the device refuses an operator on quantized tensors of these types, None where it takes them."""
    wrong = [type_.name for type_ in types if type_ not in ON_DEVICE.get(op, ())]
    return f"quantized {wrong[0]}" if wrong else None


class Integers:
    """Random quantized tensors from a generator of their own."""

    def __init__(self, seed: int) -> None:
        self._rng = rng(seed)

    def full(self, type_: TensorType, *shape: int) -> Array:
        """Integers of the whole range of a type, its ends among them."""
        low, high = {T.INT4: (-8, 7), T.INT2: (-2, 1)}.get(type_, limits(type_))
        values = self._rng.integers(low, high + 1, shape).astype(type_.dtype)
        values.flat[:2] = (low, high)[: min(2, values.size)]
        return values

    def weights(self, type_: TensorType, *shape: int) -> Array:
        """Integers of a type's range without its lowest, as converters make them; all of it for UINT8."""
        values = self.full(type_, *shape)
        return values if type_ == T.UINT8 else np.maximum(values, -limits(type_)[1])

    def scales(self, count: int | None) -> Array:
        """One scale, or ``count`` that differ up to four times."""
        return self._rng.uniform(0.01, 0.04, 1 if count is None else count).astype(np.float32)

    def bias(self, count: int, deviation: float, type_: TensorType) -> Array:
        """A bias of about the size of the sums, given their standard deviation."""
        limit = 2**30 if type_ == T.INT32 else 2**46
        return np.clip(self._rng.normal(0, deviation, count), -limit, limit).astype(type_.dtype)


def weighted_case(
    integers: Integers,
    name: str,
    op: Op,
    options: Any,
    x: tuple[TensorType, Sequence[int], int],
    weights: tuple[TensorType, Sequence[int], int],
    *,
    axis: int,
    depth: int,
    per_channel: bool = True,
    bias: TensorType | None = T.INT32,
    output: TensorType | None = None,
    zero_point: int = 0,
    step: float = 0.05,
    gain: float = 1.0,
    version: int = 1,
) -> Case:
    """A case of an operator with operands input, weights and bias, each of the first two (type, shape, zero point).

    axis: the weights' dimension of output channels. depth: products that add up to an output. step: scale of the
    output. gain: 1 where outputs are to spread over their range, larger where they are to saturate.
    """
    (x_type, x_shape, x_zero), (w_type, w_shape, w_zero) = x, weights
    channels, out = w_shape[axis], x_type if output is None else output
    scales = integers.scales(channels if per_channel else None)
    deviation = _deviation(x_type) * _deviation(w_type) * depth**0.5
    x_scale = gain * step * 0.8 * _deviation(out) / (deviation * float(scales.mean()))
    inputs: list[Array | None] = [integers.full(x_type, *x_shape), integers.weights(w_type, *w_shape)]
    quantization = {0: affine(x_scale, x_zero), 1: affine(scales, w_zero, axis)}
    if bias is not None:
        inputs.append(integers.bias(channels, deviation, bias))
        quantization[2] = affine(x_scale * scales)
    constants = frozenset(range(1, len(inputs)))
    declared = [TensorSpec(out, None, quantization=affine(step, zero_point))]
    return Case(
        name,
        op,
        options,
        inputs,
        constants,
        {0: x_type, 1: w_type},
        quantization,
        declared,
        version,
        device=_unfit_product(op, x_type, w_type, out),
    )


def _unfit_product(op: Op, x: TensorType, weights: TensorType, out: TensorType) -> str | None:
    if x != out or weights == T.INT16:
        return "types of activations, weights and results"
    return unfit(op, x)


def positive(case: Case) -> Case:
    """The case with inputs and weights that are not negative, so that all products add up."""
    x, weights, *others = case.inputs
    assert x is not None and weights is not None
    return replace(case, inputs=[x & np.iinfo(x.dtype).max, weights & np.iinfo(weights.dtype).max, *others])


def with_ties(case: Case, factor: float = 0.25) -> Case:
    """The case under scales that are powers of two, so that many results lie halfway between two integers."""
    assert case.outputs is not None
    (output,) = case.outputs
    zeros = {i: q.zero_point for i, q in case.quantization.items()}
    quantization = {i: Quantization(np.ones(1, np.float32), zero[:1]) for i, zero in zeros.items()}
    assert output.quantization is not None
    step = Quantization(np.array([1 / factor], np.float32), output.quantization.zero_point)
    return replace(case, quantization=quantization, outputs=[replace(output, quantization=step)])


def limits(type_: TensorType) -> tuple[int, int]:
    """Return the lowest and the highest value of an integer type."""
    narrow = {T.INT4: (-8, 7), T.INT2: (-2, 1)}
    if type_ in narrow:
        return narrow[type_]
    info: Any = np.iinfo(type_.dtype)
    return int(info.min), int(info.max)


def _deviation(type_: TensorType) -> float:
    low, high = limits(type_)
    return float(high - low) / 12**0.5
