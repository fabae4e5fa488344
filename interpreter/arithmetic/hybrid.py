"""Dynamic-range quantization: float inputs are quantized row by row, multiplied by integer weights and scaled back.

The formulas are TFLite's (portable_tensor_utils.cc: SymmetricQuantizeFloats, AsymmetricQuantizeFloats).
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import exact
from litecl.interpreter.arithmetic.exact import Product
from litecl.interpreter.arithmetic.fixed_point import round_half_away
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import Bind, Inputs, Run, Specs
from litecl.interpreter.schema import TensorType

# The largest magnitude of an 8-bit integer minus its zero point.
_REACH = 255

INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)
WEIGHTS = (TensorType.FLOAT32, *INTEGERS)
"""Types that the weights of a float input may have."""


class RowKind(IntEnum):
    """How rows are quantized; the first two are the values of a file's ``asymmetric_quantize_inputs``.

    ASYMMETRIC is LiteRT's; NEAREST is XNNPACK's: asymmetric too, in floats, halves rounded to even.
    """

    SYMMETRIC = 0
    ASYMMETRIC = 1
    NEAREST = 2


_LOW, _HIGH = -128, 127
# Steps from zero to the largest integer of symmetric rows, and a length that is safe as divisor and dividend.
_STEPS = np.asarray(_HIGH, np.float32)
_SHORTEST = _STEPS * np.finfo(np.float32).tiny


@dataclass(frozen=True, eq=False)
class Prepared:
    """Prepared integer weights.

    scales: one, or one per row. product: makes a product with rows [n, depth] from weights [outputs, depth], only once
    if these are constant.
    """

    scales: Array
    product: Callable[[Array], Product]


Scales = Mapping[int, Prepared]
"""Prepared integer operands by position."""

NO_SCALES: Scales = {}


@dataclass(frozen=True, eq=False)
class Matrix:
    """Weights [outputs, depth] that multiply rows, float or integer; weights of rank 1 are a diagonal."""

    values: Array
    prepared: Prepared | None = None
    rows: int = RowKind.SYMMETRIC

    def __call__(self, x: Array) -> Array:
        """Return ``x @ values.T`` for ``x`` [..., depth]."""
        if self.values.ndim == 1:
            diagonal = self.values if self.prepared is None else dequantize(self.values, self.prepared.scales)
            return np.asarray(x * diagonal)
        if self.prepared is None:
            return np.asarray(x @ self.values.T)
        rows = matmul(x.reshape(-1, x.shape[-1]), self.values, self.prepared, self.rows)
        return rows.reshape(*x.shape[:-1], len(self.values))


def applies(x: TensorSpec, weights: TensorSpec) -> bool:
    """Return whether a float input meets integer weights."""
    return x.type == TensorType.FLOAT32 and weights.type in INTEGERS


def scales_of(weights: TensorSpec) -> Array:
    """Return the scales of integer weights, [1] or one per channel."""
    if weights.quantization is None or not weights.quantization.scale.size:
        raise UnsupportedOp(f"expected quantized weights, got {weights.type.name} without scales")
    return np.asarray(weights.quantization.scale, np.float32).reshape(-1)


def prepared(weights: TensorSpec) -> Prepared:
    """Prepare integer weights: their scales, and the product with them."""
    matrix = weights.shape is not None and len(weights.shape) == 2
    return Prepared(scales_of(weights), exact.once([weights], transposed) if matrix else transposed)


def transposed(weights: Array) -> Product:
    """Return the product of 8-bit rows with the transpose of integer weights."""
    return exact.product(integers(weights).T, _REACH)


def bind(run: Callable[[Any, Inputs, Scales], list[Array]]) -> Bind:
    """Return the ``bind`` of an operator whose ``run`` takes the scales of its integer operands."""

    def bound(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
        x = inputs[0]
        scales = {
            position: prepared(spec)
            for position, spec in enumerate(inputs)
            if x is not None and spec is not None and applies(x, spec)
        }
        return (lambda options, arrays: run(options, arrays, scales)) if scales else None

    return bound


def matmul(x: Array, weights: Array, prepared: Prepared, rows: int) -> Array:
    """Return ``x @ weights.T`` through 8-bit rows of ``x``."""
    bytes_, scale = quantize(x, rows)
    sums = prepared.product(weights)(bytes_).astype(np.float32, copy=False)
    result: Array = sums * (scale * prepared.scales)
    return result


def blockwise_matmul(x: Array, weights: Array, quantization: Quantization, rows: int) -> Array:
    """Return ``x @ weights.T`` for weights with a scale for every block of a row's elements."""
    bytes_, scale = quantize(x, rows)
    blocks = (-1, x.shape[1] // quantization.block_size, quantization.block_size)
    scales = quantization.scale.reshape(len(weights), -1).astype(np.float32)
    matrices = integers(weights).reshape(blocks).transpose(1, 2, 0)
    products = exact.matmul(bytes_.reshape(blocks).swapaxes(0, 1), matrices, _REACH * 128)
    result: Array = np.einsum("bnm,mb->nm", products, scales).astype(np.float32) * scale
    return result


def quantize(x: Array, rows: int, leading: int = 1) -> tuple[Array, Array]:
    """Return 8-bit integers minus their zero point, and a scale, for every ``x[i]``: ``x = scale * integers``.

    rows: a ``RowKind``. leading: the number of leading dimensions whose elements are quantized separately. The integers
    come as float32.
    """
    axes = tuple(range(leading, x.ndim))
    if not rows:
        return _symmetric(x, np.abs(x).max(axis=axes, keepdims=True, initial=0.0))
    low, high = (end(axis=axes, keepdims=True, initial=0.0) for end in (x.min, x.max))
    return (_nearest if rows == RowKind.NEAREST else _asymmetric)(x, low, high)


def integers(weights: Array) -> Array:
    """Return integer weights as float32. Old files call signed bytes UINT8."""
    signed = weights.view(np.int8) if weights.dtype == np.uint8 else weights
    return signed.astype(np.float32)


def summable(weights: Array, count: int) -> Array:
    """Return integer weights in a type that holds sums of ``count`` products with 8-bit integers."""
    return integers(weights).astype(exact.float_type(_REACH * 128 * count), copy=False)


def dequantize(weights: Array, scales: Array) -> Array:
    """Return the floats that integer weights represent; ``scales`` are along the first dimension, or one."""
    result: Array = integers(weights) * scales.reshape(-1, *(1,) * (weights.ndim - 1))
    return result


def _symmetric(x: Array, largest: Array) -> tuple[Array, Array]:
    span = np.maximum(largest, _SHORTEST)
    return round_half_away(x * (_STEPS / span)), span / _STEPS


@np.errstate(over="ignore", invalid="ignore")
def _nearest(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Quantize as XNNPACK does (xnn_f32_qd8_asymmetric_quantization_params), unless its floats overflow."""
    length = high - low
    usual = (length >= _SHORTEST) & (length < np.inf)
    rows, scale = _asymmetric(x, np.where(usual, 0, low), np.where(usual, 0, high))
    inverse = np.float32(_HIGH - _LOW) / np.where(usual, length, 1)
    least, most = low * inverse, high * inverse
    closer = (_LOW + least) + (_HIGH + most) > 0
    zero_point = np.rint(np.clip(np.where(closer, _LOW - least, _HIGH - most), _LOW, _HIGH))
    nearest = np.clip(np.rint(x * inverse) + zero_point, _LOW, _HIGH) - zero_point
    return np.where(usual, nearest, rows), np.where(usual, np.float32(1) / inverse, scale)


def _asymmetric(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    least, most = low.astype(np.float64), high.astype(np.float64)
    flat = most - least < _SHORTEST
    scale = np.where(flat, 1.0, np.float64(high - low) / (_HIGH - _LOW))  # LiteRT subtracts floats
    # Of the zero points from both ends of the range, take the one with the smaller rounding error.
    from_least, from_most = _LOW - least / scale, _HIGH - most / scale
    closer = np.abs(least / scale) - _LOW < np.abs(most / scale) + _HIGH
    zero_point = np.clip(round_half_away(np.where(closer, from_least, from_most)), _LOW, _HIGH).astype(np.float32)
    zero_point[flat] = 0
    scale = scale.astype(np.float32)
    rows = round_half_away(x * (np.float32(1) / scale))
    rows += zero_point
    rows.clip(_LOW, _HIGH, out=rows)
    rows -= zero_point
    return rows, scale
