"""Cases of the convolutions on quantized activations."""

from dataclasses import replace
from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.integers import Integers, T, affine, positive, weighted_case, with_ties
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType

_integers = Integers(51)
_RELU, _RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
_RELU_N1_TO_1 = ActivationFunctionType.RELU_N1_TO_1


def _case(
    op: Op,
    name: str,
    options: Any,
    x: tuple[int, ...],
    filter_: tuple[int, ...],
    *,
    axis: int,
    depth: int,
    types: tuple[TensorType, TensorType] = (T.INT8, T.INT8),
    zeros: tuple[int, int, int] = (3, 0, -5),
    version: int,
    **spread: Any,
) -> Case:
    """zeros: the zero points of input, filters and output."""
    return weighted_case(
        _integers,
        f"{types[0].name} x {types[1].name}, {name}",
        op,
        options,
        (types[0], x, zeros[0]),
        (types[1], filter_, zeros[1]),
        axis=axis,
        depth=depth,
        zero_point=zeros[2],
        version=version,
        **spread,
    )


def _parts(chosen: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits keywords into those of ``_case`` and options, which have stride 1 unless they say otherwise."""
    names = {"types", "zeros", "bias", "per_channel", "step", "gain"}
    options = {"stride_w": 1, "stride_h": 1} | {k: v for k, v in chosen.items() if k not in names}
    return {k: v for k, v in chosen.items() if k in names}, options


def _conv(name: str, x: tuple[int, ...], filter_: tuple[int, ...], **chosen: Any) -> Case:
    spread, options = _parts(chosen)
    depth = filter_[1] * filter_[2] * filter_[3]
    return _case(CONV_2D, name, Conv2DOptions(**options), x, filter_, axis=0, depth=depth, version=8, **spread)


def _depthwise(name: str, x: tuple[int, ...], filter_: tuple[int, ...], **chosen: Any) -> Case:
    spread, options = _parts(chosen)
    known = DepthwiseConv2DOptions(**{"depth_multiplier": filter_[3] // x[3]} | options)
    depth = filter_[1] * filter_[2]
    return _case(DEPTHWISE_CONV_2D, name, known, x, filter_, axis=3, depth=depth, version=6, **spread)


def _transposed(name: str, x: tuple[int, ...], filter_: tuple[int, ...], size: tuple[int, int], **chosen: Any) -> Case:
    """TRANSPOSE_CONV, whose operands are shape, weights, input, bias."""
    spread, options = _parts(chosen)
    known = TransposeConvOptions(**options)
    depth = filter_[3] * max(1, filter_[1] * filter_[2] // (known.stride_h * known.stride_w))
    case = _case(TRANSPOSE_CONV, name, known, x, filter_, axis=0, depth=depth, version=5, **spread)
    shape = np.array([x[0], *size, filter_[0]], np.int32)
    order = (1, 0, 2)[: len(case.inputs)]
    place = {old: new for new, old in enumerate(order, start=1)}
    return replace(
        case,
        inputs=[shape, *(case.inputs[i] for i in order)],
        constants=frozenset({0, *(place[i] for i in case.constants)}),
        types={place[i]: type_ for i, type_ in case.types.items()},
        quantization={place[i]: quantization for i, quantization in case.quantization.items()},
    )


_INT16: dict[str, Any] = {"types": (T.INT16, T.INT8), "zeros": (0, 0, 0), "step": 0.0003, "bias": T.INT64}
_UINT8: dict[str, Any] = {"types": (T.UINT8, T.UINT8), "zeros": (120, 131, 117), "per_channel": False}


def _beyond_int32(factor: float) -> Case:
    """Scaled sums wrap at 32 bits. By 600 both the least and the largest sum give -32768, sums between them also 32767;
    of factors of 2**15 and more the shift is negative.
    """
    x = np.arange(-32768, 32768, 1024, dtype=np.int16).reshape(1, 8, 8, 1)
    return Case(
        f"INT16 x INT8, results beyond 32 bits, {factor:g} steps a product",
        CONV_2D,
        Conv2DOptions(stride_w=1, stride_h=1),
        [x, np.full((1, 1, 1, 1), 100, np.int8), np.array([1_000_000])],
        frozenset({1, 2}),
        quantization={0: affine(0.5), 1: affine(0.5), 2: affine(0.25)},
        outputs=(TensorSpec(T.INT16, None, quantization=affine(0.25 / factor)),),
        version=8,
        device="sums that float64 cannot scale exactly",
    )


CASES = (
    _conv("1x1", (2, 5, 6, 8), (16, 1, 1, 8)),
    _conv("1x1, stride 2", (1, 7, 6, 8), (4, 1, 1, 8), stride_w=2, stride_h=2),
    _conv("3x3 SAME pads with the zero point", (2, 7, 6, 3), (8, 3, 3, 3), zeros=(-128, 0, 127)),
    _conv("zero point at the upper end", (1, 7, 6, 3), (8, 3, 3, 3), zeros=(127, 0, -128)),
    _conv("one scale", (1, 7, 6, 3), (8, 3, 3, 3), per_channel=False),
    _conv("3x3 VALID, stride 2 by 3", (1, 9, 10, 4), (6, 3, 3, 4), padding=Padding.VALID, stride_h=2, stride_w=3),
    _conv("dilation 2 by 3", (1, 9, 9, 3), (8, 3, 3, 3), dilation_w_factor=2, dilation_h_factor=3),
    _conv("groups 2", (1, 6, 6, 8), (6, 3, 3, 4)),
    _conv("groups of one channel", (1, 6, 6, 6), (12, 3, 3, 1)),
    _conv("RELU", (1, 6, 6, 3), (4, 3, 3, 3), fused_activation_function=_RELU),
    _conv("RELU6", (1, 6, 6, 3), (4, 3, 3, 3), fused_activation_function=_RELU6, zeros=(3, 0, -100)),
    _conv("RELU_N1_TO_1", (1, 6, 6, 3), (4, 3, 3, 3), fused_activation_function=_RELU_N1_TO_1, step=0.02),
    _conv("saturates", (1, 6, 6, 3), (4, 3, 3, 3), gain=20),
    _conv("factor beyond 1", (1, 6, 6, 3), (4, 3, 3, 3), gain=3000),
    _conv("all results alike", (1, 6, 6, 3), (4, 3, 3, 3), gain=1e-6),
    *(_conv(f"gain {gain}", (1, 6, 6, 3), (4, 3, 3, 3), gain=gain) for gain in (2e-7, 1e-7)),
    _conv("deep, sums beyond single precision", (1, 4, 4, 900), (5, 3, 3, 900)),
    _conv("deepest, sums beyond four blocks", (1, 3, 3, 3000), (3, 3, 3, 3000)),
    _conv("deep, zero point", (1, 4, 4, 300), (5, 3, 3, 300), zeros=(-128, 0, -50)),
    _conv("1x1", (2, 5, 6, 8), (16, 1, 1, 8), types=(T.INT8, T.INT4)),
    _conv("3x3, odd number of weights", (1, 5, 6, 3), (5, 3, 3, 3), types=(T.INT8, T.INT4)),
    with_ties(_conv("halves", (1, 5, 6, 4), (8, 1, 1, 4), types=(T.INT8, T.INT4)), 2.0**-4),
    with_ties(_conv("halves", (1, 5, 6, 4), (8, 1, 1, 4), **_INT16), 2.0**-8),
    _conv("1x1", (2, 5, 6, 8), (16, 1, 1, 8), **_INT16),
    _conv("3x3, 32-bit bias", (2, 5, 6, 8), (16, 3, 3, 8), quantized_bias_type=T.INT32, **_INT16 | {"bias": T.INT32}),
    positive(
        _conv(
            "32-bit sums that overflow",
            (1, 4, 4, 700),
            (4, 3, 3, 700),
            quantized_bias_type=T.INT32,
            gain=0.1,
            **_INT16 | {"bias": T.INT32},
        )
    ),
    _conv("3x3, 64-bit bias, declared", (1, 5, 6, 8), (16, 3, 3, 8), quantized_bias_type=T.INT64, **_INT16),
    _conv("RELU6, groups", (1, 5, 6, 8), (6, 3, 3, 4), fused_activation_function=_RELU6, **_INT16),
    _conv("one scale, deep", (1, 3, 4, 100), (6, 3, 3, 100), per_channel=False, **_INT16),
    _conv("3x3", (1, 5, 6, 8), (6, 3, 3, 8), **_INT16 | {"types": (T.INT16, T.INT4)}),
    _conv("1x1", (2, 5, 6, 8), (16, 1, 1, 8), **_UINT8),
    _conv("3x3, stride 2", (2, 7, 6, 5), (8, 3, 3, 5), stride_w=2, stride_h=2, **_UINT8),
    _conv("zero points at the ends", (1, 6, 6, 5), (8, 3, 3, 5), gain=0.2, **_UINT8 | {"zeros": (0, 255, 255)}),
    _conv("RELU6", (1, 6, 6, 5), (8, 3, 3, 5), fused_activation_function=_RELU6, **_UINT8),
    _conv("blocks of lines, two images", (2, 30, 20, 32), (8, 3, 3, 32)),
    _conv("lines between windows are skipped", (2, 13, 46, 8), (5, 2, 2, 8), stride_w=3, stride_h=3),
    _conv("dilated lines", (1, 12, 20, 8), (4, 3, 3, 8), dilation_h_factor=2),
    _conv("adjacent pixels share what they read", (2, 5, 29, 12), (13, 3, 3, 12), zeros=(-128, 0, 127)),
    _conv("adjacent pixels share what they read", (1, 5, 32, 4), (16, 3, 3, 4), **_UINT8),
    _conv("adjacent pixels share what they read", (1, 5, 30, 8), (13, 3, 3, 8), types=(T.INT8, T.INT4)),
    _depthwise("3x3 SAME pads with the zero point", (2, 7, 6, 5), (1, 3, 3, 5), zeros=(-128, 0, 127)),
    _depthwise("zero point at the upper end", (1, 7, 6, 5), (1, 3, 3, 5), zeros=(127, 0, -128)),
    _depthwise("one scale", (1, 7, 6, 5), (1, 3, 3, 5), per_channel=False),
    _depthwise(
        "multiplier 3, VALID, stride 2", (1, 7, 7, 4), (1, 3, 3, 12), stride_w=2, stride_h=2, padding=Padding.VALID
    ),
    _depthwise("5x4, dilation 2 by 1", (1, 9, 9, 3), (1, 4, 5, 3), dilation_w_factor=2),
    _depthwise("RELU6", (1, 6, 6, 3), (1, 3, 3, 3), fused_activation_function=_RELU6, zeros=(3, 0, -100)),
    _depthwise("saturates", (1, 6, 6, 3), (1, 3, 3, 3), gain=20),
    _depthwise("factor beyond 1", (1, 6, 6, 3), (1, 3, 3, 3), gain=300),
    _depthwise("multiplier of one channel", (1, 8, 5, 1), (1, 8, 5, 4)),
    _depthwise("3x3", (1, 6, 6, 5), (1, 3, 3, 5), types=(T.INT8, T.INT4)),
    _depthwise("3x3", (2, 6, 6, 5), (1, 3, 3, 5), **_INT16),
    _depthwise("multiplier 2, one scale", (1, 6, 6, 3), (1, 3, 3, 6), **_INT16 | {"per_channel": False}),
    _depthwise("3x3", (2, 6, 6, 5), (1, 3, 3, 5), **_UINT8),
    _depthwise(
        "multiplier 2, stride 2, RELU",
        (1, 7, 7, 3),
        (1, 3, 3, 6),
        stride_w=2,
        stride_h=2,
        fused_activation_function=_RELU,
        **_UINT8,
    ),
    _depthwise("8 channels, 3x3, several pieces and one more", (2, 5, 18, 8), (1, 3, 3, 8)),
    _depthwise("9 channels, 3x3, stride 2", (1, 9, 21, 9), (1, 3, 3, 9), stride_w=2, stride_h=2, zeros=(-128, 0, 127)),
    _depthwise(
        "16 channels, 5x5", (1, 6, 11, 16), (1, 5, 5, 16), fused_activation_function=_RELU, zeros=(127, 0, -128)
    ),
    _depthwise("24 channels, a column, dilated", (1, 11, 3, 24), (1, 4, 1, 24), dilation_h_factor=2),
    _depthwise("31 channels, VALID", (1, 4, 9, 31), (1, 2, 4, 31), padding=Padding.VALID),
    _depthwise("12 channels, factor beyond 1", (1, 3, 2, 12), (1, 3, 3, 12), gain=300),
    _depthwise("16 channels, 3x3", (1, 7, 13, 16), (1, 3, 3, 16), **_UINT8),
    _depthwise("16 channels, 3x3, a line of several segments", (2, 2, 520, 16), (1, 3, 3, 16)),
    _depthwise("40 channels, 3x3, more lines than fit in a cache", (2, 9, 64, 40), (1, 3, 3, 40), stride_h=2),
    _depthwise("1 channel, 3x3", (2, 5, 37, 1), (1, 3, 3, 1)),
    _depthwise("2 channels, VALID", (1, 4, 30, 2), (1, 2, 5, 2), padding=Padding.VALID),
    _depthwise("4 channels, 3x3, pixels that fill no vector", (1, 5, 9, 4), (1, 3, 3, 4), zeros=(127, 0, -128)),
    _depthwise("20 channels, 9 rows", (1, 10, 6, 20), (1, 9, 3, 20)),
    _depthwise("8 channels, 5x5", (1, 6, 11, 8), (1, 5, 5, 8), **_UINT8 | {"zeros": (255, 0, 0)}),
    _depthwise("18 channels, 7 columns, stride 3", (1, 4, 23, 18), (1, 1, 7, 18), stride_w=3, stride_h=1),
    _depthwise("17 channels, dilated", (1, 8, 15, 17), (1, 3, 3, 17), dilation_w_factor=3, dilation_h_factor=2),
    _depthwise("8 channels, zero points at the ends", (1, 6, 6, 8), (1, 3, 3, 8), **_UINT8 | {"zeros": (0, 255, 255)}),
    _depthwise("zero points at the ends", (1, 6, 6, 5), (1, 3, 3, 5), gain=0.2, **_UINT8 | {"zeros": (0, 255, 255)}),
    _depthwise("zero points at other ends", (1, 6, 6, 5), (1, 3, 3, 5), gain=0.2, **_UINT8 | {"zeros": (255, 0, 0)}),
    _transposed("3x3 SAME, stride 2", (2, 3, 4, 5), (6, 3, 3, 5), (6, 8), stride_w=2, stride_h=2),
    _transposed("3x3 VALID, stride 1", (1, 3, 4, 5), (6, 3, 3, 5), (5, 6), padding=Padding.VALID),
    _transposed(
        "phases of one tap, lines that fill no tile",
        (1, 3, 33, 16),
        (17, 2, 2, 16),
        (6, 66),
        padding=Padding.VALID,
        stride_w=2,
        stride_h=2,
    ),
    _transposed(
        "2x2 VALID, stride 2",
        (1, 3, 4, 5),
        (6, 2, 2, 5),
        (6, 8),
        padding=Padding.VALID,
        stride_w=2,
        stride_h=2,
        zeros=(-128, 0, 127),
    ),
    _transposed(
        "stride beyond the filter", (1, 3, 3, 5), (4, 2, 2, 5), (9, 9), stride_w=3, stride_h=3, zeros=(127, 0, 4)
    ),
    _transposed(
        "RELU, one scale",
        (1, 3, 4, 5),
        (6, 3, 3, 5),
        (6, 8),
        stride_w=2,
        stride_h=2,
        per_channel=False,
        fused_activation_function=_RELU,
    ),
    _transposed("no bias", (1, 3, 4, 5), (6, 3, 3, 5), (6, 8), stride_w=2, stride_h=2, bias=None),
    _transposed("3x3", (1, 3, 4, 5), (6, 3, 3, 5), (6, 8), stride_w=2, stride_h=2, **_INT16),
    _transposed(
        "32-bit bias",
        (1, 3, 4, 5),
        (6, 3, 3, 5),
        (6, 8),
        stride_w=2,
        stride_h=2,
        quantized_bias_type=T.INT32,
        **_INT16 | {"bias": T.INT32},
    ),
    _transposed("no bias", (1, 3, 4, 5), (6, 3, 3, 5), (6, 8), stride_w=2, stride_h=2, **_INT16 | {"bias": None}),
    _transposed(
        "no bias, 32 bits",
        (1, 3, 4, 5),
        (6, 3, 3, 5),
        (6, 8),
        stride_w=2,
        stride_h=2,
        quantized_bias_type=T.INT32,
        **_INT16 | {"bias": None},
    ),
    _transposed("3x3", (1, 3, 4, 5), (6, 3, 3, 5), (6, 8), stride_w=2, stride_h=2, **_UINT8),
    _transposed("stride beyond the filter", (1, 3, 3, 5), (4, 2, 2, 5), (9, 9), stride_w=3, stride_h=3, **_UINT8),
    _transposed(
        "zero points at the ends",
        (1, 3, 4, 5),
        (6, 3, 3, 5),
        (6, 8),
        stride_w=2,
        stride_h=2,
        gain=0.2,
        **_UINT8 | {"zeros": (0, 255, 255)},
    ),
    *(
        _conv("1x2 in groups, one line", (1, 1, 40, 8), (6, 1, 2, 4), padding=Padding.VALID, **types)
        for types in ({}, _INT16, _UINT8)
    ),
    _conv("one pixel", (1, 5, 6, 7), (2, 5, 6, 7), padding=Padding.VALID),
    _conv(
        "one pixel, dilated",
        (1, 7, 9, 7),
        (2, 4, 5, 7),
        padding=Padding.VALID,
        dilation_h_factor=2,
        dilation_w_factor=2,
    ),
    *(
        _conv("images as large as the filter", x, filter_, padding=Padding.VALID, **types)
        for types in ({}, _INT16, _UINT8, {"types": (T.INT8, T.INT4)})
        for x, filter_ in (((3, 4, 5, 7), (37, 4, 5, 7)), ((1, 5, 1, 15), (33, 5, 1, 15)))
    ),
    *(_beyond_int32(factor) for factor in (600, 40000, 3e6)),
)
