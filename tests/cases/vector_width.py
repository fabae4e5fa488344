"""Cases whose sizes lie around the widths of vectors and of work-items' shares, for the kernels that work in both."""

from collections.abc import Sequence

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary, compare, reduce, unary
from litecl.interpreter.ops.arg_max import ARG_MAX, ArgMaxOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX, LogSoftmaxOptions
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, MirrorPadOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, ResizeBilinearOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import ActivationFunctionType, MirrorPadMode, Padding, TensorType

_random = Random(11)
_SIZES = (1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 131)
_SHARES = (4095, 4096, 4097, 16384, 65537)


def _elementwise(size: int) -> list[Case]:
    x, y = _random.normal(size), _random.normal(size)
    row, column = _random.normal(1, size), _random.normal(3, 1)
    relu6 = binary.AddOptions(ActivationFunctionType.RELU6)
    return [
        Case(f"{size}", unary.EXP, NoOptions(), [x]),
        Case(f"{size}", unary.TANH, NoOptions(), [x]),
        Case(f"{size}", binary.ADD, relu6, [x, y]),
        Case(f"{size} int64", binary.ADD, binary.AddOptions(), [_integers(size), _integers(size)]),
        Case(f"row of {size}, column", binary.MUL, binary.MulOptions(), [row, column]),
        Case(f"column, row of {size}", binary.SUB, binary.SubOptions(), [column, row]),
        Case(f"{size}", compare.LESS, NoOptions(), [x, y]),
        Case(f"{size}", unary.LOGICAL_NOT, NoOptions(), [_random.bools(size)]),
        Case(f"{size}", SELECT_V2, NoOptions(), [_random.bools(size), x, y]),
    ]


def _integers(*shape: int) -> Array:
    return _random.integers(*shape, low=-(2**40), high=2**40, dtype=np.int64)


def _rows(size: int) -> list[Case]:
    x = _random.normal(3, size)
    columns = _random.normal(2, 5, size)
    bools = _random.bools(3, size)
    return [
        Case(f"rows of {size}", SOFTMAX, SoftmaxOptions(1.0), [x]),
        Case(f"rows of {size}", LOG_SOFTMAX, LogSoftmaxOptions(), [x]),
        Case(f"rows of {size}", L2_NORMALIZATION, L2NormOptions(), [x]),
        Case(f"rows of {size}", reduce.SUM, reduce.ReducerOptions(), [x, i32(1)], frozenset({1})),
        Case(f"rows of {size}", reduce.REDUCE_MAX, reduce.ReducerOptions(), [x, i32(1)], frozenset({1})),
        Case(f"columns of {size}", reduce.MEAN, reduce.ReducerOptions(), [columns, i32(1)], frozenset({1})),
        Case(f"columns of {size}", reduce.REDUCE_MIN, reduce.ReducerOptions(), [columns, i32(1)], frozenset({1})),
        Case(f"around {size}", reduce.SUM, reduce.ReducerOptions(), [columns, i32(0, 2)], frozenset({1})),
        Case(f"rows of {size}", reduce.REDUCE_ANY, reduce.ReducerOptions(), [bools, i32(1)], frozenset({1})),
        Case(f"columns of {size}", reduce.REDUCE_ALL, reduce.ReducerOptions(), [bools, i32(0)], frozenset({1})),
        Case(f"rows of {size}", ARG_MAX, ArgMaxOptions(TensorType.INT64), [x, scalar(1)], frozenset({1})),
        Case(f"columns of {size}", CUMSUM, CumsumOptions(), [columns, scalar(1)], frozenset({1})),
    ]


def _moves(size: int) -> list[Case]:
    x, y = _random.normal(3, size), _random.normal(3, 5)
    wide = StridedSliceOptions(begin_mask=3, end_mask=3)
    twos = (i32(0, 0), i32(0, 0), i32(-1, -2))
    inside = _random.integers(4, low=0, high=3)
    mirrored = MirrorPadOptions(MirrorPadMode.SYMMETRIC)
    return [
        Case(f"{size} and 5", CONCATENATION, ConcatenationOptions(1), [x, y]),
        Case(f"3 by {size}", TRANSPOSE, NoOptions(), [x, i32(1, 0)], frozenset({1})),
        Case(f"bytes, 3 by {size}", TRANSPOSE, NoOptions(), [x > 0, i32(1, 0)], frozenset({1})),
        Case(f"rows of {size}", REVERSE_V2, NoOptions(), [x, i32(1)], frozenset({1})),
        Case(f"int64, rows of {size}", TILE, NoOptions(), [_integers(2, size), i32(2, 3)], frozenset({1})),
        Case(f"rows of {size}", GATHER, GatherOptions(), [x, inside]),
        Case(f"rows of {size}", PAD, NoOptions(), [x, i32([[1, 0], [2, 3]])], frozenset({1})),
        Case(f"rows of {size}", MIRROR_PAD, mirrored, [x, i32([[1, 2], [1, 0]])], frozenset({1})),
        Case(f"every second of {size}, backwards", STRIDED_SLICE, wide, [x, *twos], frozenset({1, 2, 3})),
    ]


def _images(channels: int) -> list[Case]:
    x = _random.normal(2, 7, 6, channels)
    pool = Pool2DOptions(Padding.SAME, 2, 2, 3, 3, ActivationFunctionType.RELU)
    bilinear = ResizeBilinearOptions(half_pixel_centers=True)
    return [
        Case(f"{channels} channels", AVERAGE_POOL_2D, pool, [x]),
        Case(f"{channels} channels", MAX_POOL_2D, pool, [x]),
        Case(f"{channels} channels", RESIZE_BILINEAR, bilinear, [x, i32(9, 4)], frozenset({1})),
        Case(f"{channels} channels", reduce.MEAN, reduce.ReducerOptions(), [x, i32(1, 2)], frozenset({1})),
    ]


def _shares(size: int) -> list[Case]:
    x = _random.normal(size)
    return [
        Case(f"{size}", unary.LOGISTIC, NoOptions(), [x]),
        Case(f"{size} and a scalar", binary.MAXIMUM, NoOptions(), [x, scalar(0.5, np.float32)]),
        Case(f"{size} by 3, channels", binary.ADD, binary.AddOptions(), [_random.normal(size, 3), _random.normal(3)]),
        Case(f"{size} by 3", TRANSPOSE, NoOptions(), [_random.normal(size, 3), i32(1, 0)], frozenset({1})),
        Case(f"all of {size}", reduce.SUM, reduce.ReducerOptions(), [_random.positive(size), i32(0)], frozenset({1})),
        Case(f"{size} rows", SOFTMAX, SoftmaxOptions(1.0), [_random.normal(size, 2)]),
    ]


def cases(sizes: Sequence[int], shares: Sequence[int]) -> tuple[Case, ...]:
    """Return every family's cases of ``sizes``, then those of ``shares`` that many work-items take part in."""
    families = (_elementwise, _rows, _moves, _images)
    return (
        *(case for size in sizes for family in families for case in family(size)),
        *(case for size in shares for case in _shares(size)),
    )


CASES = cases(_SIZES, _SHARES)
