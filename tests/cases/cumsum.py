"""Cases of CUMSUM."""

from litecl.cases import Case
from litecl.cases.values import Random, scalar, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions

_random = Random(10)


def _case(name: str, x: Array, axis: int, exclusive: bool = False, reverse: bool = False) -> Case:
    options = CumsumOptions(exclusive, reverse)
    return Case(name, CUMSUM, options, [x, scalar(axis)], frozenset({1}), device=unfit(x))


CASES = (
    _case("last", _random.normal(3, 9), -1),
    _case("first", _random.normal(5, 2, 3), 0),
    _case("exclusive", _random.normal(2, 5, 3), 1, exclusive=True),
    _case("reverse", _random.normal(2, 5, 3), 1, reverse=True),
    _case("both", _random.normal(2, 5), 1, exclusive=True, reverse=True),
    _case("one element, exclusive", _random.normal(2, 1), 1, exclusive=True),
    _case("int32", _random.integers(2, 5), 1),
    _case("empty", _random.normal(2, 0), 1),
)
