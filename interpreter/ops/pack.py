"""PACK and UNPACK: tensors of one shape stacked along a new axis, and back."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class PackOptions:
    values_count: int = 0
    axis: int = 0


@dataclass(frozen=True)
class UnpackOptions:
    num: int = 0
    axis: int = 0


def _infer_pack(options: PackOptions, inputs: Specs) -> list[TensorSpec]:
    if len(inputs) != options.values_count:
        raise ShapeError(f"expected {options.values_count} inputs, got {len(inputs)}")
    parts = require.present(inputs, max(1, len(inputs)))
    type_ = require.same_type(*parts)
    shape = parts[0].static_shape
    for part in parts[1:]:
        if part.static_shape != shape:
            raise ShapeError(f"shapes differ: {list(shape)} and {list(part.static_shape)}")
    axis = require.axis(options.axis, len(shape) + 1)
    return [TensorSpec(type_, (*shape[:axis], len(parts), *shape[axis:]))]


def _run_pack(options: PackOptions, inputs: Inputs) -> list[Array]:
    return [np.stack(require.arrays(inputs, len(inputs)), options.axis)]


def _infer_unpack(options: UnpackOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    shape = x.static_shape
    axis = require.axis(options.axis, require.rank(x, at_least=1))
    if shape[axis] != options.num:
        raise ShapeError(f"expected {options.num} along axis {axis}, got shape {list(shape)}")
    return [TensorSpec(x.type, shape[:axis] + shape[axis + 1 :])] * options.num


def _run_unpack(options: UnpackOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    parts = np.moveaxis(x, options.axis, 0)
    # The ellipsis keeps an element of a vector an array.
    return [parts[i, ...].copy() for i in range(len(parts))]


PACK = Op(
    "PACK",
    options=PackOptions,
    infer=_infer_pack,
    run=_run_pack,
    versions=range(1, 6),
    integers=MOVING,
    lowest=lowest.integers(2, 3),
)
UNPACK = Op(
    "UNPACK",
    options=UnpackOptions,
    infer=_infer_unpack,
    run=_run_unpack,
    versions=range(1, 7),
    integers=MOVING,
    lowest=lowest.most(lowest.by_type({TensorType.BOOL: 3}), lowest.integers(2, 4)),
)
