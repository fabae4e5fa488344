"""Cases of TRANSPOSE_CONV, and of MediaPipe's Convolution2DTransposeBias."""

import struct

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.transpose_conv import CONVOLUTION_2D_TRANSPOSE_BIAS, TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.options import CustomOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding

_random = rng(24)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _case(
    name: str,
    x: tuple[int, ...],
    filter_: tuple[int, ...],
    size: tuple[int, int],
    strides: tuple[int, int],
    padding: Padding = Padding.SAME,
    bias: bool = False,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> Case:
    """Strides are of height and width; the output's shape and the weights are constants."""
    options = TransposeConvOptions(padding, strides[1], strides[0], activation)
    shape = np.array([x[0], *size, filter_[0]], np.int32)
    inputs = [shape, _f(*filter_), _f(*x), *([_f(filter_[0])] if bias else [])]
    constants = frozenset({0, 1, 3}) if bias else frozenset({0, 1})
    version = 3 if bias or activation != ActivationFunctionType.NONE else 1
    return Case(name, TRANSPOSE_CONV, options, inputs, constants=constants, version=version)


def _media_pipe(
    name: str, x: tuple[int, ...], filter_: tuple[int, ...], strides: tuple[int, int], padding: int = 1
) -> Case:
    """Padding is 1 for SAME and 2 for VALID, as in TfLiteTransposeConvParams; strides are of height and width."""
    options = CustomOptions(struct.pack("<4i", padding, strides[1], strides[0], 0))
    inputs = [_f(*x), _f(*filter_), _f(filter_[0])]
    # LiteRT has this operator in XNNPACK alone.
    return Case(name, CONVOLUTION_2D_TRANSPOSE_BIAS, options, inputs, frozenset({1, 2}), kernels="default")


CASES = (
    _media_pipe("2x2, stride 2", (1, 4, 5, 3), (2, 2, 2, 3), (2, 2)),
    _media_pipe("3x3, stride 2", (2, 4, 5, 3), (4, 3, 3, 3), (2, 2)),
    _media_pipe("3x3 VALID, strides 2 and 1", (1, 4, 5, 3), (4, 3, 3, 3), (2, 1), padding=2),
    _media_pipe("4x3, strides 3 and 2", (1, 4, 5, 3), (4, 4, 3, 3), (3, 2)),
    _case("2x2, stride 2", (1, 3, 4, 5), (6, 2, 2, 5), (6, 8), (2, 2)),
    _media_pipe("2x2 to one column, stride 2", (2, 32, 9, 16), (1, 2, 2, 16), (2, 2)),
    _case(
        "2x2 to two columns, bias",
        (1, 5, 6, 7),
        (2, 2, 2, 7),
        (10, 12),
        (2, 2),
        bias=True,
        activation=ActivationFunctionType.RELU,
    ),
    _case("4x4 to one column, stride 2, VALID", (1, 3, 4, 2), (1, 4, 4, 2), (8, 10), (2, 2), Padding.VALID),
    _case("2x3 to one column, strides 2 and 3, VALID", (1, 3, 4, 2), (1, 2, 3, 2), (6, 12), (2, 3), Padding.VALID),
    _case("3x3 SAME, stride 2", (1, 4, 4, 3), (5, 3, 3, 3), (8, 8), (2, 2)),
    _case("3x3 VALID, stride 2", (1, 4, 4, 3), (5, 3, 3, 3), (9, 9), (2, 2), Padding.VALID),
    _case("3x3 VALID, stride 2, a row more", (1, 4, 4, 3), (5, 3, 3, 3), (10, 10), (2, 2), Padding.VALID),
    _case("3x3 SAME, stride 2, odd", (2, 4, 3, 3), (5, 3, 3, 3), (7, 5), (2, 2)),
    _case("3x3 SAME, stride 1", (1, 5, 5, 4), (4, 3, 3, 4), (5, 5), (1, 1)),
    _case("4x4 SAME, stride 2, bias", (1, 4, 4, 3), (5, 4, 4, 3), (8, 8), (2, 2), bias=True),
    _case("1x1, stride 3", (1, 3, 3, 2), (4, 1, 1, 2), (9, 9), (3, 3), bias=True),
    _case("5x2, strides 3 and 1", (1, 3, 5, 2), (3, 5, 2, 2), (9, 5), (3, 1)),
    _case("RELU, bias", (1, 3, 3, 2), (4, 3, 3, 2), (6, 6), (2, 2), bias=True, activation=ActivationFunctionType.RELU),
    Case(
        "shape known at run time",
        TRANSPOSE_CONV,
        TransposeConvOptions(Padding.SAME, 2, 2),
        [np.array([1, 6, 6, 4], np.int32), _f(4, 3, 3, 2), _f(1, 3, 3, 2)],
        constants=frozenset({1}),
        device="the output's shape is known only at run time",
    ),
)
