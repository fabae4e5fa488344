"""Integer kernels of operators with weights: stored integers times weights, plus bias, rescaled to stored integers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import exact, fixed_point, rescale
from litecl.interpreter.arithmetic.exact import Product
from litecl.interpreter.arithmetic.rescale import FactorOf, Rescale, Stored
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.schema import ActivationFunctionType, TensorType

# Results computed at once, so that intermediate values stay within the cache.
_CHUNK_ELEMENTS = 1 << 16


Weighted = Callable[[Array], Array]
"""Maps stored integers [n, depth] to stored integers [n, outputs]: times weights, plus bias, rescaled."""


def _weighted(product: Product, offset: Array, last: Rescale, dtype: np.dtype[Any]) -> Weighted:
    """Return rows times weights, plus ``offset`` [1, outputs], rescaled to a type."""
    at_once = max(1, _CHUNK_ELEMENTS // max(1, offset.size))

    def run(rows: Array) -> Array:
        if len(rows) <= at_once:
            return last(product(rows) + offset)
        result = np.empty((len(rows), offset.size), dtype)
        for start in range(0, len(rows), at_once):
            limits.tick()
            part = slice(start, start + at_once)
            result[part] = last(product(rows[part]) + offset)
        return result

    return run


@dataclass(frozen=True, eq=False)
class Scaling:
    """The scaling of an operator's sums, by the types and the quantization of its tensors.

    factors: real ones from a sum to steps of the output, one or one per output channel. factor_of: how to apply them.
    stored: the form of the results.
    """

    x: TensorSpec
    zero_point: int
    weights_zero_point: int
    factors: Array
    factor_of: FactorOf
    stored: Stored

    @property
    def reach(self) -> int:
        """The largest magnitude of an input minus its zero point."""
        return exact.reach(self.x.dtype, self.zero_point)

    def centred(self, weights: Array) -> Array:
        """Return weights minus their zero point, as int64."""
        return weights.astype(np.int64) - self.weights_zero_point

    def rescale(self, low: Array, high: Array, channels: slice = slice(None)) -> Rescale:
        """Return the last step for some output channels, whose sums lie between ``low`` and ``high``."""
        factors = self.factors if len(self.factors) == 1 else self.factors[channels]
        return rescale.bounded(self.factor_of, factors, low, high, self.stored)

    def spread(self, weights: Array, bias: Array | None, axis: int) -> tuple[Array, Array, Rescale]:
        """Return weights (output channels along ``axis``) and bias in a type that holds all sums, and the last step."""
        taps = self.centred(weights)
        others = tuple(i for i in range(taps.ndim) if i != axis)
        added = np.zeros(taps.shape[axis], np.int64) if bias is None else bias.reshape(-1).astype(np.int64)
        bounds = self.reach * np.abs(taps).sum(axis=others)
        dtype = exact.float_type(float((bounds + np.abs(added)).max(initial=0)))
        return taps.astype(dtype), added.astype(dtype), self.rescale(added - bounds, added + bounds)

    def weighted(self, matrix: Array, bias: Array | None, channels: slice = slice(None)) -> Weighted:
        """Return the arithmetic of some output channels, given their weights [depth, outputs] and the bias of all."""
        columns = self.centred(matrix)
        added = np.zeros(columns.shape[1], np.int64) if bias is None else bias.reshape(-1)[channels].astype(np.int64)
        offset = added - self.zero_point * columns.sum(axis=0)
        bounds = self.reach * np.abs(columns).sum(axis=0)
        dtype = exact.float_type(float(np.maximum(bounds + np.abs(added), np.abs(offset)).max(initial=0)))
        multiply = exact.product(columns, exact.reach(self.x.dtype))
        last = self.rescale(added - bounds, added + bounds, channels)
        return _weighted(multiply, offset.astype(dtype)[None], last, self.stored.dtype)


def scaling(
    function: ActivationFunctionType,
    x: TensorSpec,
    weights: TensorSpec,
    output: TensorSpec,
    factor_of: FactorOf,
    *,
    coarse: bool = False,
) -> Scaling:
    """Return the scaling of an operator's sums. coarse: the kernel multiplies the operands' scales in float32."""
    low, high = fixed_point.activation_range(function, output)
    stored = Stored(fixed_point.zero_point_of(output), low, high, output.dtype)
    scales = fixed_point.scales_of(weights)
    # TensorFlow Lite takes zero points of signed weights per channel for zeros.
    weights_zero_point = fixed_point.zero_point_of(weights) if len(scales) == 1 else 0
    products: Array = fixed_point.scale_of(x) * scales
    if coarse:
        products = products.astype(np.float32).astype(np.float64)
    factors = products / fixed_point.scale_of(output)
    return Scaling(x, fixed_point.zero_point_of(x), weights_zero_point, factors, factor_of, stored)


def per_channel(weights: TensorSpec) -> bool:
    """Return whether weights have one scale per output channel."""
    return weights.quantization is not None and weights.quantization.scale.size > 1


def is_wide(x: TensorSpec, bias: TensorSpec | None, declared: TensorType = TensorType.FLOAT32) -> bool:
    """Return whether sums have 64 bits, as for 16-bit activations unless the bias has 32."""
    if x.type != TensorType.INT16:
        return False
    return (declared if bias is None else bias.type) != TensorType.INT32


def convolution_scaling(
    function: ActivationFunctionType,
    inputs: Sequence[TensorSpec | None],
    output: TensorSpec,
    *,
    declared: TensorType = TensorType.FLOAT32,
) -> Scaling:
    """Return the scaling of a convolution of input, filter and bias. declared: the type of an absent bias."""
    x, filter_, bias = inputs
    assert x is not None and filter_ is not None
    factor_of = rescale.wide if is_wide(x, bias, declared) else rescale.twice_rounded
    return scaling(function, x, filter_, output, factor_of, coarse=x.type == TensorType.UINT8)
