"""RFFT2D, and REAL, IMAG and COMPLEX_ABS: the spectrum of real signals, and parts of complex numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType

_PARTS = {TensorType.COMPLEX64: TensorType.FLOAT32, TensorType.COMPLEX128: TensorType.FLOAT64}


def _infer_rfft(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, length = require.present(inputs, 2)
    require.types(x, types.FLOAT)
    require.rank(x, at_least=2)
    if length.static_shape != (2,):
        raise ShapeError(f"expected fft_length of shape [2], got {list(length.static_shape)}")
    values = require.integers(length)
    if values is None:
        return [TensorSpec(TensorType.COMPLEX64, None)]
    if any(value < 1 or value & (value - 1) for value in values):
        raise ShapeError(f"fft_length must be powers of two, got {values}")
    height, width = values
    return [TensorSpec(TensorType.COMPLEX64, (*x.static_shape[:-2], height, width // 2 + 1))]


def _run_rfft(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, length = require.arrays(inputs, 2)
    # A signal shorter than fft_length is padded with zeros, a longer one is cut.
    return [np.fft.rfft2(x, s=length.tolist(), axes=(-2, -1)).astype(np.complex64)]


def _part(name: str, function: Callable[[Array], Any]) -> Op:
    def infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
        (x,) = require.present(inputs, 1)
        return [TensorSpec(_PARTS[require.types(x, _PARTS)], x.shape)]

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        return [np.array(function(x))]

    return Op(name, options=NoOptions, infer=infer, run=run)


RFFT2D = Op("RFFT2D", options=NoOptions, infer=_infer_rfft, run=_run_rfft)
REAL = _part("REAL", np.real)
IMAG = _part("IMAG", np.imag)
COMPLEX_ABS = _part("COMPLEX_ABS", np.abs)
