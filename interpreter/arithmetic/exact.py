"""Sums of products of small integers by floating-point matrix products: exact, because no sum exceeds the mantissa."""

from collections.abc import Callable
from math import ceil
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from litecl.interpreter.graph import Array
from litecl.interpreter.op import Specs

# The largest whole number up to which a float32 is exact, and the most blocks of a product in float32.
_SINGLE, _MOST_BLOCKS = 2.0**24, 4

_T = TypeVar("_T")


def float_type(largest: float) -> np.dtype[Any]:
    """Return the narrowest floating-point type that holds every whole number up to ``largest``."""
    return np.dtype(np.float32 if largest <= _SINGLE else np.float64)


def row(values: npt.ArrayLike) -> Array:
    """Return one value for all of [n, outputs], or one per output, in the shape that numpy combines soonest."""
    array = np.asarray(values, np.float64)
    return array.reshape(() if array.size == 1 else (1, -1))


def reach(dtype: np.dtype[Any], zero_point: int = 0) -> int:
    """Return the largest magnitude of a type's integers minus a zero point."""
    limits = np.iinfo(dtype)
    return max(abs(int(limits.min) - zero_point), abs(int(limits.max) - zero_point))


Product = Callable[[Array], Array]
"""Maps rows [n, depth] of any type to ``rows @ matrix`` [n, outputs]: whole numbers in a floating-point type."""


def product(matrix: Array, largest: int) -> Product:
    """Return the product with ``matrix`` [depth, outputs] for rows whose elements are at most ``largest`` in magnitude.

    It adds up a few blocks of the depth that are exact in float32, or else computes in float64.
    """
    bounds = largest * np.abs(matrix.astype(np.float64))
    count = ceil(bounds.sum(axis=0).max(initial=1.0) / _SINGLE)
    step = max(1, -(-len(matrix) // count))
    blocks = [slice(i, i + step) for i in range(0, max(1, len(matrix)), step)]
    if len(blocks) > _MOST_BLOCKS or any(bounds[b].sum(axis=0).max(initial=0.0) > _SINGLE for b in blocks):
        return _dot(np.ascontiguousarray(matrix, np.float64))
    parts = [(b, _dot(np.ascontiguousarray(matrix[b], np.float32))) for b in blocks]
    if len(parts) == 1:
        return parts[0][1]

    def run(rows: Array) -> Array:
        result = np.zeros((len(rows), matrix.shape[1]))
        for where, part in parts:
            result += part(rows[:, where])
        return result

    return run


def _dot(matrix: Array) -> Product:
    dtype = matrix.dtype
    return lambda rows: rows.astype(dtype, copy=False).dot(matrix)  # ``dot`` has less overhead than ``@``


def matmul(x: Array, y: Array, largest: float) -> Array:
    """Return ``x @ y`` for integers whose products are at most ``largest`` in magnitude."""
    dtype = float_type(largest * x.shape[-1])
    return np.asarray(np.matmul(x.astype(dtype), y.astype(dtype)))


def once(specs: Specs, make: Callable[..., _T]) -> Callable[..., _T]:
    """Wrap ``make``, which prepares operands for a kernel: it runs here, only once, if all of them are constant."""
    if any(spec is not None and spec.data is None for spec in specs):
        return make
    ready = make(*(None if spec is None else spec.data for spec in specs))
    return lambda *arrays: ready
