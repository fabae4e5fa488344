"""GELU: the input times the normal distribution's probability of a smaller value (Hendrycks and Gimpel, 2016)."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops import types
from litecl.interpreter.ops.unary import each, like_input


@dataclass(frozen=True)
class GeluOptions:
    approximate: bool = False


@cache
def _erf_table() -> tuple[Array, Array]:
    # Linear interpolation errs by h**2 / 8 * max|erf''| = 7e-9; past 4, erf is 1 to float32's last bit.
    points = np.linspace(-4.0, 4.0, 2**15 + 1)
    return points, np.array([math.erf(point) for point in points])


def erf(x: Array) -> Array:
    """The error function, to 1e-8, in float64."""
    return np.interp(x, *_erf_table())


def _gelu(options: GeluOptions, x: Array) -> Array:
    if options.approximate:
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + erf(x * math.sqrt(0.5))))


GELU = Op(
    "GELU", options=GeluOptions, infer=like_input("GELU", types.FLOAT), run=each(_gelu), versions=range(1, 3)
)
