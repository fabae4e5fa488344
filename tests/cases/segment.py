"""Cases of SEGMENT_SUM and UNSORTED_SEGMENT_*."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import segment as ops

_random = Random(30)
_UNSORTED = (
    ops.UNSORTED_SEGMENT_SUM,
    ops.UNSORTED_SEGMENT_PROD,
    ops.UNSORTED_SEGMENT_MAX,
    ops.UNSORTED_SEGMENT_MIN,
)


def _sum(name: str, x: Array, *ids: int) -> Case:
    # LiteRT has no reference kernel.
    return Case(name, ops.SEGMENT_SUM, NoOptions(), [x, i32(*ids)], frozenset({1}), kernels="optimised")


def _unsorted(name: str, op: Op, x: Array, ids: Array, count: int) -> Case:
    return Case(name, op, NoOptions(), [x, ids, scalar(count)], frozenset({2}))


CASES = (
    _sum("vector", _random.normal(6), 0, 0, 1, 1, 1, 2),
    _sum("rows", _random.normal(4, 3), 0, 1, 1, 2),
    _sum("int32", _random.integers(3, 2), 0, 0, 1),
    *(
        case
        for op in _UNSORTED
        for case in (
            _unsorted("rows", op, _random.normal(5, 3), i32(2, 0, 2, 1, 0), 3),
            _unsorted("an empty segment", op, _random.normal(3, 2), i32(3, 0, 3), 4),
            _unsorted("negative ids", op, _random.normal(4), i32(1, -1, 0, 1), 2),
            _unsorted("matrix of ids", op, _random.normal(2, 2, 3), i32([[1, 0], [1, 2]]), 3),
            _unsorted("int32", op, _random.integers(5), i32(2, 0, 2, 1, 0), 3),
            _unsorted("one segment", op, np.round(_random.normal(4, 2)), i32(0, 0, 0, 0), 1),
        )
    ),
)
