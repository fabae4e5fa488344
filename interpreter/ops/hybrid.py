"""Dynamic-range quantization: float inputs quantized row by row, multiplied with integer weights, and scaled back.

The formulas are TFLite's (portable_tensor_utils.cc: SymmetricQuantizeFloats, AsymmetricQuantizeFloats).
"""

import numpy as np

from litecl.interpreter.graph import Array, Quantization

_LOW, _HIGH = -128, 127


def quantize_rows(x: Array, asymmetric: bool) -> tuple[Array, Array, Array]:
    """8-bit rows of ``x`` [rows, depth], with a scale and a zero point [rows, 1]: ``x = scale * (q - zero_point)``."""
    return _asymmetric(x) if asymmetric else _symmetric(x)


def matmul(x: Array, weights: Array, scales: Array, asymmetric: bool) -> Array:
    """``x @ weights.T`` through 8-bit rows of ``x``; ``scales`` are the weights', one a row or one for all."""
    rows, scale, zero_point = quantize_rows(x, asymmetric)
    products = integer_matmul(rows - zero_point, weights.T)
    result: Array = products.astype(np.float32) * scale * scales
    return result


def blockwise_matmul(x: Array, weights: Array, quantization: Quantization) -> Array:
    """``x @ weights.T`` for weights whose rows have a scale for every block of their elements."""
    rows, scale, zero_point = quantize_rows(x, asymmetric=True)
    shape = (-1, x.shape[1] // quantization.block_size, quantization.block_size)
    scales = quantization.scale.reshape(len(weights), -1).astype(np.float32)
    products = integer_matmul(
        (rows - zero_point).reshape(shape).swapaxes(0, 1), weights.reshape(shape).transpose(1, 2, 0)
    )
    result: Array = np.einsum("bnm,mb->nm", products, scales).astype(np.float32) * scale
    return result


def integer_matmul(a: Array, b: Array) -> Array:
    """The product of small integers, exact: BLAS in float64 holds every sum that fits 53 bits."""
    product: Array = np.matmul(a.astype(np.float64), b.astype(np.float64))
    return product


def row_scales(quantization: Quantization) -> Array:
    """The scales of a weight matrix, [rows] or [1]."""
    return np.asarray(quantization.scale, np.float32).reshape(-1)


def _symmetric(x: Array) -> tuple[Array, Array, Array]:
    largest = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(_HIGH)).astype(np.float32)
    inverse = np.divide(np.float32(_HIGH), largest, out=np.zeros_like(largest), where=largest != 0)
    return np.clip(_round(x * inverse), -_HIGH, _HIGH), scale, np.zeros_like(scale)


def _asymmetric(x: Array) -> tuple[Array, Array, Array]:
    low = x.min(axis=1, keepdims=True, initial=0.0).astype(np.float64)
    high = x.max(axis=1, keepdims=True, initial=0.0).astype(np.float64)
    scale = np.where(low == high, 1.0, (high - low) / (_HIGH - _LOW))
    # Of the two zero points that the ends of the range suggest, the one with the smaller rounding error.
    from_low, from_high = _LOW - low / scale, _HIGH - high / scale
    error_low, error_high = -_LOW + np.abs(low / scale), _HIGH + np.abs(high / scale)
    nearest = np.where(error_low < error_high, from_low, from_high)
    zero_point = np.where(low == high, 0.0, np.clip(_round(nearest), _LOW, _HIGH)).astype(np.float32)
    scale_ = scale.astype(np.float32)
    rows = np.clip(_round(zero_point + x * (np.float32(1) / scale_)), _LOW, _HIGH)
    return rows, scale_, zero_point


def _round(x: Array) -> Array:
    # Halves away from zero, as std::round does.
    rounded: Array = np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)
    return rounded
