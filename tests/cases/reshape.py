"""Cases of RESHAPE, SQUEEZE and EXPAND_DIMS."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, scalar, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE, ReshapeOptions, SqueezeOptions
from litecl.interpreter.schema import TensorType

_random = Random(13)
_dynamic = "shape known at run time"


def _reshape(name: str, x: Array, *shape: int) -> Case:
    inputs = [x, i32(*shape)]
    return Case(name, RESHAPE, ReshapeOptions(), inputs, frozenset({1}), device=unfit(x))


def _squeeze(name: str, x: Array, *dims: int) -> Case:
    return Case(name, SQUEEZE, SqueezeOptions(dims), [x], device=unfit(x))


def _expand(name: str, x: Array, axis: int) -> Case:
    return Case(name, EXPAND_DIMS, NoOptions(), [x, scalar(axis)], frozenset({1}), device=unfit(x))


CASES = (
    _reshape("flatten", _random.normal(2, 3, 4), 24),
    _reshape("stretch", _random.normal(2, 3, 4), -1, 6),
    _reshape("to rank 6", _random.normal(24), 2, 1, 3, 2, 1, 2),
    _reshape("to rank 0", _random.normal(1, 1)),
    _reshape("from rank 0", np.asarray(_random.normal()), 1, -1),
    _reshape("empty", _random.normal(0, 3), 3, 0),
    _reshape("empty stretched", _random.normal(0, 3), -1, 3),
    *(_reshape(t.name, _random.of(t, 2, 6), 3, -1) for t in (TensorType.INT32, TensorType.BOOL, TensorType.STRING)),
    Case("by options", RESHAPE, ReshapeOptions((4, -1)), [_random.normal(2, 6)]),
    Case("legacy scalar", RESHAPE, ReshapeOptions((0,)), [_random.normal(1)]),
    Case(
        "shape of rank 0, options count",
        RESHAPE,
        ReshapeOptions((6,)),
        [_random.normal(2, 3), scalar(9)],
        frozenset({1}),
    ),
    Case("computed shape", RESHAPE, ReshapeOptions(), [_random.normal(2, 6), i32(3, 4)], device=_dynamic),
    _squeeze("all", _random.normal(1, 2, 1, 3)),
    _squeeze("one", _random.normal(1, 2, 1, 3), 2),
    _squeeze("negative", _random.normal(1, 2, 1), -1),
    _squeeze("two", _random.normal(1, 2, 1), 0, 2),
    _squeeze("to rank 0", _random.normal(1, 1)),
    _squeeze("string", _random.of(TensorType.STRING, 1, 2)),
    _expand("first", _random.normal(2, 3), 0),
    _expand("last", _random.normal(2, 3), -1),
    _expand("middle", _random.normal(2, 3), 1),
    _expand("rank 0", np.asarray(_random.normal()), 0),
    _expand("int32", _random.integers(4), -2),
)
