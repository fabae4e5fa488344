"""FILL, ZEROS_LIKE and RANGE: tensors made from a few numbers."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.ops.unary import unary
from litecl.interpreter.schema import TensorType


def _infer_fill(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    dims, value = require.present(inputs, 2)
    require.types(dims, types.INDEX)
    require.rank(dims, exactly=1)
    require.rank(value, exactly=0)
    values = require.integers(dims)
    if values is not None and min(values, default=0) < 0:
        raise ShapeError(f"dimensions must not be negative, got {values}")
    return [TensorSpec(value.type, None if values is None else tuple(values))]


def _run_fill(options: NoOptions, inputs: Inputs) -> list[Array]:
    dims, value = require.arrays(inputs, 2)
    return [np.full(dims.tolist(), value, value.dtype)]


def _count(start: Array, limit: Array, delta: Array) -> int:
    """Return the count of numbers. Raises ShapeError for a step of 0 or in the wrong direction, and for NaN."""
    first, last, step = start.item(), limit.item(), delta.item()
    if not (first <= last and step > 0) and not (first >= last and step < 0):
        raise ShapeError(f"delta {step} does not lead from {first} to {last}")
    if start.dtype.kind != "f":
        return int(-(-(last - first) // step))
    with np.errstate(all="ignore"):
        count = np.ceil(np.abs((limit - start) / delta))  # in the type of the operands, as in TFLite
    if not np.isfinite(count):
        raise ShapeError(f"from {first} to {last} in steps of {step} has no finite number of elements")
    return int(count)


def _infer_range(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    operands = require.present(inputs, 3)
    type_ = require.same_type(*operands)
    require.types(operands[0], types.NUMBER)
    for operand in operands:
        require.rank(operand, exactly=0)
    known = [operand.data for operand in operands if operand.data is not None]
    return [TensorSpec(type_, None if len(known) < 3 else (_count(*known),))]


def _run_range(options: NoOptions, inputs: Inputs) -> list[Array]:
    start, limit, delta = require.arrays(inputs, 3)
    values = np.full(_count(start, limit, delta), delta, start.dtype)
    values[:1] = start
    # TFLite adds the step to the previous number, so rounding errors add up.
    return [np.add.accumulate(values, dtype=start.dtype)]


FILL = Op(
    "FILL",
    options=NoOptions,
    infer=_infer_fill,
    run=_run_fill,
    versions=range(1, 6),
    integers=MOVING,
    lowest=lowest.most(lowest.by_type({TensorType.BOOL: 2, TensorType.STRING: 2}, 1), lowest.integers(3, 3)),
)
ZEROS_LIKE = unary("ZEROS_LIKE", np.zeros_like, types.NUMBER)
RANGE = Op("RANGE", options=NoOptions, infer=_infer_range, run=_run_range, versions=range(1, 3))
