"""TRANSPOSE: dimensions in another order."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


def permutation(values: list[int], rank: int) -> list[int]:
    """Return the permutation with its axes counted from the front."""
    axes = [require.axis(value, rank) for value in values]
    if sorted(axes) != list(range(rank)):
        raise ShapeError(f"expected a permutation of {rank} axes, got {values}")
    return axes


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, perm = require.present(inputs, 2)
    values = require.integers(perm)
    if values is None:
        return [TensorSpec(x.type, None)]
    axes = permutation(values, require.rank(x))
    return [TensorSpec(x.type, tuple(x.static_shape[axis] for axis in axes))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, perm = require.arrays(inputs, 2)
    return [np.transpose(x, perm.tolist()).copy()]


TRANSPOSE = Op(
    "TRANSPOSE",
    options=NoOptions,
    infer=_infer,
    run=_run,
    versions=range(1, 10),
    integers=MOVING,
    lowest=lowest.most(lowest.beyond_4(4, {TensorType.BOOL: 3}), lowest.integers(2, 5)),
)
