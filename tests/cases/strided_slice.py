"""Cases of STRIDED_SLICE."""

from typing import Any

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.schema import TensorType

_random = Random(16)
_x = _random.normal(4, 5, 6)


def _case(name: str, begin: list[int], end: list[int], strides: list[int], x: Array = _x, **masks: Any) -> Case:
    options = StridedSliceOptions(**masks)
    inputs = [x, i32(*begin), i32(*end), i32(*strides)]
    return Case(name, STRIDED_SLICE, options, inputs, frozenset({1, 2, 3}), device=unfit(x))


CASES = (
    _case("box", [1, 0, 2], [3, 5, 5], [1, 1, 1]),
    _case("strides", [0, 1, 0], [4, 5, 6], [2, 3, 4]),
    _case("negative ends", [-3, -4, -6], [-1, -1, -2], [1, 1, 2]),
    _case("backwards", [3, 4, 5], [0, 1, 0], [-1, -2, -3]),
    _case("backwards through the start", [3, 4, 5], [-9, -9, -9], [-1, -2, -3]),
    _case("backwards, masked", [0, 0, 0], [0, 0, 0], [-1, -1, -2], begin_mask=7, end_mask=7),
    _case("past the ends", [-9, 0, 0], [9, 9, 9], [1, 1, 1]),
    _case("begin mask", [2, 2, 2], [3, 4, 5], [1, 1, 1], begin_mask=5),
    _case("end mask", [2, 2, 2], [3, 4, 5], [1, 1, 1], end_mask=3),
    _case("shrink", [1, 0, 2], [2, 5, 3], [1, 1, 1], shrink_axis_mask=5),
    _case("shrink negative", [-1, 0, 0], [0, 5, 6], [1, 1, 1], shrink_axis_mask=1),
    _case("shrink all", [1, 2, 3], [2, 3, 4], [1, 1, 1], shrink_axis_mask=7),
    _case("fewer indices than axes", [1], [3], [1]),
    _case("fewer indices, shrink", [2], [3], [1], shrink_axis_mask=1),
    _case("ellipsis first", [0, 1], [0, 4], [1, 2], ellipsis_mask=1),
    _case("ellipsis last", [1, 0], [3, 0], [1, 1], ellipsis_mask=2),
    _case("ellipsis in between", [1, 0, 2], [3, 0, 5], [1, 1, 1], ellipsis_mask=2),
    _case("ellipsis and shrink", [0, 2], [0, 3], [1, 1], ellipsis_mask=1, shrink_axis_mask=2),
    _case("new axis first", [0, 1], [0, 3], [1, 1], new_axis_mask=1),
    _case("new axis last", [1, 0, 0, 0], [3, 5, 6, 1], [1, 1, 1, 1], new_axis_mask=8),
    _case("new axis and shrink", [0, 1, 2], [1, 2, 4], [1, 1, 1], new_axis_mask=1, shrink_axis_mask=2),
    _case("new axis after ellipsis", [0, 0], [0, 1], [1, 1], ellipsis_mask=1, new_axis_mask=2),
    _case("new axis and ellipsis", [0, 0, 1], [1, 0, 4], [1, 1, 1], new_axis_mask=1, ellipsis_mask=2),
    _case("offset", [1, 0, 2], [2, 5, 3], [1, 1, 1], offset=True),
    _case("offset, strides", [1, 0, 0], [2, 5, 6], [1, 2, 3], offset=True),
    _case("image", [0, 1, 1, 0], [1, 4, 5, 3], [1, 2, 2, 1], _random.normal(1, 4, 5, 3)),
    _case("rank 5", [0, 1, 0, 1, 0], [2, 3, 1, 3, 2], [1, 1, 1, 2, 1], _random.normal(2, 3, 2, 3, 2)),
    _case("vector element", [3], [4], [1], _random.integers(7), shrink_axis_mask=1),
    Case(
        "computed row",
        STRIDED_SLICE,
        StridedSliceOptions(begin_mask=6, end_mask=6, shrink_axis_mask=1),
        [_x, i32(2, 0, 0), i32(3, 0, 0), i32(1, 1, 1)],
        frozenset({3}),
    ),
    *(
        _case(t.name, [0, 1], [3, 4], [2, 1], _random.of(t, 3, 4))
        for t in (TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.INT16, TensorType.STRING)
    ),
)
