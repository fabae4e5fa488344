"""Models whose integers differ between tflite-micro and LiteRT's reference kernels."""

import numpy as np

from litecl.cases import Case
from litecl.interpreter.graph import Quantization, TensorSpec
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import TensorType as T


def quantization(scale: float) -> Quantization:
    """A scale of a whole tensor."""
    return Quantization(np.array([scale], np.float32), np.zeros(1, np.int64))


def products(rows: int) -> Case:
    """FULLY_CONNECTED of INT16."""
    rng = np.random.default_rng(5)
    by = {0: quantization(0.0021), 1: quantization(0.013)}
    inputs = [
        rng.integers(-32768, 32768, (rows, 40)).astype(np.int16),
        rng.integers(-127, 128, (30, 40)).astype(np.int8),
        rng.integers(-(2**20), 2**20, 30).astype(np.int64),
    ]
    output = TensorSpec(T.INT16, None, quantization=quantization(0.09))
    options = FullyConnectedOptions()
    return Case("int16", FULLY_CONNECTED, options, inputs, frozenset({1, 2}), quantization=by, outputs=(output,))
