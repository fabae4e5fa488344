"""MATRIX_DIAG and MATRIX_SET_DIAG: matrices with a given diagonal, zero or given elsewhere."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING, MOVING_WORDS
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs


def _infer_diag(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.rank(x, at_least=1)
    return [TensorSpec(x.type, (*x.static_shape, x.static_shape[-1]))]


def _run_diag(options: NoOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    matrix = np.zeros((*x.shape, x.shape[-1]), x.dtype)
    diagonal = np.arange(x.shape[-1])
    matrix[..., diagonal, diagonal] = x
    return [matrix]


def _infer_set(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, diagonal = require.present(inputs, 2)
    require.rank(x, at_least=2)
    require.same_type(x, diagonal)
    *outer, rows, columns = x.static_shape
    if diagonal.static_shape != (*outer, min(rows, columns)):
        raise ShapeError(f"diagonal {list(diagonal.static_shape)} for {list(x.static_shape)}")
    return [TensorSpec(x.type, x.shape)]


def _run_set(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, diagonal = require.arrays(inputs, 2)
    matrix = x.copy()
    steps = np.arange(diagonal.shape[-1])
    matrix[..., steps, steps] = diagonal
    return [matrix]


MATRIX_DIAG = Op("MATRIX_DIAG", options=NoOptions, infer=_infer_diag, run=_run_diag, integers=MOVING_WORDS)
MATRIX_SET_DIAG = Op("MATRIX_SET_DIAG", options=NoOptions, infer=_infer_set, run=_run_set, integers=MOVING)
