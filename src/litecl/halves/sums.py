"""Half precision arithmetic: rounding and sums."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from litecl.interpreter.graph import Array

LEAST_NORMAL = float(np.finfo(np.float16).tiny)
"""The smallest normal half, 2**-14."""
BLOCK = 8
"""How many products a block accumulates, as in litecl's half precision kernels."""


def rounded(x: Array) -> Array:
    """Return floats rounded to halves, as float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(np.float16).astype(np.float32)


def largest_lost(x: Array, halves: Array) -> float:
    """Return the largest finite magnitude that overflowed to infinity when rounded; 0 if none did."""
    lost = np.isinf(halves) & np.isfinite(x)
    return float(np.abs(x[lost]).max()) if lost.any() else 0.0


@dataclass
class Sums:
    """Accumulates in halves. block: how many products are added in sequence; the blocks' sums are then added, in halves
    too. A product isn't rounded before it is added, as compilers contract both to a fused multiply-add.

    overflow: the largest partial sum that overflowed a half, 0 if none did.
    """

    block: int = BLOCK
    overflow: float = 0.0

    def of(self, terms: Iterable[Array], like: Array) -> Array:
        """Return the sum of arrays; zeros in the shape of ``like`` if there are none."""
        rest, total = iter(terms), np.zeros_like(like)
        while part := list(islice(rest, 1)):
            block = self._rounded(part[0])
            for term in islice(rest, self.block - 1):
                block = self._rounded(block + term)
            total = self._rounded(total + block)
        return total

    def dot(self, x: Array, y: Array) -> Array:
        """Return the product of [.., rows, depth] and [.., depth, columns]."""
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        like = np.empty((*batch, x.shape[-2], y.shape[-1]), np.float32)
        return self.of((x[..., :, k, None] * y[..., None, k, :] for k in range(x.shape[-1])), like)

    def last(self, x: Array) -> Array:
        """Return the sums along the last axis."""
        return self.of((x[..., k] for k in range(x.shape[-1])), x[..., :0].sum(axis=-1))

    def _rounded(self, x: Array) -> Array:
        halves = rounded(x)
        if not np.isfinite(halves).all():
            self.overflow = max(self.overflow, largest_lost(x, halves))
        return halves
