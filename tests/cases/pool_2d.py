"""Cases of AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding

_random = rng(25)


def _f(*shape: int) -> Array:
    return (_random.standard_normal(shape) * 4).astype(np.float32)


def _table(op: Op) -> tuple[Case, ...]:
    same, valid = Padding.SAME, Padding.VALID
    relu, relu6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
    clamp = ActivationFunctionType.RELU_N1_TO_1
    # Options in the schema's order: padding, strides of width and height, filter's width and height, activation.
    return (
        Case("2x2, stride 2", op, Pool2DOptions(same, 2, 2, 2, 2), [_f(1, 8, 6, 5)]),
        Case("2x2, stride 2, odd SAME", op, Pool2DOptions(same, 2, 2, 2, 2), [_f(2, 7, 5, 5)]),
        Case("2x2, stride 2, odd VALID", op, Pool2DOptions(valid, 2, 2, 2, 2), [_f(1, 7, 5, 5)]),
        Case("3x3, stride 1 SAME", op, Pool2DOptions(same, 1, 1, 3, 3), [_f(1, 6, 6, 16)]),
        Case("3x3, stride 2 SAME", op, Pool2DOptions(same, 2, 2, 3, 3), [_f(1, 8, 8, 17)]),
        Case("whole image", op, Pool2DOptions(valid, 7, 7, 7, 7), [_f(2, 7, 7, 33)]),
        Case("3x2, strides 1 and 2", op, Pool2DOptions(valid, 1, 2, 3, 2), [_f(1, 5, 9, 3)]),
        Case("filter larger than the image SAME", op, Pool2DOptions(same, 1, 1, 5, 5), [_f(1, 2, 3, 2)]),
        Case("stride beyond the filter", op, Pool2DOptions(valid, 3, 4, 2, 1), [_f(1, 9, 8, 2)]),
        Case("one column", op, Pool2DOptions(same, 1, 2, 1, 3), [_f(2, 9, 1, 5)]),
        Case("1x1", op, Pool2DOptions(same, 1, 1, 1, 1), [_f(1, 4, 4, 3)]),
        Case("RELU", op, Pool2DOptions(same, 1, 1, 2, 2, relu), [_f(1, 4, 4, 3)]),
        Case("RELU6", op, Pool2DOptions(same, 1, 1, 2, 2, relu6), [_f(1, 4, 4, 3)]),
        Case("RELU_N1_TO_1", op, Pool2DOptions(same, 1, 1, 2, 2, clamp), [_f(1, 4, 4, 3)]),
    )


CASES = (*_table(AVERAGE_POOL_2D), *_table(MAX_POOL_2D), *_table(L2_POOL_2D))
