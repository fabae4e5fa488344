"""Cases of SPACE_TO_DEPTH and DEPTH_TO_SPACE."""

from litecl.cases import Case
from litecl.cases.values import Random
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.space_to_depth import (
    DEPTH_TO_SPACE,
    SPACE_TO_DEPTH,
    DepthToSpaceOptions,
    SpaceToDepthOptions,
)

_random = Random(31)


def _to_depth(name: str, x: Array, block: int) -> Case:
    return Case(name, SPACE_TO_DEPTH, SpaceToDepthOptions(block), [x])


def _to_space(name: str, x: Array, block: int) -> Case:
    return Case(name, DEPTH_TO_SPACE, DepthToSpaceOptions(block), [x])


CASES = (
    _to_depth("2", _random.normal(1, 4, 6, 3), 2),
    _to_depth("3, batches", _random.normal(2, 3, 6, 1), 3),
    _to_depth("1", _random.normal(1, 2, 2, 2), 1),
    _to_depth("int32", _random.integers(1, 2, 4, 2), 2),
    _to_space("2", _random.normal(1, 4, 3, 8), 2),
    _to_space("3, batches", _random.normal(2, 1, 2, 9), 3),
    _to_space("1", _random.normal(1, 2, 2, 2), 1),
    _to_space("int32", _random.integers(1, 2, 2, 4), 2),
)
