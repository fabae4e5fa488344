"""Arithmetic that the integer LSTM cells share: scaled sums of products, saturation, bounds."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic import exact, rescale
from litecl.interpreter.arithmetic.exact import Product
from litecl.interpreter.arithmetic.rescale import Factor
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec


@dataclass(frozen=True, eq=False)
class Sums:
    """Rows times weights, plus bias, times a factor.

    weights: [outputs, depth]. bias, factors: one per output. zero_point: subtracted from the rows. product, offset,
    factor: made of these.
    """

    weights: Array
    bias: Array
    factors: Array
    zero_point: int
    product: Product
    offset: Array
    factor: Factor

    def __call__(self, rows: Array) -> Array:
        """Return whole numbers [..., outputs] for rows [..., depth]."""
        sums = self.product(rows.reshape(-1, rows.shape[-1])) + self.offset
        return self.factor(sums).reshape(*rows.shape[:-1], sums.shape[1])


Part = tuple[TensorSpec, TensorSpec | None, np.float32 | float]
"""Weights [outputs, depth], bias and factor."""


def sums(parts: Sequence[Part], zero_point: int, reach: int = 128) -> Sums:
    """Return the sums of several parts side by side, for constant weights whose own zero point counts as 0.

    zero_point: subtracted from the rows, whose elements are at most ``reach`` in magnitude.
    """
    weights = np.concatenate([constant(weights) for weights, _, _ in parts])
    matrix = weights.T.astype(np.int64)
    biases = [np.zeros(len(constant(w)), np.int64) if bias is None else constant(bias) for w, bias, _ in parts]
    factors = np.concatenate([np.full(len(constant(w)), factor, np.float64) for w, _, factor in parts])
    bias = np.concatenate(biases).astype(np.int64)
    offset = bias - zero_point * matrix.sum(axis=0)
    largest = float((reach * np.abs(matrix).sum(axis=0) + np.abs(offset)).max(initial=0))
    scale = rescale.twice_rounded(factors, largest)
    product = exact.product(matrix, reach)
    return Sums(weights, bias, factors, zero_point, product, offset.astype(exact.float_type(largest)), scale)


def constant(spec: TensorSpec) -> Array:
    """Return the value of an operand that TensorFlow Lite reads at preparation."""
    if spec.data is None:
        raise UnsupportedOp(f"expected a constant for {spec.name!r}, whose activations are quantized")
    return spec.data


def saturate(x: Array, bits: int = 16) -> Array:
    """Clamp whole numbers to the range of ``bits`` bits, as int64."""
    limit = 1 << (bits - 1)
    return np.asarray(np.minimum(np.maximum(x, -limit), limit - 1), np.int64)


def clip_of(bound: float, scale: np.float32, bits: int) -> int:
    """Return an option's bound in steps of a scale, 0 for none."""
    return int(np.clip(np.float32(bound) / scale, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)) if bound > 0 else 0


def clipped(x: Array, bound: int) -> Array:
    """Clamp ``x`` to plus and minus ``bound``, unless that is 0."""
    return np.clip(x, -bound, bound) if bound > 0 else x
