"""Cases of shapes at the edges: scalars, no elements, many dimensions, axes counted from the end."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary, pack, pad, reduce, reshape, split, unary
from litecl.interpreter.ops.arg_max import ARG_MAX, ArgMaxOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import TensorType as T

_random = Random(107)
_NONE = NoOptions()
_DEEP: tuple[Shape, ...] = ((1, 2, 1, 1, 2, 1), (1, 1, 2, 1, 1, 1, 1, 2))
_EMPTY: tuple[Shape, ...] = ((0,), (2, 0, 3))


def _int32(*values: Any) -> Array:
    return np.array(values, np.int32)


def _case(
    op: Op, shape: Shape, options: Any, inputs: list[Array], constants: tuple[int, ...] = (), more: str = ""
) -> Case:
    return Case(f"edge {list(shape)} {more}".strip(), op, options, inputs, frozenset(constants), on_device=False)


def _any_shape(shape: Shape) -> Iterator[Case]:
    """Yield what every shape has."""
    x, y = _random.normal(*shape), _random.positive(*shape)
    for op in (unary.NEG, unary.EXP, unary.RELU6):
        yield _case(op, shape, _NONE, [x])
    scalar = np.array(2.5, np.float32)
    yield _case(binary.ADD, shape, binary.AddOptions(), [x, scalar])
    yield _case(binary.MUL, shape, binary.MulOptions(), [x, y], more="twice")
    yield _case(binary.MAXIMUM, shape, _NONE, [x, scalar])
    yield _case(SELECT_V2, shape, _NONE, [x > 0, x, scalar])
    yield _case(CAST, shape, CastOptions(T.FLOAT32, T.INT32), [x])
    yield _case(reshape.EXPAND_DIMS, shape, _NONE, [x, np.array(-1, np.int32)], (1,))
    yield _case(pack.PACK, shape, pack.PackOptions(2, -1), [x, y])
    rank = len(shape)
    yield _case(SLICE, shape, _NONE, [x, _int32(*[0] * rank), _int32(*[-1] * rank)], (1, 2))
    yield _case(TILE, shape, _NONE, [x, _int32(*[2] * rank)], (1,))
    for op in (reduce.SUM, reduce.REDUCE_MAX, reduce.MEAN):
        axes = _int32(*range(rank))
        yield _case(op, shape, reduce.ReducerOptions(keep_dims=True), [x, axes], (1,), "all axes")


def _axis(shape: Shape) -> Iterator[Case]:
    """Yield what goes along the last axis, counted from the end."""
    x, y = _random.normal(*shape), _random.normal(*shape)
    last = np.array(-1, np.int32)
    yield _case(CUMSUM, shape, CumsumOptions(reverse=True), [x, last], (1,))
    yield _case(CONCATENATION, shape, ConcatenationOptions(-1), [x, y])
    yield _case(reduce.SUM, shape, reduce.ReducerOptions(), [x, _int32(-1)], (1,), "last axis")
    yield _case(SOFTMAX, shape, SoftmaxOptions(1.0), [x])
    yield _case(TOPK_V2, shape, _NONE, [x, np.array(1, np.int32)], (1,))
    yield _case(ARG_MAX, shape, ArgMaxOptions(T.INT64), [x, last], (1,))
    yield _case(GATHER, shape, GatherOptions(-1), [x, _int32(0, 0)])
    yield _case(pack.UNPACK, shape, pack.UnpackOptions(shape[-1], -1), [x])
    yield _case(split.SPLIT, shape, split.SplitOptions(shape[-1]), [last, x], (0,))
    yield _case(TRANSPOSE, shape, _NONE, [x, _int32(*reversed(range(len(shape))))], (1,))


CASES = (
    *(case for shape in ((), *_EMPTY, *_DEEP) for case in _any_shape(shape)),
    *(case for shape in ((3,), (2, 1, 1, 1, 2), *_DEEP) for case in _axis(shape)),
    _case(pad.PAD, (), _NONE, [np.array(1.5, np.float32), np.zeros((0, 2), np.int32)], (1,)),
    _case(unary.SQRT, (0,), _NONE, [np.zeros(0, np.float32)]),
)
