"""SPARSE_TO_DENSE: a tensor of a default value, with values inserted by index."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING_BYTES
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, Op, Specs


@dataclass(frozen=True)
class SparseToDenseOptions:
    validate_indices: bool = False


def _infer(options: SparseToDenseOptions, inputs: Specs) -> list[TensorSpec]:
    indices, shape, values, default = require.present(inputs, 4)
    require.rank(indices, at_most=2)
    require.rank(shape, exactly=1)
    require.rank(values, at_most=1)
    type_ = require.same_type(values, default)
    require.integers(indices)
    dims = require.integers(shape)
    rows = indices.static_shape
    if values.static_shape not in ((), rows[:1]):
        raise ShapeError(f"values {list(values.static_shape)} for indices {list(rows)}")
    return [TensorSpec(type_, None if dims is None else tuple(dims))]


def _run(options: SparseToDenseOptions, inputs: Inputs) -> list[Array]:
    indices, shape, values, default = require.arrays(inputs, 4)
    result = np.full(shape.tolist(), default.reshape(()), values.dtype)
    table = indices.reshape(-1, 1) if indices.ndim < 2 else indices
    if table.shape[1] != result.ndim:
        raise ShapeError(f"{table.shape[1]} indices for rank {result.ndim}")
    coordinates = [require.indices(table[:, i], size) for i, size in enumerate(result.shape)]
    result[tuple(coordinates)] = values
    return [result]


SPARSE_TO_DENSE = Op(
    "SPARSE_TO_DENSE",
    options=SparseToDenseOptions,
    infer=_infer,
    run=_run,
    versions=range(1, 4),
    integers=MOVING_BYTES,
    lowest=lowest.integers(3),
)
