"""Quantized shapes at the corners of the device's tiles and vectors: what does not fill the last of them."""

from typing import Any

from litecl.cases import Case
from litecl.cases.integers import Integers, T, weighted_case
from litecl.cases.tiles_device import LINES
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType

_integers = Integers(81)
_RELU6 = ActivationFunctionType.RELU6
_ZEROS = {T.INT8: (-11, 0, -9), T.UINT8: (117, 131, 120), T.INT16: (0, 0, 0)}
_CHANNELS = ((1, 16), (3, 17), (5, 24), (16, 33), (17, 48), (24, 96), (33, 5), (96, 1), (64, 130))


def _weighted(
    op: Any,
    name: str,
    options: Any,
    type_: TensorType,
    x: tuple[int, ...],
    weights: tuple[int, ...],
    axis: int,
    depth: int,
    **spread: Any,
) -> Case:
    x_zero, w_zero, zero = _ZEROS[type_]
    if type_ == T.INT16:
        spread = {"bias": T.INT64, "step": 0.0003} | spread
    return weighted_case(
        _integers,
        f"{type_.name}, {name}",
        op,
        options,
        (type_, x, x_zero),
        (T.INT8 if type_ == T.INT16 else type_, weights, w_zero),
        axis=axis,
        depth=depth,
        per_channel=type_ != T.UINT8 and op is not FULLY_CONNECTED,
        zero_point=zero,
        version=6,
        **spread,
    )


def _conv(type_: TensorType, name: str, x: tuple[int, ...], filter_: tuple[int, ...], **chosen: Any) -> Case:
    options = Conv2DOptions(**{"stride_w": 1, "stride_h": 1} | chosen)
    depth = filter_[1] * filter_[2] * filter_[3]
    return _weighted(CONV_2D, name, options, type_, x, filter_, 0, depth)


def _depthwise(type_: TensorType, name: str, x: tuple[int, ...], kernel: tuple[int, int], **chosen: Any) -> Case:
    options = DepthwiseConv2DOptions(**{"stride_w": 1, "stride_h": 1, "depth_multiplier": 1} | chosen)
    weights = (1, *kernel, x[3] * options.depth_multiplier)
    return _weighted(DEPTHWISE_CONV_2D, name, options, type_, x, weights, 3, kernel[0] * kernel[1])


def _dense(type_: TensorType, rows: int, depth: int, units: int) -> Case:
    name = f"{rows} x {depth} x {units}"
    return _weighted(FULLY_CONNECTED, name, FullyConnectedOptions(), type_, (rows, depth), (units, depth), 0, depth)


def _family(type_: TensorType) -> tuple[Case, ...]:
    return (
        *(_conv(type_, f"1x1, {c} to {n}", (1, 9, 7, c), (n, 1, 1, c)) for c, n in _CHANNELS),
        *(_conv(type_, f"3x3, {c} to {n}", (2, 8, 9, c), (n, 3, 3, c)) for c, n in _CHANNELS),
        _conv(
            type_,
            "3x3 VALID, RELU6",
            (1, 12, 12, 20),
            (40, 3, 3, 20),
            padding=Padding.VALID,
            fused_activation_function=_RELU6,
        ),
        _conv(type_, "first convolution", (1, 33, 31, 3), (32, 3, 3, 3), stride_w=2, stride_h=2),
        _conv(type_, "one column", (2, 23, 1, 5), (17, 4, 1, 5), stride_h=2),
        _conv(type_, "few columns of many pixels", (1, 16, 16, 12), (3, 1, 1, 12)),
        _conv(type_, "two columns of many pixels", (2, 8, 16, 7), (2, 1, 1, 7), fused_activation_function=_RELU6),
        _conv(type_, "dilation 2", (1, 14, 14, 20), (17, 3, 3, 20), dilation_w_factor=2, dilation_h_factor=2),
        _conv(type_, "1x1, stride 2, a row", (1, 1, 15, 8), (4, 1, 1, 8), stride_w=2, stride_h=1),
        *(_depthwise(type_, f"3x3, {c}", (2, 9, 11, c), (3, 3)) for c in (1, 3, 4, 8, 15, 16, 32, 33, 64, 68, 130)),
        *(
            _depthwise(type_, f"3x3, stride 2, {c}", (1, 14, 15, c), (3, 3), stride_w=2, stride_h=2)
            for c in (5, 16, 24, 96)
        ),
        _depthwise(type_, "5x5 of 8", (1, 9, 17, 8), (5, 5)),
        _depthwise(type_, "9x9", (1, 9, 9, 20), (9, 9)),
        _depthwise(type_, "10x4, one channel", (1, 25, 10, 1), (10, 4), depth_multiplier=8, stride_w=2, stride_h=2),
        _depthwise(type_, "3x1, one column", (1, 30, 1, 40), (3, 1)),
        _depthwise(type_, "9x1, one column, stride 2", (2, 30, 1, 64), (9, 1), stride_h=2),
        _depthwise(type_, "dilation 2", (1, 9, 9, 16), (5, 5), dilation_w_factor=2, dilation_h_factor=2),
        _depthwise(type_, "narrower than a piece", (1, 9, 2, 100), (3, 3)),
        *(_dense(type_, rows, depth, units) for rows in (1, 3, 8) for depth, units in ((1, 3), (17, 33), (130, 100))),
    )


CASES = (
    *_family(T.INT8),
    *_family(T.UINT8),
    *_family(T.INT16),
    *(_depthwise(T.INT8, name, x, (3, 3), **options) for name, x, options in LINES),
    *(_depthwise(T.INT8, f"3x3 VALID, {c}", (1, 5, 18, c), (3, 3), padding=Padding.VALID) for c in (8, 80, 84)),
    *(
        _depthwise(T.INT8, f"dilation 2, {p.name}, 80", (1, 9, 13, 80), (3, 3), padding=p, dilation_w_factor=2)
        for p in Padding
    ),
    *(_dense(type_, 2, 40, units) for type_ in (T.INT8, T.UINT8, T.INT16) for units in (9, 40, 130)),
)
