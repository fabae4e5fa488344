"""Cases of SOFTMAX."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions

_random = rng()


def _x(*shape: int, scale: float = 3.0) -> np.ndarray:
    return (_random.standard_normal(shape) * scale).astype(np.float32)


CASES = (
    Case("rank 2", SOFTMAX, SoftmaxOptions(1.0), [_x(3, 10)]),
    Case("rank 4, beta 0.5", SOFTMAX, SoftmaxOptions(0.5), [_x(2, 3, 4, 17)]),
    Case("one element", SOFTMAX, SoftmaxOptions(1.0), [_x(4, 1)]),
    Case("large magnitudes", SOFTMAX, SoftmaxOptions(1.0), [_x(2, 1001, scale=60.0)]),
)
