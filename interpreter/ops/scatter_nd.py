"""SCATTER_ND: slices added into a tensor of zeros, by index."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import ADDS_ZEROS
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    indices, updates, shape = require.present(inputs, 3)
    require.rank(indices, at_least=1)
    require.rank(shape, exactly=1)
    require.integers(indices)
    values = require.integers(shape)
    if values is None:
        return [TensorSpec(updates.type, None)]
    *outer, depth = indices.static_shape
    if depth > len(values) or updates.static_shape != (*outer, *values[depth:]):
        raise ShapeError(
            f"updates {list(updates.static_shape)} do not fit indices {list(indices.static_shape)} into shape {values}"
        )
    return [TensorSpec(updates.type, tuple(values))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    indices, updates, shape = require.arrays(inputs, 3)
    result = np.zeros(shape.tolist(), updates.dtype)
    depth = indices.shape[-1]
    parts = tuple(require.indices(indices[..., i], result.shape[i]) for i in range(depth))
    np.add.at(result, parts, updates)
    return [result]


SCATTER_ND = Op("SCATTER_ND", options=NoOptions, infer=_infer, run=_run, integers=ADDS_ZEROS)
