"""DENSIFY: a sparse constant as a dense tensor.

The layout is TACO's (Chou, Kjolstad and Amarasinghe, 2018): levels are stored in ``traversal_order``, the dimensions of
the tensor before those of its blocks; ``block_map`` names the dimension that each block dimension divides.
"""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, DimensionMetadata, Shape, Sparsity, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs


def densify(values: Array, sparsity: Sparsity, shape: Shape) -> Array:
    """Return the tensor of ``shape`` whose stored values are ``values``."""
    coordinates = _coordinates(sparsity)
    count = len(coordinates[0]) if coordinates else 1
    if values.size != count:
        raise ModelError(f"the sparsity stores {count} values, got {values.size}")
    by_dimension = dict(zip(sparsity.traversal_order, coordinates, strict=True))
    sizes = dict(zip(sparsity.traversal_order, sparsity.dimensions, strict=True))
    index = [by_dimension[axis] for axis in range(len(shape))]
    for i, axis in enumerate(sparsity.block_map):
        block = len(shape) + i
        index[axis] = index[axis] * sizes[block].dense_size + by_dimension[block]
    dense = np.zeros(shape, values.dtype)
    dense[tuple(index)] = values.reshape(-1)
    return dense


def _coordinates(sparsity: Sparsity) -> list[Array]:
    """Return the coordinate of every stored value, for every level in stored order."""
    coordinates: list[Array] = []
    count = 1
    for level in sparsity.dimensions:
        parent, own = _children(level, count)
        coordinates = [*(known[parent] for known in coordinates), own]
        count = len(own)
    return coordinates


def _children(level: DimensionMetadata, parents: int) -> tuple[Array, Array]:
    """Return the entries of one level under all entries of the level above: their parents and their coordinates."""
    if level.segments is None or level.indices is None:
        limits.temporary("coordinates", (parents, level.dense_size), 24)
        return np.repeat(np.arange(parents), level.dense_size), np.tile(np.arange(level.dense_size), parents)
    if np.any(np.diff(level.segments) < 0):
        raise ModelError("expected segments that do not decrease")
    if len(level.segments) != parents + 1:
        raise ModelError(f"expected {parents + 1} segments, got {len(level.segments)}")
    count = int(level.segments[-1]) - int(level.segments[0])
    limits.temporary("coordinates", (count,), 24)
    return np.repeat(np.arange(parents), np.diff(level.segments)), level.indices.astype(np.int64)


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    return [TensorSpec(x.type, x.shape)]


def _bind(options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    (x,) = require.present(inputs, 1)
    sparsity, shape = x.sparsity, x.static_shape
    if sparsity is None:
        raise ModelError(f"expected sparsity parameters of {x.name!r}, got none")

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        (values,) = require.arrays(inputs, 1)
        return [densify(values, sparsity, shape)]

    return run


DENSIFY = Op("DENSIFY", options=NoOptions, infer=_infer, run=require.unbound, bind=_bind)
