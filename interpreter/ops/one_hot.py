"""ONE_HOT: for every index a vector that is ``on`` there and ``off`` elsewhere, along a new axis."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING_BYTES
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Op, Specs


@dataclass(frozen=True)
class OneHotOptions:
    axis: int = 0


def _infer(options: OneHotOptions, inputs: Specs) -> list[TensorSpec]:
    indices, depth, on, off = require.present(inputs, 4)
    require.types(indices, types.INDEX)
    require.same_type(on, off)
    count = require.integer(depth)
    shape = indices.static_shape
    axis = require.axis(options.axis, len(shape) + 1)
    return [TensorSpec(on.type, None if count is None else (*shape[:axis], count, *shape[axis:]))]


def _run(options: OneHotOptions, inputs: Inputs) -> list[Array]:
    indices, depth, on, off = require.arrays(inputs, 4)
    axis = require.axis(options.axis, indices.ndim + 1)
    steps = np.arange(depth.item()).reshape([-1] + [1] * (indices.ndim - axis))
    hot = np.expand_dims(indices, axis) == steps
    return [np.where(hot, on.reshape(()), off.reshape(()))]


ONE_HOT = Op("ONE_HOT", options=OneHotOptions, infer=_infer, run=_run, integers=MOVING_BYTES)
