"""Cases of LEAKY_RELU."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, SPECIAL, Random, unfit
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU, LeakyReluOptions

_random = Random(2)
_empty = _random.normal(0, 2)

CASES = (
    Case("slope 0.1", LEAKY_RELU, LeakyReluOptions(0.1), [_random.normal(2, 3, 5)]),
    Case("edges, slope 0.3", LEAKY_RELU, LeakyReluOptions(0.3), [EDGES]),
    Case("slope 0", LEAKY_RELU, LeakyReluOptions(0.0), [_random.normal(7)]),
    Case("slope above 1", LEAKY_RELU, LeakyReluOptions(1.5), [_random.normal(1, 2, 3, 4)]),
    Case("negative slope", LEAKY_RELU, LeakyReluOptions(-0.5), [_random.normal(9)]),
    Case("infinities, negative slope", LEAKY_RELU, LeakyReluOptions(-2.0), [SPECIAL]),
    Case("infinite slope", LEAKY_RELU, LeakyReluOptions(np.inf), [EDGES]),
    Case("rank 0", LEAKY_RELU, LeakyReluOptions(0.2), [np.array(-2.0, np.float32)]),
    Case("empty", LEAKY_RELU, LeakyReluOptions(0.2), [_empty], device=unfit(_empty)),
)
