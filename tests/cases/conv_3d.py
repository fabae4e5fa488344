"""Cases of CONV_3D and CONV_3D_TRANSPOSE."""

from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions
from litecl.interpreter.ops.conv_3d_transpose import CONV_3D_TRANSPOSE
from litecl.interpreter.schema import ActivationFunctionType, Padding

Along = tuple[int, int, int]
"""Numbers along depth, height and width."""

_ONES: Along = (1, 1, 1)
_random = rng(23)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _options(strides: Along = _ONES, dilations: Along = _ONES, **more: Any) -> Conv3DOptions:
    (d, h, w), (by_d, by_h, by_w) = strides, dilations
    more |= {"stride_d": d, "stride_h": h, "stride_w": w}
    more |= {"dilation_d_factor": by_d, "dilation_h_factor": by_h, "dilation_w_factor": by_w}
    return Conv3DOptions(**more)


def _case(name: str, x: tuple[int, ...], filter_: tuple[int, ...], bias: bool = True, **options: Any) -> Case:
    """A convolution with constant weights."""
    inputs = [_f(*x), _f(*filter_), *([_f(filter_[4])] if bias else [])]
    return Case(name, CONV_3D, _options(**options), inputs, constants=frozenset({1, 2}) if bias else frozenset({1}))


def _transposed(
    name: str,
    x: tuple[int, ...],
    filter_: tuple[int, ...],
    size: Along,
    bias: bool = False,
    **options: Any,
) -> Case:
    """Filters are [d, h, w, outputs, channels]; the output's shape and the weights are constants."""
    shape = np.array([x[0], *size, filter_[3]], np.int32)
    inputs = [shape, _f(*filter_), _f(*x), *([_f(filter_[3])] if bias else [])]
    return Case(
        name, CONV_3D_TRANSPOSE, _options(**options), inputs, constants=frozenset({0, 1, 3} if bias else {0, 1})
    )


CASES = (
    _case("1x1x1", (1, 3, 4, 5, 2), (1, 1, 1, 2, 4)),
    _case("3x3x3 SAME", (1, 4, 5, 6, 3), (3, 3, 3, 3, 4)),
    _case("2x3x1 VALID", (2, 4, 5, 6, 3), (2, 3, 1, 3, 4), padding=Padding.VALID),
    _case("strides 2, 1, 3", (1, 6, 5, 8, 2), (3, 2, 2, 2, 3), strides=(2, 1, 3)),
    _case("dilated", (1, 7, 7, 7, 2), (2, 3, 2, 2, 3), dilations=(2, 2, 2)),
    _case("no bias", (1, 3, 3, 3, 2), (2, 2, 2, 2, 2), bias=False),
    _case("RELU", (1, 3, 3, 3, 2), (2, 2, 2, 2, 2), fused_activation_function=ActivationFunctionType.RELU),
    _case(
        "3x3x3 of 17 to 40", (2, 5, 6, 7, 17), (3, 3, 3, 17, 40), fused_activation_function=ActivationFunctionType.RELU6
    ),
    _case("one position", (1, 3, 3, 3, 33), (3, 3, 3, 33, 70), padding=Padding.VALID),
    Case(
        "weights that are not constant",
        CONV_3D,
        _options((1, 1, 2)),
        [_f(1, 4, 4, 5, 6), _f(2, 3, 2, 6, 19), _f(19)],
    ),
    _transposed("2x2x2, stride 2", (1, 2, 3, 2, 3), (2, 2, 2, 4, 3), (4, 6, 4), strides=(2, 2, 2)),
    _transposed("3x3x3 SAME, stride 1", (2, 3, 4, 3, 2), (3, 3, 3, 2, 2), (3, 4, 3)),
    _transposed("dilated", (1, 3, 3, 2, 3), (2, 2, 2, 2, 3), (3, 6, 4), strides=(1, 2, 2), dilations=(2, 2, 1)),
    _transposed(
        "3x2x3 VALID, stride 2, bias",
        (1, 2, 2, 3, 2),
        (3, 2, 3, 4, 2),
        (5, 4, 7),
        bias=True,
        strides=(2, 2, 2),
        padding=Padding.VALID,
    ),
    _transposed("1x1x1", (2, 3, 2, 4, 5), (1, 1, 1, 6, 5), (3, 2, 4), bias=True),
    _transposed("strides 3, 1, 2", (1, 2, 4, 3, 7), (2, 3, 4, 5, 7), (6, 4, 6), strides=(3, 1, 2)),
    _transposed("strides beyond the window", (1, 2, 3, 2, 3), (1, 2, 1, 4, 3), (6, 9, 8), strides=(3, 3, 4)),
    _transposed(
        "strides and dilations 2, 3, 1",
        (2, 3, 3, 4, 3),
        (3, 2, 3, 4, 3),
        (6, 9, 4),
        bias=True,
        strides=(2, 3, 1),
        dilations=(3, 2, 2),
    ),
    _transposed(
        "VALID, dilated, one row more than needed",
        (1, 2, 3, 2, 4),
        (2, 2, 3, 3, 4),
        (6, 6, 6),
        strides=(2, 2, 1),
        dilations=(2, 1, 2),
        padding=Padding.VALID,
    ),
    _transposed(
        "17 to 40, RELU6",
        (2, 3, 4, 3, 17),
        (3, 3, 3, 40, 17),
        (6, 8, 6),
        bias=True,
        strides=(2, 2, 2),
        fused_activation_function=ActivationFunctionType.RELU6,
    ),
    _transposed("one position of 33 to 70", (1, 1, 1, 1, 33), (2, 2, 2, 70, 33), (2, 2, 2), padding=Padding.VALID),
    Case(
        "transposed, weights that are not constant",
        CONV_3D_TRANSPOSE,
        _options(),
        [np.array([1, 2, 2, 2, 3], np.int32), _f(2, 2, 2, 3, 2), _f(1, 2, 2, 2, 2)],
        constants=frozenset({0}),
        device="weights is not a constant",
    ),
)
