"""Reductions over any set of axes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import require, types
from litecl.interpreter.ops.types import limits
from litecl.interpreter.schema import TensorType

Axes = tuple[int, ...]


@dataclass(frozen=True)
class ReducerOptions:
    keep_dims: bool = False


def axes_of(name: str, values: list[int], rank: int) -> Axes:
    """The axes that are reduced, each once, in order; a scalar has none, whatever is asked."""
    return tuple(sorted({require.axis(name, value, rank) for value in values})) if rank else ()


def reduced_shape(shape: Shape, axes: Axes, keep_dims: bool) -> Shape:
    """The shape after a reduction."""
    if keep_dims:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def _reducer(
    name: str,
    function: Callable[[Array, Axes, bool], Any],
    allowed: Collection[TensorType],
    versions: range = range(1, 2),
) -> Op:
    """The operator that applies ``function(x, axes, keep_dims)``."""

    def infer(options: ReducerOptions, inputs: Specs) -> list[TensorSpec]:
        x, axes = require.present(name, inputs, 2)
        require.types(name, x, allowed)
        values = require.integers(name, axes)
        if values is None:
            return [TensorSpec(x.type, None)]
        resolved = axes_of(name, values, len(x.static_shape))
        return [TensorSpec(x.type, reduced_shape(x.static_shape, resolved, options.keep_dims))]

    def run(options: ReducerOptions, inputs: Inputs) -> list[Array]:
        x, axes = require.arrays(inputs, 2)
        resolved = axes_of(name, axes.ravel().tolist(), x.ndim)
        with np.errstate(all="ignore"):
            return [np.asarray(function(x, resolved, options.keep_dims), x.dtype)]

    return Op(name, options=ReducerOptions, infer=infer, run=run, versions=versions)


def _sum(x: Array, axes: Axes, keep: bool) -> Any:
    return np.sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _mean(x: Array, axes: Axes, keep: bool) -> Any:
    count = np.prod([x.shape[axis] for axis in axes], dtype=np.int64)
    if x.dtype.kind == "f":
        return _sum(x, axes, keep) / x.dtype.type(count)
    total = np.sum(x, axis=axes, keepdims=keep, dtype=np.int64)
    return np.sign(total) * (np.abs(total) // count)  # C's division truncates


def _product(x: Array, axes: Axes, keep: bool) -> Any:
    return np.prod(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _extreme(ufunc: Any, x: Array, axes: Axes, keep: bool, start: Any) -> Any:
    """From the type's finite limit on, leaving NaN out; with no axis to reduce, the input as it is."""
    return ufunc.reduce(x, axis=axes, keepdims=keep, initial=start) if axes else x


def _max(x: Array, axes: Axes, keep: bool) -> Any:
    return _extreme(np.fmax, x, axes, keep, limits(x.dtype)[0])


def _min(x: Array, axes: Axes, keep: bool) -> Any:
    return _extreme(np.fmin, x, axes, keep, limits(x.dtype)[1])


def _any(x: Array, axes: Axes, keep: bool) -> Any:
    return np.any(x, axis=axes, keepdims=keep)


def _all(x: Array, axes: Axes, keep: bool) -> Any:
    return np.all(x, axis=axes, keepdims=keep)


_SUMMED = (*types.NUMBER, TensorType.BOOL)
_EXTREMES = (*types.NUMBER, TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.BOOL)

SUM = _reducer("SUM", _sum, _SUMMED, range(1, 3))
MEAN = _reducer("MEAN", _mean, types.NUMBER, range(1, 4))
REDUCE_PROD = _reducer("REDUCE_PROD", _product, _SUMMED, range(1, 3))
REDUCE_MAX = _reducer("REDUCE_MAX", _max, _EXTREMES, range(1, 4))
REDUCE_MIN = _reducer("REDUCE_MIN", _min, _EXTREMES, range(1, 4))
REDUCE_ANY = _reducer("REDUCE_ANY", _any, types.BOOL)
REDUCE_ALL = _reducer("REDUCE_ALL", _all, types.BOOL)
