"""Common parts of quantized operators: checks of nodes, packed weights, and the stage after the sums."""

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Const, Record, Refusal
from litecl.delegate.kit.claims import Specs, given, is_quantized
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_NAME = "CL_REGION"  # named in errors that claims rule out

_LARGEST_PRODUCT = 255 * 128
_LARGEST_WORD = 1 << 15
_MOST_SUM, _MOST_RESULT, _LEAST_SHIFT = 2.0**38, 2.0**31, -36  # rescale.wide
_SMALL_SUMS, _MOST_FOLDED = 1 << 30, 20  # within these bounds, adding a shifted zero point overflows no sum
_ACTIVATIONS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.RELU_N1_TO_1,
)


def applies(inputs: Specs, outputs: Sequence[TensorSpec]) -> bool:
    """Return whether an output or a non-constant input is quantized."""
    return any(is_quantized(spec) for spec in outputs) or any(
        is_quantized(spec) for spec in inputs if spec is not None and spec.data is None
    )


def per_tensor(*specs: TensorSpec | None) -> Refusal | None:
    """Refuse tensors without exactly one scale and zero point."""
    for spec in specs:
        if spec is None or spec.quantization is None or spec.quantization.scale.size != 1:
            return Refusal("not quantized with one scale per tensor")
    return None


def words(*specs: TensorSpec) -> Refusal | None:
    """Refuse 16-bit tensors with a zero point, or together with tensors of another size."""
    wide = [spec for spec in specs if spec.type == TensorType.INT16]
    if wide and len(wide) < len(specs):
        return Refusal("16-bit elements together with others")
    return Refusal("16-bit elements with a zero point") if any(zero_point(spec) for spec in wide) else None


def alike(x: TensorSpec, *others: TensorSpec) -> Refusal | None:
    """Refuse tensors whose type, scale or zero point differ."""
    if refusal := per_tensor(x, *others):
        return refusal
    same = all(
        other.type == x.type
        and fixed_point.scale_of(other) == fixed_point.scale_of(x)
        and fixed_point.zero_point_of(other) == fixed_point.zero_point_of(x)
        for other in others
    )
    return None if same else Refusal("input and output are quantized differently")


def bounded(options: Any) -> Refusal | None:
    """Refuse a fused activation that is not a clamp."""
    function = options.fused_activation_function
    return None if function in _ACTIVATIONS else Refusal(f"fused activation {function.name} of integers")


class StageRow(IntEnum):
    """Rows of a stage for 32-bit sums (``finish_sum`` in kernels_cl/quantized.h), an int for every column.

    THIRD: the left shift; with FOLDED the term that rounds the right shift and adds the zero point; with REAL_FACTORS
    the first half of a double, whose second half is in RIGHT.
    """

    BIAS = 0
    MULTIPLIER = 1
    THIRD = 2
    RIGHT = 3


class WideRow(IntEnum):
    """Rows of a stage for 64-bit sums (``finish_wide``), a double for every column."""

    BIAS = 0
    FACTOR = 1


