"""Cases of MATRIX_DIAG and MATRIX_SET_DIAG."""

from litecl.cases import Case
from litecl.cases.values import Random
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.matrix_diag import MATRIX_DIAG, MATRIX_SET_DIAG

_random = Random(36)

CASES = (
    Case("vector", MATRIX_DIAG, NoOptions(), [_random.normal(4)]),
    Case("batches", MATRIX_DIAG, NoOptions(), [_random.normal(2, 3, 4)]),
    Case("int32", MATRIX_DIAG, NoOptions(), [_random.integers(3)]),
    Case("square", MATRIX_SET_DIAG, NoOptions(), [_random.normal(3, 3), _random.normal(3)]),
    Case("wide", MATRIX_SET_DIAG, NoOptions(), [_random.normal(2, 3, 5), _random.normal(2, 3)]),
    Case("tall", MATRIX_SET_DIAG, NoOptions(), [_random.normal(5, 3), _random.normal(3)]),
    Case("int32", MATRIX_SET_DIAG, NoOptions(), [_random.integers(3, 3), _random.integers(3)]),
)
