"""Formats of stored weights, and how to quantize to each."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from litecl.converter.quantization.clipping import nearest
from litecl.converter.quantization.gptq import Moments, compensated
from litecl.converter.quantization.scales import Affine, blocks, channels, dequantize, half_scales, integers
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit.types import integer_limits
from litecl.interpreter.schema import TensorType

Method = Literal["minmax", "mse", "octav", "gptq"]
TYPES = {8: TensorType.INT8, 4: TensorType.INT4, 2: TensorType.INT2}
"""The integer types of weights, by bits."""


@dataclass(frozen=True)
class Format:
    """How weights are stored.

    type: INT8, INT4, INT2, or FLOAT16. axis: of output channels, with a scale each; None for one scale.
    block: if not 0, elements per scale along the second and last dimension. symmetric: without zero point.
    method: how scales and integers are chosen: from the largest magnitude ("minmax"), with the smallest squared error
    by search ("mse") or by OCTAV's formula ("octav"), or so that later columns compensate errors ("gptq").
    """

    type: TensorType = TensorType.INT8
    axis: int | None = None
    block: int = 0
    symmetric: bool = True
    method: Method = "minmax"

    def __str__(self) -> str:
        by = f" in blocks of {self.block}" if self.block else "" if self.axis is not None else " with one scale"
        how = "" if self.method == "minmax" else f" by {self.method.upper()}"
        return f"{self.type.name.lower()}{'' if self.type == TensorType.FLOAT16 else by}{how}"


def stored(spec: TensorSpec, form: Format, moments: Moments | None = None, least: Array | None = None) -> TensorSpec:
    """Return a float32 constant in a format.

    moments: of the layer's inputs. "gptq" needs them, or else rounds like "mse"; the others weight errors by them.
    least: lower bounds for per-channel scales.
    """
    assert spec.data is not None
    if form.type == TensorType.FLOAT16:
        return replace(spec, type=form.type, data=spec.data.astype(np.float16), quantization=None)
    if not form.symmetric:
        return _asymmetric(spec, form)
    if form.method == "minmax":
        if form.block:
            return blocks(spec, form.block, form.type)
        return integers(spec, channels(spec, form.axis, least, form.type), form.type, symmetric=True)
    return _clipped(spec, form, moments, least)


def _clipped(spec: TensorSpec, form: Format, moments: Moments | None, least: Array | None) -> TensorSpec:
    """Return integers that clip large magnitudes if that reduces the error."""
    assert spec.data is not None
    rows = _rows(spec.data, form)
    last = integer_limits(form.type)[1]
    masses = None if moments is None else _masses(np.diag(moments.products), form, len(rows))
    scale = nearest(rows, last, "octav" if form.method == "octav" else "mse", masses)
    if least is not None:
        scale = np.maximum(scale, least).astype(np.float32)
    if form.block:
        scale = half_scales(scale)
    by = _affine(scale, spec, form)
    if form.method == "gptq" and moments is not None:
        matrix = spec.data.reshape(len(spec.data), -1).astype(np.float64)
        steps = np.broadcast_to(_spread(scale.astype(np.float64), form, matrix.shape), matrix.shape)
        values = compensated(matrix, steps, last, moments).reshape(spec.data.shape)
    else:
        exact = rows / scale.astype(np.float64).reshape(-1, 1)
        values = _back(np.rint(exact).clip(-last, last), spec.data, form)
    return replace(spec, type=form.type, data=values.astype(form.type.dtype), quantization=by)


def _rows(data: Array, form: Format) -> Array:
    """Return weights as float64, one row per scale."""
    wide = data.astype(np.float64)
    if form.block:
        return wide.reshape(-1, form.block)
    return (
        wide.reshape(1, -1) if form.axis is None else np.moveaxis(wide, form.axis, 0).reshape(wide.shape[form.axis], -1)
    )


def _back(rows: Array, data: Array, form: Format) -> Array:
    if form.block or form.axis is None:
        return rows.reshape(data.shape)
    shape = (data.shape[form.axis], *np.delete(data.shape, form.axis))
    return np.moveaxis(rows.reshape(shape), 0, form.axis)


def _masses(diagonal: Array, form: Format, rows: int) -> Array | None:
    """Return the weights of squared errors, [rows or 1, elements of a row]."""
    if form.axis is None and not form.block:
        return None
    return (
        np.tile(diagonal.reshape(-1, form.block), (rows * form.block // diagonal.size, 1))
        if form.block
        else diagonal[None]
    )


def _spread(scale: Array, form: Format, shape: tuple[int, ...]) -> Array:
    if form.block:
        return np.repeat(scale.reshape(shape[0], -1), form.block, axis=1)
    return scale.reshape(-1, 1)


def _affine(scale: Array, spec: TensorSpec, form: Format) -> Affine:
    assert spec.data is not None
    if form.block:
        by_block = scale.reshape(len(spec.data), -1)
        return Affine(by_block, np.zeros(by_block.shape, np.int64), 1, block_size=form.block)
    return Affine(scale.astype(np.float32), np.zeros(scale.size, np.int64), form.axis or 0)


def _asymmetric(spec: TensorSpec, form: Format) -> TensorSpec:
    """Return integers with a zero point per channel that span its smallest to its largest weight."""
    assert spec.data is not None
    rows = _rows(spec.data, form)
    low, high = np.minimum(rows.min(axis=1), 0), np.maximum(rows.max(axis=1), 0)
    first, last = integer_limits(form.type)
    scale = np.where(high > low, (high - low) / (last - first), 1.0).astype(np.float32)
    zero = np.clip(np.rint(first - low / scale), first, last).astype(np.int64)
    return integers(spec, Affine(scale, zero, form.axis or 0), form.type)


def widened(spec: TensorSpec) -> Array:
    """Return the floats that a stored constant represents."""
    assert spec.data is not None
    return spec.data.astype(np.float32) if spec.quantization is None else dequantize(spec.data, spec.quantization)
