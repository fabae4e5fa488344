"""Cases of DEPTHWISE_CONV_2D."""

import numpy as np

from litecl.cases import Case, rng
from litecl.cases.values import unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding

_random = rng(22)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _case(
    name: str, x: tuple[int, ...], kernel: tuple[int, int], multiplier: int = 1, bias: bool = True, **options: object
) -> Case:
    """A convolution with stride 1, unless it is given, and constant weights."""
    defaults = {"stride_w": 1, "stride_h": 1, "depth_multiplier": multiplier}
    chosen = DepthwiseConv2DOptions(**defaults | options)  # type: ignore[arg-type]
    outputs = x[3] * multiplier
    inputs = [_f(*x), _f(1, *kernel, outputs), *([_f(outputs)] if bias else [])]
    constants = frozenset({1, 2}) if bias else frozenset({1})
    return Case(name, DEPTHWISE_CONV_2D, chosen, inputs, constants, device=unfit(*inputs))


CASES = (
    _case("3x3 SAME", (1, 8, 8, 16), (3, 3)),
    _case("3x3 VALID", (1, 8, 8, 16), (3, 3), padding=Padding.VALID),
    _case("3x3, stride 2, even", (1, 8, 8, 8), (3, 3), stride_w=2, stride_h=2),
    _case("3x3, stride 2, odd, batch", (2, 9, 7, 8), (3, 3), stride_w=2, stride_h=2),
    _case("5x5", (1, 7, 7, 12), (5, 5)),
    _case("1x1", (1, 4, 4, 6), (1, 1)),
    _case("no images", (0, 4, 4, 6), (3, 3)),
    _case("many channels, stride 2", (2, 7, 6, 80), (3, 3), stride_w=2, stride_h=2),
    _case("2x4, stride 2 by 3", (1, 9, 11, 5), (2, 4), stride_h=2, stride_w=3),
    _case("multiplier 2", (1, 6, 6, 4), (3, 3), multiplier=2),
    _case("multiplier 3 of one channel", (1, 6, 6, 1), (3, 3), multiplier=3),
    _case("multiplier 8, stride 2", (1, 8, 8, 3), (3, 3), multiplier=8, stride_w=2, stride_h=2),
    _case("dilation 2", (1, 9, 9, 8), (3, 3), dilation_w_factor=2, dilation_h_factor=2),
    _case("dilation 1 by 3 VALID", (1, 6, 12, 4), (3, 3), padding=Padding.VALID, dilation_w_factor=3),
    _case("no bias", (1, 6, 6, 4), (3, 3), bias=False),
    _case("RELU", (1, 6, 6, 4), (3, 3), fused_activation_function=ActivationFunctionType.RELU),
    _case("RELU6", (1, 6, 6, 4), (3, 3), fused_activation_function=ActivationFunctionType.RELU6),
    _case("RELU_N1_TO_1", (1, 6, 6, 4), (3, 3), fused_activation_function=ActivationFunctionType.RELU_N1_TO_1),
    _case("one column", (2, 20, 1, 17), (3, 1), stride_h=2),
    _case("one column, wide", (1, 30, 1, 8), (10, 1), dilation_h_factor=2),
    _case("as large as the image, VALID", (1, 5, 4, 7), (5, 4), padding=Padding.VALID),
    _case("larger than the image, SAME", (1, 2, 2, 3), (5, 5)),
    _case("many channels", (1, 3, 3, 131), (3, 3)),
    Case(
        "weights that are not constant",
        DEPTHWISE_CONV_2D,
        DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1),
        [_f(1, 5, 5, 3), _f(1, 3, 3, 3), _f(3)],
    ),
    _case("7x9, two images", (2, 7, 9, 20), (3, 3)),
    _case("5x5, stride 2 by 1, odd", (2, 11, 13, 9), (5, 5), stride_h=2),
    _case("rows that no window reads", (2, 9, 8, 6), (1, 3), stride_h=3, padding=Padding.VALID),
    _case("dilation 2 by 1", (1, 9, 10, 8), (3, 3), dilation_h_factor=2),
    _case("a large image", (1, 45, 47, 24), (3, 3), padding=Padding.VALID, stride_w=2, stride_h=2),
    _case("a multiplier, large", (1, 24, 25, 72), (3, 3), multiplier=2),
)
