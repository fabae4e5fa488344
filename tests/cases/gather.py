"""Cases of GATHER and GATHER_ND."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.gather import GATHER, GATHER_ND, GatherOptions
from litecl.interpreter.schema import TensorType

_random = Random(20)


def _gather(name: str, x: Array, indices: Array, axis: int = 0, batch_dims: int = 0) -> Case:
    return Case(name, GATHER, GatherOptions(axis, batch_dims), [x, indices], device=unfit(x, indices))


def _gather_nd(name: str, x: Array, indices: Array) -> Case:
    return Case(name, GATHER_ND, NoOptions(), [x, indices], device=unfit(x, indices))


_places = i32([[1, 0], [2, 2]])

CASES = (
    _gather("rows", _random.normal(5, 3), i32(4, 0, 0, 2)),
    _gather("columns", _random.normal(3, 5), i32(4, 0, 2), axis=1),
    _gather("last", _random.normal(2, 3, 5), i32(4, 0), axis=-1),
    _gather("matrix of indices", _random.normal(5, 3), _places),
    _gather("matrix of indices, middle", _random.normal(2, 5, 3), _places, axis=1),
    _gather("one index of rank 0", _random.normal(5, 3), np.array(2, np.int32)),
    _gather("one element", _random.normal(5), np.array(2, np.int32)),
    _gather("batch", _random.normal(2, 5, 3), _places, axis=1, batch_dims=1),
    _gather("batch, later axis", _random.normal(2, 4, 5, 3), _places, axis=2, batch_dims=1),
    _gather("two batch dimensions", _random.normal(2, 2, 5), _random.integers(2, 2, 3, low=0, high=5), 2, 2),
    _gather("negative batch", _random.normal(2, 5, 3), _places, axis=1, batch_dims=-1),
    _gather("int64 indices", _random.normal(5, 3), np.array([1, 3])),
    _gather("no indices", _random.normal(5, 3), np.zeros(0, np.int32)),
    *(
        _gather(t.name, _random.of(t, 5, 2), i32(3, 1))
        for t in (TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.UINT8, TensorType.INT16)
    ),
    _gather("string", _random.of(TensorType.STRING, 5), i32(3, 1)),
    _gather_nd("rows", _random.normal(5, 3), i32([[4], [0]])),
    _gather_nd("elements", _random.normal(3, 4), i32([[2, 3], [0, 1], [1, 1]])),
    _gather_nd("slices", _random.normal(3, 4, 2), i32([[[2, 3]], [[0, 1]]])),
    _gather_nd("one element", _random.normal(3, 4), i32(2, 1)),
    _gather_nd("int32", _random.integers(3, 4), i32([[2, 3], [0, 1]])),
    _gather_nd("int64 indices", _random.normal(3, 4), np.array([[2, 3], [0, 1]])),
)
