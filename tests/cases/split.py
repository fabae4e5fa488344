"""Cases of SPLIT and SPLIT_V."""

from litecl.cases import Case
from litecl.cases.values import Random, i32, scalar, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.split import SPLIT, SPLIT_V, SplitOptions, SplitVOptions

_random = Random(17)


def _split(name: str, axis: int, x: Array, count: int) -> Case:
    return Case(name, SPLIT, SplitOptions(count), [scalar(axis), x], frozenset({0}), device=unfit(x))


def _split_v(name: str, x: Array, sizes: list[int], axis: int) -> Case:
    inputs = [x, i32(*sizes), scalar(axis)]
    return Case(name, SPLIT_V, SplitVOptions(len(sizes)), inputs, frozenset({1, 2}), device=unfit(x))


CASES = (
    _split("last", -1, _random.normal(2, 3, 8), 4),
    _split("first", 0, _random.normal(6, 3), 2),
    _split("middle", 1, _random.normal(2, 4, 3), 2),
    _split("into one", 1, _random.normal(2, 4), 1),
    _split("int32", 1, _random.integers(2, 4), 4),
    _split_v("last", _random.normal(2, 3, 8), [1, 5, 2], -1),
    _split_v("rest", _random.normal(2, 7), [2, -1, 1], 1),
    _split_v("first", _random.normal(5, 2), [4, 1], 0),
    _split_v("int32", _random.integers(2, 4), [3, 1], 1),
)
