"""Cases of PRELU."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, Random, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.prelu import PRELU

_random = Random(4)


def _case(name: str, x: Array, alpha: Array, constant: bool = True) -> Case:
    constants = frozenset({1} if constant else ())
    return Case(name, PRELU, NoOptions(), [x, alpha], constants, device=unfit(x))


CASES = (
    _case("slope a channel", _random.normal(2, 3, 4, 5), _random.normal(1, 1, 5)),
    _case("slope a channel, rank 1", _random.normal(2, 4, 5), _random.normal(5)),
    _case("slope an element", _random.normal(1, 3, 4, 5), _random.normal(3, 4, 5)),
    _case("slope a row", _random.normal(1, 3, 4, 5), _random.normal(3, 1, 1)),
    _case("one slope", EDGES, np.array([0.25], np.float32)),
    _case("slope computed", _random.normal(2, 3, 4, 5), _random.normal(1, 1, 5), constant=False),
    _case("empty", _random.normal(0, 5), _random.normal(5)),
)
