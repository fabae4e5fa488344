"""Computes scales and zero points, and quantizes constants."""

from dataclasses import replace

import numpy as np

from litecl.converter.quantization.observers import Range
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit.types import integer_limits
from litecl.interpreter.ops.quantize import dequantize, quantize
from litecl.interpreter.schema import TensorType
from litecl.interpreter.tensor import Quantization as Affine

__all__ = [
    "Affine",
    "affine",
    "bias",
    "blocks",
    "channels",
    "dequantize",
    "given",
    "half_scales",
    "integers",
    "nested",
    "quantize",
    "range_held",
    "symmetric",
]

_SMALLEST = float(np.finfo(np.float32).tiny) * 2.0**23  # keeps quotients of scales finite


def given(scale: float, zero_point: int) -> Affine:
    """Return the quantization of a whole tensor."""
    return Affine(np.full(1, scale, np.float32), np.full(1, zero_point, np.int64))


def affine(values: Range, type_: TensorType) -> Affine:
    """Return the scale and zero point that spread a range, extended to zero, over a type's integers.

    INT16 has no zero point. Zero is exactly an integer, as in Jacob et al. (2018), section 2.1. Of the zero points that
    the two ends suggest, the one with the smaller rounding error is used, as in TensorFlow's converter.
    """
    low, high = min(values.low, 0.0), max(values.high, 0.0)
    first, last = integer_limits(type_)
    if type_ == TensorType.INT16:
        return given(max(max(-low, high) / last, _SMALLEST) if high > low else 1.0, 0)
    if high == low:
        return given(1.0, 0)
    scale = max((high - low) / (last - first), _SMALLEST)
    from_low, from_high = first - low / scale, last - high / scale
    error_of_low, error_of_high = abs(first) + abs(low / scale), abs(last) + abs(high / scale)
    zero = from_low if error_of_low < error_of_high else from_high
    return given(scale, int(np.clip(np.rint(zero), first, last)))


def nudged(values: Range, type_: TensorType, narrow: bool) -> Affine:
    """Return the scale and zero point of a type's integers that round a range as FakeQuant does.

    The range is used as is, even if it excludes zero. A narrow one leaves out an integer: the highest if the zero point
    would be the lowest, since smaller numbers must not become negative, else the lowest. The zero point is rounded in
    float32 like in TensorFlow's kernel: that of a symmetric range lies between two integers.
    """
    first, last = integer_limits(type_)
    if type_ == TensorType.INT16:
        return affine(values, type_)
    low, high = int(narrow), last - first
    scale = max((values.high - values.low) / (high - low), _SMALLEST)
    zero = _zero_of(values, low, high)
    return given(scale, first + (0 if zero == low else zero))


def _zero_of(values: Range, low: int, high: int) -> int:
    """Return FakeQuant's zero point, from ``low`` to ``high`` (Nudge in TensorFlow's fake_quant_ops_functor.h)."""
    least, most = np.float32(values.low), np.float32(values.high)
    step = np.maximum((most - least) / np.float32(high - low), np.float32(_SMALLEST))
    return int(np.clip(np.floor(np.float32(low) - least / step + np.float32(0.5)), low, high))


