"""Cases of RFFT2D, REAL, IMAG and COMPLEX_ABS."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.spectral import COMPLEX_ABS, IMAG, REAL, RFFT2D

_random = Random(38)
_complex = (_random.normal(3, 4) + 1j * _random.normal(3, 4)).astype(np.complex64)


_huge = np.array([3e38 + 3e38j, 1e-30 - 1e-30j, 0, np.inf + np.nan * 1j, np.nan - 1j * np.inf, np.nan], np.complex64)


def _rfft(name: str, x: Array, height: int, width: int) -> Case:
    return Case(name, RFFT2D, NoOptions(), [x, i32(height, width)], frozenset({1}))


CASES = (
    _rfft("signal", _random.normal(1, 64), 1, 64),
    _rfft("batches", _random.normal(2, 3, 4, 8), 4, 8),
    _rfft("padded", _random.normal(3, 5), 4, 8),
    _rfft("cut", _random.normal(4, 9), 2, 8),
    _rfft("narrow columns", _random.normal(37, 5, 16, 2), 16, 2),
    _rfft("two points", _random.normal(35, 1, 2), 1, 2),
    _rfft("square", _random.normal(2, 64, 64), 64, 64),
    _rfft("long", _random.normal(3, 1, 1000), 1, 2048),
    _rfft("fewer rows", _random.normal(5, 2, 33), 8, 32),
    *(Case("complex64", op, NoOptions(), [_complex]) for op in (REAL, IMAG, COMPLEX_ABS)),
    *(Case("huge, infinite and NaN", op, NoOptions(), [_huge]) for op in (REAL, IMAG, COMPLEX_ABS)),
)
