"""Cases of SOFTMAX."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions

_random = rng()


def _x(*shape: int, scale: float = 3.0) -> np.ndarray:
    return (_random.standard_normal(shape) * scale).astype(np.float32)


def _infinite() -> np.ndarray:
    x = _x(4, 11)
    x[0, 3], x[1, 10], x[2, 4], x[2, 5] = -np.inf, -np.inf, np.inf, 2.0
    return x


CASES = (
    Case("rank 2", SOFTMAX, SoftmaxOptions(1.0), [_x(3, 10)]),
    Case("rank 4, beta 0.5", SOFTMAX, SoftmaxOptions(0.5), [_x(2, 3, 4, 17)]),
    Case("one element", SOFTMAX, SoftmaxOptions(1.0), [_x(4, 1)]),
    *(
        Case(f"{length} elements, beta {beta:g}", SOFTMAX, SoftmaxOptions(beta), [_x(3, length)])
        for length in (5, 37)
        for beta in (0.0, -0.5, -3.0, 100.0, 1e-30, 3e38)
    ),
    Case("beta 2, infinities", SOFTMAX, SoftmaxOptions(2.0), [_infinite()]),
    Case("beta 0, infinities", SOFTMAX, SoftmaxOptions(0.0), [_infinite()]),
    Case("large magnitudes", SOFTMAX, SoftmaxOptions(1.0), [_x(2, 1001, scale=60.0)]),
)
