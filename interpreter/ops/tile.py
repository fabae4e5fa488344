"""TILE: a tensor repeated along every axis."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, multiples = require.present(inputs, 2)
    rank = require.rank(x)
    if multiples.static_shape != (rank,):
        raise ShapeError(f"expected {rank} multiples, got shape {list(multiples.static_shape)}")
    values = require.integers(multiples)
    if values is None:
        return [TensorSpec(x.type, None)]
    if min(values, default=0) < 0:
        raise ShapeError(f"multiples must not be negative, got {values}")
    return [TensorSpec(x.type, tuple(size * times for size, times in zip(x.static_shape, values, strict=True)))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, multiples = require.arrays(inputs, 2)
    return [np.tile(x, multiples.tolist())]


TILE = Op(
    "TILE", options=NoOptions, infer=_infer, run=_run, versions=range(1, 4), integers=MOVING, lowest=lowest.integers(3)
)
