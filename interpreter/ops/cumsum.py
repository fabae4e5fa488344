"""CUMSUM: running sums along one axis."""

import numpy as np

from litecl.interpreter.arithmetic import halves
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Op, Specs


@dataclass(frozen=True)
class CumsumOptions:
    exclusive: bool = False
    reverse: bool = False


def _infer(options: CumsumOptions, inputs: Specs) -> list[TensorSpec]:
    x, axis = require.present(inputs, 2)
    require.types(x, types.NUMBER)
    value = require.integer(axis)
    if value is not None:
        require.axis(value, require.rank(x, at_least=1))
    return [TensorSpec(x.type, x.shape)]


def _run(options: CumsumOptions, inputs: Inputs) -> list[Array]:
    x, axis_ = require.arrays(inputs, 2)
    axis = require.axis(int(axis_.item()), x.ndim)
    terms = np.flip(x, axis) if options.reverse else x
    sums = np.cumsum(terms, axis, dtype=x.dtype)
    if options.exclusive:
        zero = np.zeros_like(sums[(slice(None),) * axis + (slice(0, 1),)])
        sums = np.concatenate([zero, sums], axis)[(slice(None),) * axis + (slice(0, x.shape[axis]),)]
    return [np.flip(sums, axis) if options.reverse else sums]


CUMSUM = halves.also(Op("CUMSUM", options=CumsumOptions, infer=_infer, run=_run))
