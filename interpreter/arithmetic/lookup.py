"""Tables for functions of quantized values: 256 entries for 8 bits, 513 to interpolate for 16.

The tables are filled as in TFLite (common.h: LUTPopulateInt8, LUTPopulateInt16), in float32 unless asked otherwise.
Functions that numpy only approximates go through ``in_double``.
"""

from collections.abc import Callable

import numpy as np

from litecl.interpreter.arithmetic.fixed_point import round_half_away, scale_of, zero_point_of
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.kit.types import limits
from litecl.interpreter.op import Inputs, Run

Function = Callable[[Array], Array]

_STEPS = 512


def in_double(function: Function) -> Function:
    """Return a function of float32 elements, computed in float64 and rounded once: the same on every processor.

    TFLite's ``std::exp`` and ``std::log`` return the same (glibc's; its ``tanhf`` and ``erfcf`` only since 2.41).
    numpy's own float32 functions err in the last place, in other elements with every instruction set.
    """

    def rounded(x: Array) -> Array:
        return np.asarray(function(x.astype(np.float64)), np.float32)

    return rounded


exp = in_double(np.exp)


def bind(function: Function, x: TensorSpec, output: TensorSpec) -> Run:
    """Return a kernel that applies ``function`` to quantized 8-bit or 16-bit elements."""
    scales = (scale_of(x), scale_of(output))
    zero_points = (zero_point_of(x), zero_point_of(output))
    with np.errstate(all="ignore"):
        if x.dtype.itemsize == 1:
            table8 = table_of_8_bits(function, x.dtype, scales, zero_points)
            return _mapped(lambda values: table8[values.view(np.uint8)])
        table16 = table_of_16_bits(function, scales, zero_points, np.float32)
    return _mapped(lambda values: interpolated(table16, values).astype(np.int16))


def _mapped(function: Function) -> Run:
    def run(options: object, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        return [np.asarray(function(np.ascontiguousarray(x).reshape(x.shape)))]

    return run


def table_of_8_bits(
    function: Function, dtype: np.dtype[np.generic], scales: tuple[float, float], zero_points: tuple[int, int]
) -> Array:
    """Return the result for every element, ordered by its bits as an unsigned integer."""
    low, high = limits(dtype)
    elements = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    values = function(np.float32(scales[0]) * (elements - np.float32(zero_points[0]))).astype(np.float32)
    steps = round_half_away(values * (np.float32(1) / np.float32(scales[1])))
    return np.asarray(np.clip(np.nan_to_num(steps, nan=low) + np.float32(zero_points[1]), low, high).astype(dtype))


def table_of_16_bits(
    function: Function, scales: tuple[float, float], zero_points: tuple[int, int], precision: type = np.float64
) -> Array:
    """Return 513 samples, each shifted by half the error of interpolation midway to the next."""
    low, high = limits(np.dtype(np.int16))
    in_scale, out_scale = (precision(scale) for scale in scales)
    first, last = (in_scale * precision(limit - zero_points[0]) for limit in (low, high))
    bottom, top = (out_scale * precision(limit - zero_points[1]) for limit in (low, high))
    step = (last - first) / precision(_STEPS)
    inverse = precision(high - low + 1) / (top - bottom)
    points = first + np.arange(_STEPS + 1).astype(precision) * step
    samples = function(points).astype(precision) * inverse
    rounded = round_half_away(samples)
    middles = round_half_away(function(points[:-1] + step / precision(2)).astype(precision) * inverse)
    straight = round_half_away((samples[1:] + rounded[:-1]) / precision(2))
    table = rounded[:-1] - round_half_away((straight - middles) / precision(2))
    end = round_half_away(function(np.array([last], precision)).astype(precision) * inverse)
    return np.asarray(np.clip(np.concatenate([table, end]), low, high), np.int64)


def interpolated(table: Array, x: Array) -> Array:
    """Return the results for 16-bit elements, interpolated between two of 513 entries."""
    index = (x.astype(np.int64) >> 7) + 256
    slope = (table[index + 1] - table[index]).astype(np.int16).astype(np.int64)  # TFLite's 16-bit slope wraps
    return np.asarray(table[index] + ((slope * (x & 0x7F) + 64) >> 7))
