"""DYNAMIC_UPDATE_SLICE: a tensor with a box in it replaced."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, update, start = require.present(inputs, 3)
    require.same_type(x, update)
    require.types(start, types.INDEX)
    rank = require.rank(x)
    require.rank(update, exactly=rank)
    if start.static_shape != (rank,):
        raise ShapeError(f"expected {rank} start indices, got shape {list(start.static_shape)}")
    # The body of a loop over no rows writes a row to an empty list, and never runs.
    _check(update.static_shape, [old or new for new, old in zip(update.static_shape, x.static_shape, strict=True)])
    return [TensorSpec(x.type, x.shape)]


def _check(update: Shape, whole: Sequence[int]) -> None:
    if any(new > old for new, old in zip(update, whole, strict=True)):
        raise ShapeError(f"update {list(update)} is larger than {list(whole)}")


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, update, start = require.arrays(inputs, 3)
    _check(update.shape, x.shape)
    # A box that would reach past an edge is shifted inside.
    first = np.clip(start, 0, np.array(x.shape, np.int64) - update.shape).tolist()
    result = x.copy()
    result[tuple(slice(f, f + size) for f, size in zip(first, update.shape, strict=True))] = update
    return [result]


DYNAMIC_UPDATE_SLICE = Op(
    "DYNAMIC_UPDATE_SLICE", options=NoOptions, infer=_infer, run=_run, versions=range(1, 7), integers=MOVING
)
