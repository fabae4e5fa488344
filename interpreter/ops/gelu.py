"""GELU: the input times the normal distribution's probability of a smaller value (Hendrycks and Gimpel, 2016)."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops import quantized_unary as quantized
from litecl.interpreter.ops import types
from litecl.interpreter.ops.unary import bind_quantized, each, like_input
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class GeluOptions:
    approximate: bool = False


@cache
def _erf_table() -> tuple[Array, Array]:
    # Linear interpolation errs by h**2 / 8 * max|erf''| = 4e-9; past 6, erf is 1 to float64's last bit.
    points = np.linspace(-6.0, 6.0, 2**16 + 1)
    return points, np.array([math.erf(point) for point in points])


def erf(x: Array) -> Array:
    """The error function, to 1e-8, in float64."""
    return np.interp(x, *_erf_table())


def _gelu(options: GeluOptions, x: Array) -> Array:
    x = x.astype(np.float64)
    if options.approximate:
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + erf(x * math.sqrt(0.5))))


GELU = Op(
    "GELU",
    options=GeluOptions,
    infer=like_input("GELU", (*types.FLOAT, TensorType.FLOAT16), quantized.QUANTIZED),
    run=each(_gelu),
    bind=bind_quantized("GELU", quantized.table(_gelu)),
    versions=range(1, 4),
)
