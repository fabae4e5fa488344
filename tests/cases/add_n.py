"""Cases of ADD_N."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.add_n import ADD_N

_random = Random(7)

CASES = (
    Case("three", ADD_N, NoOptions(), [_random.normal(2, 3) for _ in range(3)]),
    Case("two, int32", ADD_N, NoOptions(), [_random.integers(2, 3) for _ in range(2)]),
    Case("five of rank 0", ADD_N, NoOptions(), [np.asarray(_random.normal()) for _ in range(5)]),
)
