"""LOCAL_RESPONSE_NORMALIZATION: each element against the squares of the channels around it."""

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Op, Specs


@dataclass(frozen=True)
class LocalResponseNormalizationOptions:
    radius: int = 0
    bias: float = 0.0
    alpha: float = 0.0
    beta: float = 0.0


def _infer(options: LocalResponseNormalizationOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, types.FLOAT)
    require.rank(x, exactly=4)
    return [TensorSpec(x.type, x.shape)]


def _run(options: LocalResponseNormalizationOptions, inputs: Inputs) -> list[Array]:
    """Return x * (bias + alpha * sum of the squares within ``radius`` channels) ** -beta."""
    (x,) = require.arrays(inputs, 1)
    channels = x.shape[-1]
    reach = min(options.radius, channels - 1)
    squares = np.square(x)
    sums = squares.copy()
    for shift in range(1, reach + 1):
        limits.tick()
        sums[..., shift:] += squares[..., :-shift]
        sums[..., :-shift] += squares[..., shift:]
    scale = np.float32(options.bias) + np.float32(options.alpha) * sums
    with np.errstate(invalid="ignore"):
        return [x * scale ** np.float32(-options.beta)]


LOCAL_RESPONSE_NORMALIZATION = Op(
    "LOCAL_RESPONSE_NORMALIZATION", options=LocalResponseNormalizationOptions, infer=_infer, run=_run
)
