"""GATHER and GATHER_ND: slices of a tensor by index."""

from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType

_POSITIONS = (*types.INDEX, TensorType.INT16)


@dataclass(frozen=True)
class GatherOptions:
    axis: int = 0
    batch_dims: int = 0


def _axes(options: GatherOptions, x_rank: int, positions_rank: int) -> tuple[int, int]:
    """Return the axis and the number of leading dimensions that both inputs share."""
    axis = require.axis(options.axis, x_rank)
    batch = options.batch_dims + positions_rank if options.batch_dims < 0 else options.batch_dims
    if not 0 <= batch <= min(axis, positions_rank):
        raise ShapeError(f"batch_dims {options.batch_dims} out of range for axis {axis}")
    return axis, batch


def _infer_gather(options: GatherOptions, inputs: Specs) -> list[TensorSpec]:
    x, positions = require.present(inputs, 2)
    require.types(positions, _POSITIONS)
    shape, wanted = x.static_shape, positions.static_shape
    axis, batch = _axes(options, len(shape), len(wanted))
    if shape[:batch] != wanted[:batch]:
        raise ShapeError(f"batch dimensions differ: {list(shape[:batch])} and {list(wanted[:batch])}")
    return [TensorSpec(x.type, shape[:axis] + wanted[batch:] + shape[axis + 1 :])]


def _run_gather(options: GatherOptions, inputs: Inputs) -> list[Array]:
    x, positions = require.arrays(inputs, 2)
    axis, batch = _axes(options, x.ndim, positions.ndim)
    require.indices(positions, x.shape[axis])
    if batch == 0:
        return [np.asarray(np.take(x, positions, axis))]
    # Batches become one dimension: [batches, outer, axis, inner] by [batches, positions].
    batches = int(np.prod(x.shape[:batch], dtype=np.int64))
    outer = int(np.prod(x.shape[batch:axis], dtype=np.int64))
    inner = int(np.prod(x.shape[axis + 1 :], dtype=np.int64))
    flat = x.reshape(batches, outer, x.shape[axis], inner)
    count = int(np.prod(positions.shape[batch:], dtype=np.int64))
    wanted = positions.reshape(batches, 1, count, 1).astype(np.int64)
    taken = np.take_along_axis(flat, wanted, axis=2)
    return [taken.reshape(x.shape[:axis] + positions.shape[batch:] + x.shape[axis + 1 :])]


def _infer_gather_nd(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, indices = require.present(inputs, 2)
    require.types(indices, _POSITIONS)
    rank = require.rank(x, at_least=1)
    require.rank(indices, at_least=1)
    *outer, depth = indices.static_shape
    if depth > rank:
        raise ShapeError(f"{depth} indices for rank {rank}")
    return [TensorSpec(x.type, (*outer, *x.static_shape[depth:]))]


def _run_gather_nd(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, indices = require.arrays(inputs, 2)
    depth = indices.shape[-1]
    parts = [require.indices(indices[..., i], x.shape[i]) for i in range(depth)]
    if not parts:
        return [np.broadcast_to(x, indices.shape[:-1] + x.shape).copy()]
    return [np.asarray(x[tuple(parts)])]


def _lowest(options: Any, inputs: Specs) -> int:
    return 5 if options.batch_dims else lowest.by_type({TensorType.BOOL: 3})(options, inputs)


GATHER = Op(
    "GATHER",
    options=GatherOptions,
    infer=_infer_gather,
    run=_run_gather,
    versions=range(1, 9),
    integers=MOVING,
    lowest=lowest.most(_lowest, lowest.integers(2, 4)),
)
GATHER_ND = Op(
    "GATHER_ND",
    options=NoOptions,
    infer=_infer_gather_nd,
    run=_run_gather_nd,
    versions=range(1, 7),
    integers=MOVING,
    lowest=lowest.most(lowest.by_type({TensorType.STRING: 2}), lowest.integers(1, 3)),
)
