"""SELECT, SELECT_V2 and WHERE: elements by a condition, and the positions where one holds."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING, InFloat
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


def _infer_select(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    condition, x, y = require.present(inputs, 3)
    require.types(condition, types.BOOL)
    type_ = require.same_type(x, y)
    shape = x.static_shape
    if y.static_shape != shape:
        raise ShapeError(f"shapes differ: {list(shape)} and {list(y.static_shape)}")
    if condition.static_shape not in (shape, shape[:1], ()):
        raise ShapeError(f"condition {list(condition.static_shape)} does not fit {list(shape)}")
    return [TensorSpec(type_, shape)]


def _run_select(options: NoOptions, inputs: Inputs) -> list[Array]:
    condition, x, y = require.arrays(inputs, 3)
    # A vector chooses whole rows.
    rows = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim))
    return [np.where(rows, x, y)]


def _infer_select_v2(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    condition, x, y = require.present(inputs, 3)
    require.types(condition, types.BOOL)
    type_ = require.same_type(x, y)
    return [TensorSpec(type_, require.broadcast(condition, x, y))]


def _run_select_v2(options: NoOptions, inputs: Inputs) -> list[Array]:
    condition, x, y = require.arrays(inputs, 3)
    return [np.where(condition, x, y)]


def _infer_where(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    require.present(inputs, 1)
    return [TensorSpec(TensorType.INT64, None)]


def _run_where(options: NoOptions, inputs: Inputs) -> list[Array]:
    (condition,) = require.arrays(inputs, 1)
    return [np.argwhere(condition).astype(np.int64)]


SELECT = Op(
    "SELECT",
    options=NoOptions,
    infer=_infer_select,
    run=_run_select,
    versions=range(1, 5),
    integers=MOVING,
    lowest=lowest.integers(2),
)
SELECT_V2 = Op(
    "SELECT_V2", options=NoOptions, infer=_infer_select_v2, run=_run_select_v2, versions=range(1, 3), integers=MOVING
)
WHERE = Op(
    "WHERE",
    options=NoOptions,
    infer=_infer_where,
    run=_run_where,
    versions=range(1, 3),
    integers=InFloat("it looks for zeros, and small numbers would be rounded to zero"),
)
