"""SPLIT and SPLIT_V: a tensor cut along an axis, into equal parts or parts of given sizes."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class SplitOptions:
    num_splits: int = 0


@dataclass(frozen=True)
class SplitVOptions:
    num_splits: int = 0


def _parts(x: TensorSpec, axis: int, sizes: list[int]) -> list[TensorSpec]:
    shape = x.static_shape
    return [TensorSpec(x.type, (*shape[:axis], size, *shape[axis + 1 :])) for size in sizes]


def _cut(x: Array, axis: int, sizes: list[int]) -> list[Array]:
    return [part.copy() for part in np.split(x, np.cumsum(sizes)[:-1], axis)]


def _equal(length: int, count: int) -> list[int]:
    if count < 1 or length % count:
        raise ShapeError(f"dimension {length} does not divide into {count}")
    return [length // count] * count


def _given(length: int, sizes: list[int], count: int) -> list[int]:
    """Return the sizes, with the one that may be -1 filled in."""
    if len(sizes) != count or sizes.count(-1) > 1:
        raise ShapeError(f"expected {count} sizes with at most one -1, got {sizes}")
    rest = length - sum(size for size in sizes if size != -1)
    result = [rest if size == -1 else size for size in sizes]
    if min(result) < 0 or sum(result) != length:
        raise ShapeError(f"sizes {sizes} do not add up to {length}")
    return result


def _infer_split(options: SplitOptions, inputs: Specs) -> list[TensorSpec]:
    axis, x = require.present(inputs, 2)
    value = require.integer(axis)
    if value is None:
        return [TensorSpec(x.type, None)] * options.num_splits
    front = require.axis(value, require.rank(x))
    return _parts(x, front, _equal(x.static_shape[front], options.num_splits))


def _run_split(options: SplitOptions, inputs: Inputs) -> list[Array]:
    axis_, x = require.arrays(inputs, 2)
    axis = int(axis_.item())
    return _cut(x, axis, _equal(x.shape[axis], options.num_splits))


def _infer_split_v(options: SplitVOptions, inputs: Specs) -> list[TensorSpec]:
    x, sizes, axis = require.present(inputs, 3)
    value, wanted = require.integer(axis), require.integers(sizes)
    if value is None or wanted is None:
        return [TensorSpec(x.type, None)] * options.num_splits
    front = require.axis(value, require.rank(x))
    return _parts(x, front, _given(x.static_shape[front], wanted, options.num_splits))


def _run_split_v(options: SplitVOptions, inputs: Inputs) -> list[Array]:
    x, sizes, axis_ = require.arrays(inputs, 3)
    axis = int(axis_.item())
    return _cut(x, axis, _given(x.shape[axis], sizes.tolist(), options.num_splits))


SPLIT = Op(
    "SPLIT",
    options=SplitOptions,
    infer=_infer_split,
    run=_run_split,
    versions=range(1, 6),
    integers=MOVING,
    lowest=lowest.most(lowest.by_type({TensorType.INT32: 3}, 1), lowest.integers(2, 4)),
)
SPLIT_V = Op(
    "SPLIT_V",
    options=SplitVOptions,
    infer=_infer_split_v,
    run=_run_split_v,
    versions=range(1, 4),
    integers=MOVING,
    lowest=lowest.integers(2),
)
