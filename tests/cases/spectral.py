"""Cases of RFFT2D, REAL, IMAG and COMPLEX_ABS."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.spectral import COMPLEX_ABS, IMAG, REAL, RFFT2D

_random = Random(38)
_complex = (_random.normal(3, 4) + 1j * _random.normal(3, 4)).astype(np.complex64)


def _rfft(name: str, x: Array, height: int, width: int) -> Case:
    return Case(name, RFFT2D, NoOptions(), [x, i32(height, width)], frozenset({1}), device="type")


CASES = (
    _rfft("signal", _random.normal(1, 64), 1, 64),
    _rfft("batches", _random.normal(2, 3, 4, 8), 4, 8),
    _rfft("padded", _random.normal(3, 5), 4, 8),
    _rfft("cut", _random.normal(4, 9), 2, 8),
    *(Case("complex64", op, NoOptions(), [_complex], device="type") for op in (REAL, IMAG, COMPLEX_ABS)),
)
