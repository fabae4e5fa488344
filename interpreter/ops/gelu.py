"""GELU: the input times the normal distribution's probability of a smaller value (Hendrycks and Gimpel, 2016)."""

import math
from functools import cache

import numpy as np

from litecl.interpreter.arithmetic import halves, lookup
from litecl.interpreter.arithmetic import quantized_unary as quantized
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.interpreter.integers import PLAIN
from litecl.interpreter.kit import lowest, types
from litecl.interpreter.op import Op
from litecl.interpreter.ops.unary import bind_quantized, each, like_input


@dataclass(frozen=True)
class GeluOptions:
    approximate: bool = False


@cache
def _erf_table() -> tuple[Array, Array]:
    # Linear interpolation errs by h**2 / 8 * max|erf''| = 4e-9; past 6, erf is 1 to float64's last bit.
    points = np.linspace(-6.0, 6.0, 2**16 + 1)
    return points, np.array([math.erf(point) for point in points])


def erf(x: Array) -> Array:
    """Return the error function, to 1e-8, in float64."""
    return np.interp(x, *_erf_table())


def _gelu(options: GeluOptions, x: Array) -> Array:
    x = x.astype(np.float64)
    if options.approximate:
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + erf(x * math.sqrt(0.5))))


def _in_float32(options: GeluOptions, x: Array) -> Array:
    """Return GELU in TFLite's float32 operations (reference/gelu.h), by which it fills tables."""
    half = np.float32(0.5) * x
    if options.approximate:
        cubed = np.float32(0.044715) * x * x * x
        return half * (np.float32(1) + lookup.in_double(np.tanh)(np.float32(math.sqrt(2 / math.pi)) * (x + cubed)))
    return half * lookup.in_double(_erfc)(x * np.float32(-math.sqrt(0.5)))


def _erfc(x: Array) -> Array:
    return np.array([math.erfc(value) for value in x.tolist()])


GELU = halves.also(
    Op(
        "GELU",
        options=GeluOptions,
        infer=like_input(types.FLOAT, quantized.QUANTIZED),
        run=each(_gelu),
        bind=bind_quantized(quantized.table(_in_float32)),
        versions=range(1, 4),
        integers=PLAIN,
        lowest=lowest.integers(2),
    )
)
