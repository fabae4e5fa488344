"""Cases of CONV_2D."""

import numpy as np

from litecl.cases import Case, rng
from litecl.cases.values import unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding

_random = rng(21)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _case(name: str, x: tuple[int, ...], filter_: tuple[int, ...], **options: object) -> Case:
    """A convolution with stride 1, unless it is given, and constant weights."""
    chosen = Conv2DOptions(**{"stride_w": 1, "stride_h": 1} | options)  # type: ignore[arg-type]
    inputs = [_f(*x), _f(*filter_), _f(filter_[0])]
    return Case(name, CONV_2D, chosen, inputs, constants=frozenset({1, 2}), device=unfit(*inputs))


CASES = (
    _case("1x1", (1, 5, 7, 8), (16, 1, 1, 8)),
    _case("1x1, batch", (3, 4, 4, 5), (7, 1, 1, 5)),
    _case("1x1, stride 2", (1, 8, 6, 8), (4, 1, 1, 8), stride_w=2, stride_h=2),
    _case("3x3 SAME", (1, 8, 8, 3), (16, 3, 3, 3)),
    _case("3x3 VALID", (1, 8, 8, 3), (16, 3, 3, 3), padding=Padding.VALID),
    _case("3x3 SAME, stride 2, even", (1, 8, 8, 4), (8, 3, 3, 4), stride_w=2, stride_h=2),
    _case("3x3 SAME, stride 2, odd", (2, 9, 7, 4), (8, 3, 3, 4), stride_w=2, stride_h=2),
    _case("3x3 VALID, stride 2 by 3", (1, 11, 10, 2), (5, 3, 3, 2), padding=Padding.VALID, stride_h=2, stride_w=3),
    _case("stride beyond the filter", (1, 9, 9, 2), (4, 2, 2, 2), stride_w=3, stride_h=4),
    _case("5x3, not square", (1, 9, 6, 3), (6, 5, 3, 3)),
    _case("2x2 SAME pads after only", (1, 5, 5, 3), (6, 2, 2, 3)),
    _case("dilation 2", (1, 9, 9, 3), (8, 3, 3, 3), dilation_w_factor=2, dilation_h_factor=2),
    _case("dilation 3 by 1 VALID", (1, 12, 8, 3), (4, 3, 3, 3), padding=Padding.VALID, dilation_h_factor=3),
    _case("groups 2", (1, 6, 6, 8), (6, 3, 3, 4)),
    _case("groups 4, stride 2", (2, 6, 6, 8), (12, 3, 3, 2), stride_w=2, stride_h=2),
    _case("groups of one channel", (1, 6, 6, 6), (12, 3, 3, 1)),
    _case("7x7, groups of one channel", (2, 9, 8, 37), (37, 7, 7, 1)),
    _case("groups of one channel, dilated", (1, 11, 12, 16), (32, 3, 3, 1), stride_w=2, dilation_h_factor=3),
    _case("RELU", (1, 6, 6, 3), (4, 3, 3, 3), fused_activation_function=ActivationFunctionType.RELU),
    _case("RELU6", (1, 6, 6, 3), (4, 3, 3, 3), fused_activation_function=ActivationFunctionType.RELU6),
    _case("RELU_N1_TO_1", (1, 6, 6, 3), (4, 3, 3, 3), fused_activation_function=ActivationFunctionType.RELU_N1_TO_1),
    _case("no images", (0, 6, 6, 3), (4, 3, 3, 3)),
    _case("filter larger than the image, SAME", (1, 2, 3, 2), (3, 5, 5, 2)),
    _case("filter as large as the image, VALID", (2, 4, 5, 3), (6, 4, 5, 3), padding=Padding.VALID),
    _case("one pixel", (1, 1, 1, 16), (8, 1, 1, 16)),
    _case("one row", (1, 1, 20, 4), (8, 1, 5, 4), stride_w=2),
    _case("one column", (2, 41, 1, 3), (8, 5, 1, 3), stride_h=2),
    _case("one column, dilated, VALID", (1, 30, 1, 24), (9, 4, 1, 24), dilation_h_factor=3, padding=Padding.VALID),
    _case("one column of the output", (1, 9, 4, 3), (8, 3, 4, 3), padding=Padding.VALID),
    _case("few columns of many pixels", (2, 8, 16, 24), (3, 1, 1, 24)),
    _case(
        "two columns of many pixels",
        (1, 16, 16, 5),
        (2, 1, 1, 5),
        fused_activation_function=ActivationFunctionType.RELU,
    ),
    _case("a line of a tile and one more, batch", (2, 5, 17, 7), (24, 3, 3, 7)),
    _case("lines in parts", (1, 3, 300, 40), (8, 3, 3, 40)),
    _case("few channels, wide, SAME, stride 2", (2, 9, 66, 3), (8, 3, 3, 3), stride_w=2, stride_h=2),
    _case("few channels, wide, VALID, 5x5", (1, 7, 50, 1), (21, 5, 5, 1), padding=Padding.VALID),
    _case("few channels, wide, dilated rows", (1, 9, 45, 4), (5, 3, 2, 4), dilation_h_factor=2, stride_w=3),
    _case("one channel, tiles at both ends of a line", (1, 29, 14, 1), (1, 3, 3, 1)),
    _case("one channel, tiles at both ends, dilated rows", (1, 5, 21, 1), (1, 3, 3, 1), dilation_h_factor=2),
    _case("two channels, a tile at one end of a line", (3, 26, 28, 2), (8, 5, 5, 2), stride_w=2, stride_h=3),
    _case("one channel, images whose inner tiles are read in place", (2, 65, 66, 1), (3, 3, 3, 1)),
    _case("few columns", (2, 6, 7, 24), (3, 1, 1, 24)),
    _case("many channels", (1, 4, 4, 67), (33, 3, 3, 67)),
    Case(
        "weights that are not constant",
        CONV_2D,
        Conv2DOptions(stride_w=1, stride_h=1),
        [_f(1, 5, 5, 3), _f(4, 3, 3, 3), _f(4)],
    ),
)
