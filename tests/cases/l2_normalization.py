"""Cases of L2_NORMALIZATION."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions

_random = rng(29)


def _x(*shape: int, scale: float = 3.0) -> Array:
    return (_random.standard_normal(shape) * scale).astype(np.float32)


CASES = (
    Case("rank 2", L2_NORMALIZATION, L2NormOptions(), [_x(3, 10)]),
    Case("rank 3", L2_NORMALIZATION, L2NormOptions(), [_x(2, 3, 5)]),
    Case("rank 4", L2_NORMALIZATION, L2NormOptions(), [_x(2, 3, 4, 130)]),
    Case("shorter than the shortest", L2_NORMALIZATION, L2NormOptions(), [_x(3, 10, scale=1e-8)]),
    Case("zeros", L2_NORMALIZATION, L2NormOptions(), [np.zeros((2, 4), np.float32)]),
)
