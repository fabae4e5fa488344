"""PRELU: the input, negative elements times a slope that is a tensor, broadcast to it."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.ops import require, types


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, alpha = require.present("PRELU", inputs, 2)
    require.types("PRELU", x, types.FLOAT)
    require.same_type("PRELU", x, alpha)
    if require.broadcast("PRELU", x, alpha) != x.shape:
        raise ShapeError(f"PRELU: alpha {alpha.shape} does not broadcast to the input {x.shape}")
    return [TensorSpec(x.type, x.shape)]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, alpha = require.arrays(inputs, 2)
    return [np.where(x >= 0, x, x * alpha)]


PRELU = Op("PRELU", options=NoOptions, infer=_infer, run=_run)
