"""FILL and ZEROS_LIKE: tensors of one value."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.ops import require, types
from litecl.interpreter.ops.unary import unary


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    dims, value = require.present("FILL", inputs, 2)
    require.types("FILL", dims, types.INDEX)
    require.rank("FILL", dims, exactly=1)
    require.rank("FILL", value, exactly=0)
    values = require.integers("FILL", dims)
    if values is not None and min(values, default=0) < 0:
        raise ShapeError(f"FILL: dimensions must not be negative, got {values}")
    return [TensorSpec(value.type, None if values is None else tuple(values))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    dims, value = require.arrays(inputs, 2)
    return [np.full(dims.tolist(), value, value.dtype)]


FILL = Op("FILL", options=NoOptions, infer=_infer, run=_run, versions=range(1, 5))
ZEROS_LIKE = unary("ZEROS_LIKE", np.zeros_like, types.NUMBER)
