"""Cases of GELU."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, Random, unfit
from litecl.interpreter.ops.gelu import GELU, GeluOptions

_random = Random(3)
_empty = _random.normal(0, 2)

CASES = tuple(
    case
    for kind in (GeluOptions(False), GeluOptions(True))
    for case in (
        Case(f"rank 3, {kind.approximate}", GELU, kind, [_random.normal(2, 3, 5)]),
        Case(f"edges, {kind.approximate}", GELU, kind, [EDGES]),
        Case(f"small values, {kind.approximate}", GELU, kind, [_random.normal(1000, scale=0.01)]),
        Case(f"tails, {kind.approximate}", GELU, kind, [np.linspace(-7, -3, 101, dtype=np.float32)], tolerance=1e-3),
        Case(f"rank 0, {kind.approximate}", GELU, kind, [np.array(-0.7, np.float32)]),
        Case(f"empty, {kind.approximate}", GELU, kind, [_empty], device=unfit(_empty)),
    )
)
