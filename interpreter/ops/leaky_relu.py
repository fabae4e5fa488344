"""LEAKY_RELU: the input, negative elements times a constant slope."""

import numpy as np

from litecl.interpreter.arithmetic import halves
from litecl.interpreter.arithmetic import quantized_unary as quantized
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.interpreter.integers import PLAIN
from litecl.interpreter.kit import lowest, types
from litecl.interpreter.op import Op
from litecl.interpreter.ops.unary import bind_quantized, each, like_input


@dataclass(frozen=True)
class LeakyReluOptions:
    alpha: float = 0.0


def _leaky_relu(options: LeakyReluOptions, x: Array) -> Array:
    return np.where(x > 0, x, x * np.float32(options.alpha))


LEAKY_RELU = halves.also(
    Op(
        "LEAKY_RELU",
        options=LeakyReluOptions,
        infer=like_input(types.FLOAT, quantized.QUANTIZED),
        run=each(_leaky_relu),
        bind=bind_quantized(quantized.leaky_relu),
        versions=range(1, 3),
        integers=PLAIN,
        lowest=lowest.integers(1, 2),
    )
)
