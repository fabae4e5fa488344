"""Cases of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

from litecl.cases import Case
from litecl.cases.values import Random, i32
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.space_to_batch_nd import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND

_random = Random(32)


def _case(name: str, op: Op, x: Array, block: list[int], borders: list[list[int]]) -> Case:
    return Case(name, op, NoOptions(), [x, i32(*block), i32(borders)], frozenset({1, 2}))


_none = [[0, 0], [0, 0]]

CASES = (
    _case("2x2", SPACE_TO_BATCH_ND, _random.normal(1, 4, 6, 3), [2, 2], [[2, 0], [0, 2]]),
    _case("2x3, padded", SPACE_TO_BATCH_ND, _random.normal(2, 3, 4, 2), [2, 3], [[1, 0], [2, 0]]),
    _case("1x2", SPACE_TO_BATCH_ND, _random.normal(2, 3, 4, 1), [1, 2], _none),
    _case("rank 3", SPACE_TO_BATCH_ND, _random.normal(2, 5, 3), [2], [[0, 1]]),
    _case("int32", SPACE_TO_BATCH_ND, _random.integers(1, 2, 2, 1), [2, 2], _none),
    _case("2x2", BATCH_TO_SPACE_ND, _random.normal(4, 2, 3, 3), [2, 2], _none),
    _case("2x3, cropped", BATCH_TO_SPACE_ND, _random.normal(12, 2, 2, 2), [2, 3], [[1, 0], [2, 1]]),
    _case("1x2", BATCH_TO_SPACE_ND, _random.normal(4, 3, 2, 1), [1, 2], _none),
    _case("rank 3", BATCH_TO_SPACE_ND, _random.normal(4, 3, 3), [2], [[0, 1]]),
    _case("int32", BATCH_TO_SPACE_ND, _random.integers(4, 1, 1, 1), [2, 2], _none),
)