def nested(values: Range, num_bits: int, narrow: bool, type_: TensorType) -> Affine:
    """Return the scale and zero point whose integers represent exactly what a FakeQuant of fewer bits rounds to."""
    low, high = int(narrow), (1 << num_bits) - 1
    step = max(float(np.float32(values.high) - np.float32(values.low)) / (high - low), _SMALLEST)
    zero = _zero_of(values, low, high)
    first, last = integer_limits(type_)
    if type_ == TensorType.INT16:
        return given(step / (last // max(zero - low, high - zero)), 0)
    times = (last - first) // (high - low)
    return given(step / times, first + (zero - low) * times)


def symmetric(values: Range, type_: TensorType) -> Affine:
    """Return the scale without zero point that spreads a range over a type's integers."""
    largest = max(-values.low, values.high, 0.0)
    return given(max(largest / integer_limits(type_)[1], _SMALLEST) if largest else 1.0, 0)


def range_held(quantization: Affine, type_: TensorType) -> Range:
    """Return the range that a type's integers represent."""
    first, last = integer_limits(type_)
    scale, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
    return Range(scale * (first - zero), scale * (last - zero))


def channels(
    spec: TensorSpec, axis: int | None, least: Array | None = None, type_: TensorType = TensorType.INT8
) -> Affine:
    """Return symmetric scales of weights: the largest magnitude, per channel or of all, becomes the largest integer.

    Weights that training rounded keep its scales.
    least: lower bounds for the scales.
    """
    trained, bytes_ = _trained(spec, axis), integer_limits(TensorType.INT8)[1]
    largest = trained
    if largest is None or type_ != TensorType.INT8:
        assert spec.data is not None
        others = tuple(i for i in range(spec.data.ndim) if i != axis) if axis is not None else None
        largest = np.abs(spec.data).max(axis=others, initial=0.0).reshape(-1).astype(np.float64)
    scale = np.where(largest == 0, 1.0, np.maximum(largest / integer_limits(type_)[1], _SMALLEST))
    if trained is not None:  # weights rounded to few bits are multiples of the 8-bit step
        scale = np.maximum(scale, trained / bytes_)
    if least is not None:
        scale = np.maximum(scale, least)
    zeros = np.zeros(scale.size, np.int64)
    return Affine(scale.astype(np.float32), zeros, 0 if axis is None else axis)


def blocks(spec: TensorSpec, size: int, type_: TensorType) -> TensorSpec:
    """Return weights [units, depth] as symmetric integers with a float16 scale per ``size`` elements of a row."""
    assert spec.data is not None
    rows = spec.data.astype(np.float32).reshape(len(spec.data), -1, size)
    last = integer_limits(type_)[1]
    scale = half_scales(np.abs(rows).max(axis=2) / last)
    steps = np.rint(rows / scale[..., None].astype(np.float32)).clip(-last, last)
    quantization = Affine(scale, np.zeros(scale.shape, np.int64), 1, block_size=size)
    return replace(spec, type=type_, data=steps.astype(type_.dtype).reshape(spec.data.shape), quantization=quantization)


def half_scales(scale: Array) -> Array:
    """Return blockwise scales as float16 with eight bits of precision, since XNNPACK reads them as bfloat16."""
    bits = np.ascontiguousarray(scale, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    return np.maximum(rounded, np.finfo(np.float16).tiny).astype(np.float16)


def _trained(spec: TensorSpec, axis: int | None) -> Array | None:
    """Return the largest magnitudes that training rounded weights to; None without, or for another axis."""
    known = spec.quantization
    if known is None or known.min is None or known.max is None:
        return None
    if known.min.size > 1 and known.quantized_dimension != axis:
        return None
    ends: Array = np.maximum(np.abs(known.min), np.abs(known.max)).astype(np.float64)
    return ends


def integers(spec: TensorSpec, quantization: Affine, type_: TensorType, symmetric: bool = False) -> TensorSpec:
    """Return a float constant as integers; symmetric ones exclude the lowest, which has no opposite."""
    assert spec.data is not None
    values = quantize(spec.data.astype(np.float32), quantization, type_)
    if symmetric:
        values = np.maximum(values, -integer_limits(type_)[1]).astype(values.dtype)
    return replace(spec, type=type_, data=values, quantization=quantization)


def bias(spec: TensorSpec, scales: Array, type_: TensorType) -> TensorSpec:
    """Return a bias as integers in the scale of the sums it is added to."""
    assert spec.data is not None
    low, high = integer_limits(type_)
    steps = spec.data.reshape(-1).astype(np.float64) / scales
    # float64 can't represent int64's limits exactly: stay well within.
    bound = min(-low, high, 1 << 62)
    values = np.clip(np.rint(steps), -bound, bound).astype(type_.dtype).reshape(spec.data.shape)
    scale = np.broadcast_to(scales.astype(np.float32), (values.size,)) if scales.size > 1 else scales.astype(np.float32)
    return replace(spec, type=type_, data=values, quantization=Affine(scale, np.zeros(scale.size, np.int64)))
