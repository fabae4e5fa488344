"""Cases of LOG_SOFTMAX."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX, LogSoftmaxOptions

_random = rng(28)


def _x(*shape: int, scale: float = 3.0) -> Array:
    return (_random.standard_normal(shape) * scale).astype(np.float32)


CASES = (
    Case("rank 1", LOG_SOFTMAX, LogSoftmaxOptions(), [_x(6)]),
    Case("rank 2", LOG_SOFTMAX, LogSoftmaxOptions(), [_x(3, 10)]),
    Case("rank 4", LOG_SOFTMAX, LogSoftmaxOptions(), [_x(2, 3, 4, 17)]),
    Case("large magnitudes", LOG_SOFTMAX, LogSoftmaxOptions(), [_x(2, 101, scale=60.0)]),
    Case("one element", LOG_SOFTMAX, LogSoftmaxOptions(), [_x(4, 1)]),
)
