"""SEGMENT_SUM and UNSORTED_SEGMENT_*: rows combined by segment."""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs


def _check_sorted(ids: Array) -> int:
    """Return the number of segments. Raises ModelError unless their ids count up from 0 without a gap."""
    if ids.size and (ids[0] != 0 or not np.isin(np.diff(ids), (0, 1)).all()):
        raise ModelError("expected consecutive segment ids from 0")
    return int(ids[-1]) + 1 if ids.size else 0


def _infer_sum(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, ids = require.present(inputs, 2)
    require.types(x, types.REAL)
    require.rank(x, at_least=1)
    require.rank(ids, exactly=1)
    if ids.size != x.static_shape[0]:
        raise ShapeError(f"{ids.size} segment ids for shape {list(x.static_shape)}")
    if ids.data is None:
        return [TensorSpec(x.type, None)]
    return [TensorSpec(x.type, (_check_sorted(ids.data), *x.static_shape[1:]))]


def _run_sum(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, ids = require.arrays(inputs, 2)
    result = np.zeros((_check_sorted(ids), *x.shape[1:]), x.dtype)
    np.add.at(result, ids, x)
    return [result]


def _unsorted(name: str, ufunc: np.ufunc, start: Callable[[np.dtype[Any]], Any]) -> Op:
    """Return the operator that combines rows with ``ufunc``; ``start`` is the value of an empty segment."""

    def infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
        x, ids, count = require.present(inputs, 3)
        require.types(x, types.REAL)
        rank = len(ids.static_shape)
        if x.static_shape[:rank] != ids.static_shape:
            raise ShapeError(f"segment ids {list(ids.static_shape)} for shape {list(x.static_shape)}")
        segments = require.integer(count)
        return [TensorSpec(x.type, None if segments is None else (segments, *x.static_shape[rank:]))]

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        x, ids, count = require.arrays(inputs, 3)
        result = np.full((int(count.item()), *x.shape[ids.ndim :]), start(x.dtype), x.dtype)
        counted = ids >= 0  # rows with a negative id are ignored
        ufunc.at(result, require.indices(ids[counted], len(result)), x[counted])
        return [result]

    return Op(name, options=NoOptions, infer=infer, run=run)


SEGMENT_SUM = Op("SEGMENT_SUM", options=NoOptions, infer=_infer_sum, run=_run_sum)
UNSORTED_SEGMENT_SUM = _unsorted("UNSORTED_SEGMENT_SUM", np.add, lambda dtype: 0)
UNSORTED_SEGMENT_PROD = _unsorted("UNSORTED_SEGMENT_PROD", np.multiply, lambda dtype: 1)
UNSORTED_SEGMENT_MAX = _unsorted("UNSORTED_SEGMENT_MAX", np.maximum, lambda dtype: types.limits(dtype)[0])
UNSORTED_SEGMENT_MIN = _unsorted("UNSORTED_SEGMENT_MIN", np.minimum, lambda dtype: types.limits(dtype)[1])
