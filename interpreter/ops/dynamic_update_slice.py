"""DYNAMIC_UPDATE_SLICE: a tensor with a box in it replaced."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
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
    if any(new > old for new, old in zip(update.static_shape, x.static_shape, strict=True)):
        raise ShapeError(f"update {list(update.static_shape)} is larger than {list(x.static_shape)}")
    return [TensorSpec(x.type, x.shape)]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, update, start = require.arrays(inputs, 3)
    # A box that would reach past an edge is moved back inside.
    first = np.clip(start, 0, np.array(x.shape, np.int64) - update.shape).tolist()
    result = x.copy()
    result[tuple(slice(f, f + size) for f, size in zip(first, update.shape, strict=True))] = update
    return [result]


DYNAMIC_UPDATE_SLICE = Op(
    "DYNAMIC_UPDATE_SLICE", options=NoOptions, infer=_infer, run=_run, versions=range(1, 7), integers=MOVING
)