@dataclass(frozen=True, eq=False)
class Weights:
    """Constant integer weights [groups, columns, depth] as kernels read them.

    values: signed bytes. factor: added to a value, gives the weight minus its zero point. factors: from sums to steps
    of the output, [groups, columns]. bits: that store a value.
    """

    values: Array
    factor: int
    bias: Array
    factors: Array
    bits: int = 8

    def repeated(self, times: int) -> "Weights":
        """Return the weights with their columns repeated."""
        arrays = [np.repeat(a[:, None], times, 1) for a in (self.values, self.bias, self.factors)]
        values, bias, factors = (a.reshape(a.shape[0], -1, *a.shape[3:]) for a in arrays)
        return replace(self, values=values, bias=bias, factors=factors)

    def packed(self, panel: int, runs: int = 1) -> Array:
        """Return the values, packed by ``packed`` below."""
        return packed(self.values, panel, runs, self.bits)

    @property
    def words(self) -> "Weights":
        """The same weights in 16 bits, to multiply 16-bit activations."""
        return replace(self, values=self.values.astype(np.int16), bits=8)

    @property
    def fits_float64(self) -> bool:
        """Return whether float64 represents sums over 16-bit activations times 15-bit factors exactly."""
        sums = np.abs(self.values.astype(np.int64)).sum(axis=2) * _LARGEST_WORD + np.abs(self.bias)
        least = int(fixed_point.quantize_multiplier(self.factors).shift.min(initial=0))
        return bool((sums < _MOST_SUM).all() and (sums * self.factors < _MOST_RESULT).all() and least >= _LEAST_SHIFT)

    def stage(
        self, panel: int, width: int, x_zero: int, bounds: "Bounds", *, real: bool = False, folds: bool = True
    ) -> "Stage":
        """Return the stage for the columns' sums, padded with zeros to a multiple of ``panel`` columns.

        Biases subtract the activations' zero point, ``x_zero``. If ``real``, factors are applied in float64.
        folds: whether the stage may be FOLDED or RECTIFIED, which does not suit all sums.
        """
        groups, columns, depth = self.values.shape
        sums = (self.values.astype(np.int64) + self.factor).sum(axis=2)
        biases = self.bias - x_zero * sums
        value, shift = fixed_point.quantize_multiplier(self.factors)
        third, right = np.maximum(shift, 0), np.maximum(-shift, 0)
        product = _LARGEST_WORD * 128 if self.values.dtype == np.int16 else _LARGEST_PRODUCT
        largest = np.abs(biases).max(initial=0) + depth * product
        folded = bool(folds and not real and not third.any() and right.max() <= _MOST_FOLDED and largest < _SMALL_SUMS)
        rectified = bool(folded and bounds.low >= bounds.zero and right.min() > 0)
        if folded:
            third = ((1 << right) >> 1) + (bounds.zero << right)
        table = np.zeros((len(StageRow), groups, -(-columns // panel) * panel), np.int32)
        table[StageRow.RIGHT] = rectified  # columns past the last
        for row, field in zip(StageRow, (biases, value, third, right), strict=True):
            table[row, :, :columns] = field
        fields = np.ascontiguousarray(table.reshape(len(StageRow), groups, -1, width).transpose(1, 2, 0, 3))
        if real:
            factors = np.zeros(table.shape[1:], np.float64)
            factors[:, :columns] = self.factors
            fields[:, :, StageRow.THIRD :] = factors.view(np.int32).reshape(groups, -1, 2, width)
        kind = "RECTIFIED" if rectified else "FOLDED" if folded else "REAL_FACTORS" if real else None
        return Stage(fields, {} if kind is None else {kind: 1})

    def wide_stage(self, panel: int, width: int, *, real: bool) -> "Stage":
        """Return the stage for 64-bit sums, whose zero points are 0: biases and factors as floats.

        Factors are real, or have 15 bits (the interpreter's ``rescale``).
        """
        groups, columns, _ = self.values.shape
        multiplier = fixed_point.quantize_multiplier(self.factors)
        reduced = fixed_point.reduced(multiplier) * 2.0 ** (multiplier.shift - 15.0)
        table = np.zeros((len(WideRow), groups, -(-columns // panel) * panel), np.float64)
        table[WideRow.BIAS, :, :columns] = self.bias
        table[WideRow.FACTOR, :, :columns] = self.factors if real else reduced
        fields = np.ascontiguousarray(table.reshape(len(WideRow), groups, -1, width).transpose(1, 2, 0, 3))
        fields = fields.view(np.int32)
        return Stage(fields, {"WIDE_SUMS": 1, "REAL_FACTORS" if real else "FLOORED": 1})


def stored_bits(type_: TensorType, depth: int) -> int:
    """Return the bits that store a weight of a type: the type's own, unless sums leave no room for that."""
    bits = {TensorType.INT4: 4, TensorType.INT2: 2}.get(type_, 8)
    return bits if depth * _LARGEST_PRODUCT < _MOST_RESULT else 8


def packed(values: Array, panel: int, runs: int = 1, bits: int = 8) -> Array:
    """Pack integers [groups, columns, depth] as [groups, columns / panel, depth / n, panel, n], padded with zeros.

    n: integers that fit in 4 bytes. Each of ``runs`` equal parts of the depth is padded. Integers of fewer than 8 bits
    are then joined: a byte holds those of one place in as many consecutive n (kernels_cl/patches.h).
    """
    groups, columns, depth = values.shape
    n, joined = 4 // values.dtype.itemsize, 8 // bits
    run = depth // runs
    padded = np.zeros((groups, -(-columns // panel) * panel, runs, -(-run // (n * joined)) * n * joined), values.dtype)
    padded[:, :columns, :, :run] = values.reshape(groups, columns, runs, run)
    split = padded.reshape(groups, -1, panel, runs * padded.shape[3] // (n * joined), joined, n)
    ordered = np.ascontiguousarray(split.transpose(4, 0, 1, 3, 2, 5))
    if bits == 8:
        return np.asarray(ordered[0])
    parts = [(part.view(np.uint8) & ((1 << bits) - 1)) << (bits * i) for i, part in enumerate(ordered)]
    joint: Array = np.bitwise_or.reduce(parts).astype(np.uint8).view(np.int8)
    return joint


def in_rows(values: Array, width: int) -> Array:
    """Return integers [1, columns, depth] as [columns, depth], rows zero-padded to vectors of 4 ``width`` bytes."""
    _, columns, depth = values.shape
    vector = 4 * width // values.dtype.itemsize
    rows = np.zeros((columns, -(-depth // vector) * vector), values.dtype)
    rows[:, :depth] = values[0]
    return rows


@dataclass(frozen=True, eq=False)
class Stage:
    """Fields [groups, columns / width, 4, width] of ``finish_sum`` in kernels_cl/quantized.h, and its macros."""

    fields: Array
    defines: dict[str, str | int | float]


def weights_of(inputs: Specs, out: TensorSpec, values: Array, groups: int, *, real: bool = False) -> Weights:
    """Return the weights [columns, ..] and the bias of an operator whose inputs are x, weights and perhaps a bias.

    real: whether factors are applied in float64, with unrounded scales.
    """
    x, filter_ = given(inputs, 0), given(inputs, 1)
    columns = len(values)
    shift = 128 if filter_.type == TensorType.UINT8 else 0
    signed = (values.astype(np.int16) - shift).astype(np.int8).reshape(groups, columns // groups, -1)
    bias = inputs[2] if len(inputs) > 2 else None
    biases = np.zeros(columns, np.int32) if bias is None or bias.data is None else np.ravel(bias.data)
    products = fixed_point.scale_of(x) * fixed_point.scales_of(filter_)
    if x.type == TensorType.UINT8 and not real:
        products = products.astype(np.float32).astype(np.float64)  # TFLite's legacy convolutions round here
    factors = np.broadcast_to(products / fixed_point.scale_of(out), columns).reshape(groups, -1)
    factor = shift - (fixed_point.zero_point_of(filter_) if len(products) == 1 else 0)
    bits = stored_bits(filter_.type, signed.shape[2])
    return Weights(signed, factor, biases.reshape(groups, -1).astype(np.int64), factors, bits)


@dataclass(frozen=True)
class Scale(Record):
    """A 31-bit multiplier and its shifts, one of which is 0."""

    multiplier: int
    left: int
    right: int


def scale(factor: float) -> Scale:
    """Return a factor in fixed point."""
    value, shift = (int(field) for field in fixed_point.quantize_multiplier(factor))
    return Scale(value, max(shift, 0), max(-shift, 0))


def zero_point(spec: TensorSpec) -> int:
    """Return the zero point of a tensor that is quantized as a whole."""
    return fixed_point.zero_point_of(spec)


def unsigned_zero(spec: TensorSpec) -> int:
    """Return the zero point of activations after their conversion to unsigned."""
    return fixed_point.zero_point_of(spec) + flip(spec.type)


def flip(type_: TensorType) -> int:
    """Return the number that makes elements unsigned when added."""
    return 128 if type_ == TensorType.INT8 else 0


def padding(spec: TensorSpec) -> Const:
    """Return the element that represents zero in a tensor."""
    return Const(np.full(1, fixed_point.zero_point_of(spec) if is_quantized(spec) else 0, spec.dtype))


@dataclass(frozen=True)
class Bounds:
    """The stage after rescaling: adds the output's zero point, and clamps the sum to [low, high]."""

    zero: int
    low: int
    high: int

    def defines(self, type_: TensorType) -> dict[str, str | int | float]:
        """Return the macro for results whose bounds are those of their type (kernels_cl/quantized.h)."""
        limits: Any = np.iinfo(type_.dtype)
        return {"SATURATED": 1} if (self.low, self.high) == (limits.min, limits.max) else {}


WORDS = Bounds(0, -_LARGEST_WORD, _LARGEST_WORD - 1)
"""Results of 16 bits, without a zero point."""


def bounds_of(options: Any, out: TensorSpec) -> Bounds:
    """Return the bounds of an output, after the fused activation if the operator has one."""
    function = getattr(options, "fused_activation_function", ActivationFunctionType.NONE)
    return Bounds(fixed_point.zero_point_of(out), *fixed_point.activation_range(function, out))
