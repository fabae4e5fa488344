"""Cases of SCATTER_ND."""

from litecl.cases import Case
from litecl.cases.values import Random, i32
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.scatter_nd import SCATTER_ND

_random = Random(21)


def _case(name: str, indices: Array, updates: Array, *shape: int) -> Case:
    return Case(name, SCATTER_ND, NoOptions(), [indices, updates, i32(*shape)], frozenset({2}))


CASES = (
    _case("elements", i32([[4], [1], [7]]), _random.normal(3), 9),
    _case("rows", i32([[2], [0]]), _random.normal(2, 4), 3, 4),
    _case("matrix elements", i32([[2, 1], [0, 3]]), _random.normal(2), 3, 4),
    _case("added up", i32([[2], [2], [2]]), _random.normal(3), 4),
    _case("matrix of indices", i32([[[2], [0]], [[1], [0]]]), _random.normal(2, 2, 3), 3, 3),
    _case("int32", i32([[2], [0]]), _random.integers(2), 4),
)
