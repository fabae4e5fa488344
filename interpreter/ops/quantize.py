"""QUANTIZE, DEQUANTIZE and FAKE_QUANT: between real numbers and the integers that represent them."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import fixed_point, float8, halves
from litecl.interpreter.arithmetic.fixed_point import affine
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.integers import BORDER
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.ops.unary import each, like_input
from litecl.interpreter.schema import TensorType

_BYTES = (TensorType.INT8, TensorType.UINT8)
_STORED = (*_BYTES, TensorType.INT16, TensorType.INT32, *types.SUB_BYTE)
_REQUANTIZED: dict[TensorType, tuple[TensorType, ...]] = {
    TensorType.INT8: _BYTES,
    TensorType.UINT8: _BYTES,
    TensorType.INT16: (TensorType.INT8, TensorType.INT16, TensorType.INT32),
    TensorType.INT32: (TensorType.INT8, TensorType.INT16),
}


@dataclass(frozen=True)
class FakeQuantOptions:
    min: float = 0.0
    max: float = 0.0
    num_bits: int = 0
    narrow_range: bool = False


def spread(values: Array, quantization: Quantization, rank: int) -> Array:
    """Return scales or zero points in a shape that broadcasts to a tensor of ``rank``."""
    if values.size == 1:
        return values.reshape(())
    if quantization.block_size:
        limits.temporary("scales of blocks", (*values.shape, quantization.block_size), 8)
        return np.repeat(values, quantization.block_size, axis=quantization.quantized_dimension)
    shape = [1] * rank
    shape[quantization.quantized_dimension] = -1
    return values.reshape(shape)


def dequantize(x: Array, quantization: Quantization) -> Array:
    """Compute ``scale * (q - zero_point)`` in float32."""
    zero = spread(quantization.zero_point.astype(np.int64), quantization, x.ndim) if quantization.zero_point.size else 0
    scale = spread(quantization.scale.astype(np.float64), quantization, x.ndim)
    return np.asarray(scale * (x.astype(np.int64) - zero), np.float32)


def real(x: Array, quantization: Quantization | None) -> Array:
    """Return the numbers that integers with scales, or floats, stand for, as float64; others and blocks unchanged."""
    if x.dtype.kind in "iu" and quantization is not None and quantization.scale.size and not quantization.block_size:
        return dequantize(x, quantization).astype(np.float64)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def quantize(x: Array, quantization: Quantization, type_: TensorType) -> Array:
    """Return ``round(x / scale) + zero_point``, halves away from zero, clamped to the type; NaN becomes its maximum."""
    zero = spread(quantization.zero_point.astype(np.int64), quantization, x.ndim) if quantization.zero_point.size else 0
    with np.errstate(over="ignore"):
        steps = x / spread(quantization.scale.astype(np.float32), quantization, x.ndim)
    low, high = types.integer_limits(type_)
    rounded = np.trunc(steps.astype(np.float64) + np.copysign(0.5, steps))
    return np.asarray(np.nan_to_num(np.clip(rounded + zero, low, high), nan=high), type_.dtype)


def _infer_quantize(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    return [TensorSpec(TensorType.INT8 if x.type in types.FLOAT else x.type, x.shape)]


def _bind_quantize(options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    (x,) = require.present(inputs, 1)
    if x.type not in types.FLOAT:
        return _requantize(x, outputs[0])
    type_ = require.types(outputs[0], _STORED)
    quantization = affine(outputs[0])

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        return [quantize(x, quantization, type_)]

    return run


def _requantize(x: TensorSpec, output: TensorSpec) -> Run:
    """Convert integers to another scale, by a fixed-point factor (reference/requantize.h)."""
    if output.type not in _REQUANTIZED.get(x.type, ()):
        raise UnsupportedOp(f"no kernel from {x.type.name} to {output.type.name}")
    factor = fixed_point.quantize_multiplier(fixed_point.scale_of(x) / fixed_point.scale_of(output))
    x_zero, zero = fixed_point.zero_point_of(x), fixed_point.zero_point_of(output)
    low, high = types.integer_limits(output.type)

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        (values,) = require.arrays(inputs, 1)
        steps = fixed_point.multiply_by_quantized_multiplier(values.astype(np.int64) - x_zero, factor)
        return [np.clip(steps + zero, low, high).astype(output.dtype)]

    return run


def _infer_dequantize(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, (*_STORED, TensorType.FLOAT16, *float8.TYPES))
    return [TensorSpec(TensorType.FLOAT32, x.shape)]


def _run_dequantize(options: NoOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    return [x.astype(np.float32)]


def _bind_dequantize(options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    if x.type == TensorType.FLOAT16:
        return None
    if x.type in float8.TYPES:
        return _from_float8(x)
    quantization = affine(x)

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        return [dequantize(x, quantization)]

    return run


def _from_float8(x: TensorSpec) -> Run:
    """Widen; a scale of the whole tensor has no effect, as in LiteRT. Raises UnsupportedOp for scales of channels."""
    if x.quantization is not None and x.quantization.scale.size > 1:
        raise UnsupportedOp(f"no kernel from {x.type.name} with {x.quantization.scale.size} scales")

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        (values,) = require.arrays(inputs, 1)
        return [float8.widen(values, x.type)]

    return run


def _infer_fake_quant(options: FakeQuantOptions, inputs: Specs) -> list[TensorSpec]:
    require.bits(num_bits=options.num_bits)
    return like_input(types.FLOAT)(options, inputs)


def _fake_quant(options: FakeQuantOptions, x: Array) -> Array:
    """Round to steps of a range nudged so that zero is one (Jacob et al., 2018, section 3; FakeQuantizeArray)."""
    low, high = int(options.narrow_range), (1 << options.num_bits) - 1
    scale = (np.float32(options.max) - np.float32(options.min)) / np.float32(high - low)
    zero = np.clip(np.floor(low - options.min / scale + 0.5), low, high)
    bottom, top = np.float32((low - zero) * scale), np.float32((high - zero) * scale)
    steps = fixed_point.round_half_away((np.clip(x, bottom, top) - bottom) * (np.float32(1) / scale))
    return np.asarray(steps * scale + bottom)


def _lowest(options: object, inputs: Specs) -> int:
    spec = inputs[0]
    return 5 if spec is not None and spec.quantization is not None and spec.quantization.scale.size > 1 else 1


QUANTIZE = halves.also(
    Op(
        "QUANTIZE",
        options=NoOptions,
        infer=_infer_quantize,
        run=require.unbound,
        bind=_bind_quantize,
        versions=range(1, 7),
        declared_types=True,
        integers=BORDER,
        lowest=lowest.integers(1, 2),
    )
)
DEQUANTIZE = Op(
    "DEQUANTIZE",
    options=NoOptions,
    infer=_infer_dequantize,
    run=_run_dequantize,
    bind=_bind_dequantize,
    versions=range(1, 10),
    integers=BORDER,
    lowest=lowest.most(_lowest, lowest.of_any({TensorType.INT8: 2, TensorType.INT16: 3, TensorType.FLOAT16: 3})),
)
FAKE_QUANT = Op(
    "FAKE_QUANT",
    options=FakeQuantOptions,
    infer=_infer_fake_quant,
    run=each(_fake_quant),
    versions=range(1, 3),
)
