"""DILATE: the elements of a tensor spread apart, with a padding value between them."""

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import require
from litecl.interpreter.kit.spread import spread
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.ops.reduce_window import spread_sizes


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, dilations, value = require.present(inputs, 3)
    require.same_type(x, value)
    rank = require.rank(x, at_least=1, at_most=6)
    if dilations.static_shape != (rank,):
        raise ShapeError(f"expected {rank} dilations, got shape {list(dilations.static_shape)}")
    if value.size != 1:
        raise ShapeError(f"expected one padding value, got shape {list(value.static_shape)}")
    steps = require.integers(dilations)
    if steps is None:
        return [TensorSpec(x.type, None)]
    if min(steps) < 1:
        raise ShapeError(f"expected dilations of 1 or more, got {steps}")
    return [TensorSpec(x.type, spread_sizes(x.static_shape, steps))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, dilations, value = require.arrays(inputs, 3)
    zeros = [0] * x.ndim
    return [spread(x, value, zeros, zeros, dilations.tolist())]


DILATE = Op("DILATE", options=NoOptions, infer=_infer, run=_run, integers=MOVING)
