"""Cases of LOCAL_RESPONSE_NORMALIZATION."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.local_response_normalization import (
    LOCAL_RESPONSE_NORMALIZATION,
    LocalResponseNormalizationOptions,
)

_random = rng(30)


def _x(*shape: int) -> Array:
    return (_random.standard_normal(shape) * 2).astype(np.float32)


def _case(name: str, x: Array, *options: float) -> Case:
    """Options in the schema's order: radius, bias, alpha, beta."""
    radius, bias, alpha, beta = options
    chosen = LocalResponseNormalizationOptions(int(radius), bias, alpha, beta)
    # LiteRT's reference kernel leaves out the neighbourhood's last channel; the optimised one agrees with TensorFlow.
    return Case(name, LOCAL_RESPONSE_NORMALIZATION, chosen, [x], kernels="optimised")


CASES = (
    _case("radius 2", _x(1, 3, 3, 8), 2, 1.0, 0.5, 0.5),
    _case("radius 5, beta 0.75", _x(2, 2, 3, 17), 5, 2.0, 1e-1, 0.75),
    _case("radius beyond the channels", _x(1, 2, 2, 6), 20, 9.0, 4.0, 0.5),
    _case("radius as many as the channels", _x(1, 2, 2, 6), 6, 1.0, 1.0, 0.5),
    _case("beta 1", _x(1, 2, 2, 6), 1, 1.0, 1.0, 1.0),
    _case("radius 0", _x(1, 2, 2, 6), 0, 1.0, 1.0, 0.5),
)
