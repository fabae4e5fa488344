"""Cases of REDUCE_WINDOW."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.reduce_window import REDUCE_WINDOW, ReduceWindowOptions
from litecl.interpreter.schema import TensorType as T

_random = Random(71)


def _int64(*values: int) -> Array:
    return np.array(values, np.int64)


def _window(name: str, function: int, x: Array, start: float, size: Array, stride: Array, dilation: Array) -> Case:
    inputs = [x, scalar(start, x.dtype), size, stride, dilation]
    return Case(name, REDUCE_WINDOW, ReduceWindowOptions(function), inputs, frozenset({2, 3, 4}))


_small = _random.integers(4, 5, low=1, high=4, dtype=np.float32)

CASES = (
    *(
        _window(f"function {f}", f, _small, s, _int64(2, 2), _int64(1, 2), _int64(1, 1))
        for f, s in ((1, 0.5), (2, 2.0), (3, 9.0), (4, -1.0))
    ),
    *(
        _window(f"booleans {f}", f, _random.bools(4, 5), s, _int64(2, 3), _int64(1, 1), _int64(1, 1))
        for f, s in ((5, 1), (6, 0))
    ),
    _window("dilated", 1, _random.normal(7, 6), 0.0, _int64(3, 2), _int64(2, 1), _int64(2, 3)),
    *(
        _window(t.name, 4, _random.of(t, 3, 4), 0, _int64(2, 2), _int64(1, 1), _int64(1, 1))
        for t in (T.INT8, T.UINT8, T.INT16, T.INT32, T.INT64)
    ),
)
