"""BROADCAST_TO and BROADCAST_ARGS: a tensor repeated to a shape, and the shape that two shapes broadcast to."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs


def _infer_to(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, shape = require.present(inputs, 2)
    require.rank(shape, exactly=1)
    values = require.integers(shape)
    if values is None:
        return [TensorSpec(x.type, None)]
    wanted = tuple(values)
    if require.broadcast(x, TensorSpec(x.type, wanted)) != wanted:
        raise ShapeError(f"shape {list(x.static_shape)} does not broadcast to {values}")
    return [TensorSpec(x.type, wanted)]


def _run_to(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, shape = require.arrays(inputs, 2)
    return [np.broadcast_to(x, shape.tolist()).copy()]


def _infer_args(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    a, b = require.present(inputs, 2)
    type_ = require.types(a, types.INDEX)
    require.same_type(a, b)
    require.rank(a, exactly=1)
    require.rank(b, exactly=1)
    return [TensorSpec(type_, (max(a.size, b.size),))]


def _run_args(options: NoOptions, inputs: Inputs) -> list[Array]:
    a, b = require.arrays(inputs, 2)
    shapes = [TensorSpec(types.INDEX[0], tuple(shape.tolist())) for shape in (a, b)]
    return [np.array(require.broadcast(*shapes), a.dtype)]


BROADCAST_TO = Op(
    "BROADCAST_TO",
    options=NoOptions,
    infer=_infer_to,
    run=_run_to,
    versions=range(2, 5),
    integers=MOVING,
    lowest=lowest.most(lowest.at_least(2), lowest.integers(3, 3)),
)
BROADCAST_ARGS = Op("BROADCAST_ARGS", options=NoOptions, infer=_infer_args, run=_run_args)
