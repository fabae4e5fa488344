"""RESHAPE, SQUEEZE and EXPAND_DIMS: the same elements under another shape."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class ReshapeOptions:
    new_shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class SqueezeOptions:
    squeeze_dims: tuple[int, ...] = ()


def _stretch(shape: Shape, wanted: list[int]) -> Shape:
    """Return ``wanted`` with its -1, if any, replaced to match the number of elements."""
    size = int(np.prod(shape, dtype=np.int64))
    given = int(np.prod([d for d in wanted if d != -1], dtype=np.int64))
    result = tuple(wanted)
    if wanted.count(-1) == 1:
        # Zeros stay out of the quotient unless only the input has them.
        filled = 0 if size == 0 and given != 0 else _nonzero(shape) // _nonzero(wanted)
        result = tuple(filled if d == -1 else d for d in wanted)
    if min(result, default=0) < 0 or int(np.prod(result, dtype=np.int64)) != size:
        raise ShapeError(f"{size} elements (shape {list(shape)}) do not fill shape {wanted}")
    return result


def _nonzero(shape: Shape | list[int]) -> int:
    return int(np.prod([d for d in shape if d not in (0, -1)], dtype=np.int64))


def _from_options(options: ReshapeOptions) -> list[int]:
    # Old files write a scalar's shape as [0].
    return [] if tuple(options.new_shape) == (0,) else list(options.new_shape)


def _infer_reshape(options: ReshapeOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    shape = inputs[1] if len(inputs) > 1 else None
    if shape is None or shape.type != TensorType.INT32 or len(shape.static_shape) != 1:
        return [TensorSpec(x.type, _stretch(x.static_shape, _from_options(options)))]
    values = require.integers(shape)
    return [TensorSpec(x.type, None if values is None else _stretch(x.static_shape, values))]


def _run_reshape(options: ReshapeOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    shape = inputs[1] if len(inputs) > 1 else None
    usable = shape is not None and shape.dtype == np.int32 and shape.ndim == 1
    wanted = shape.tolist() if usable and shape is not None else _from_options(options)
    return [x.reshape(_stretch(x.shape, wanted))]


def _bind_reshape(options: ReshapeOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    shape = outputs[0].shape
    return None if shape is None else lambda options, arrays: [require.arrays(arrays, 1)[0].reshape(shape)]


def _infer_squeeze(options: SqueezeOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    return [TensorSpec(x.type, _squeezed(x.static_shape, options.squeeze_dims))]


def _squeezed(shape: Shape, dims: tuple[int, ...]) -> Shape:
    axes = {require.axis(d, len(shape)) for d in dims} or {i for i, d in enumerate(shape) if d == 1}
    wrong = [axis for axis in axes if shape[axis] != 1]
    if wrong:
        raise ShapeError(f"dimension {wrong[0]} of shape {list(shape)} is not 1")
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def _run_squeeze(options: SqueezeOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    return [x.reshape(_squeezed(x.shape, options.squeeze_dims))]


def _infer_expand(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, axis = require.present(inputs, 2)
    value = require.integer(axis)
    return [TensorSpec(x.type, None if value is None else _expanded(x.static_shape, value))]


def _expanded(shape: Shape, axis: int) -> Shape:
    front = require.axis(axis, len(shape) + 1)
    return (*shape[:front], 1, *shape[front:])


def _run_expand(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, axis = require.arrays(inputs, 2)
    return [x.reshape(_expanded(x.shape, int(axis.item())))]


RESHAPE = Op(
    "RESHAPE", options=ReshapeOptions, infer=_infer_reshape, run=_run_reshape, bind=_bind_reshape, integers=MOVING
)
SQUEEZE = Op(
    "SQUEEZE", options=SqueezeOptions, infer=_infer_squeeze, run=_run_squeeze, versions=range(1, 3), integers=MOVING
)
EXPAND_DIMS = Op("EXPAND_DIMS", options=NoOptions, infer=_infer_expand, run=_run_expand, integers=MOVING)
