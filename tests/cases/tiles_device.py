"""Shapes at the corners of the device's register tiles: channels, rows and pixels that do not fill the last of them."""

from itertools import product
from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType, Padding

_random = rng(77)
_BATCH_SIZES = (1, 2, 3, 5, 8)
_CHANNELS = ((1, 16), (3, 17), (5, 24), (16, 33), (17, 48), (24, 96), (33, 5), (96, 1), (64, 130))
_VALID = Padding.VALID

LINES: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = tuple(
    (f"lines of {width}, {padding.name} by {step}", (2, 6, width, 40), {"stride_w": step, "padding": padding})
    for width, step, padding in product((3, 6, 7, 12), (1, 2), Padding)
)
"""Images for 3x3 windows, whose lines do not fill the last tile: names, shapes and options."""


def _f(*shape: int, scale: float = 1.0) -> Array:
    return (_random.standard_normal(shape) * scale).astype(np.float32)


def _conv(name: str, x: tuple[int, ...], filter_: tuple[int, ...], **options: object) -> Case:
    chosen = Conv2DOptions(**{"stride_w": 1, "stride_h": 1} | options)  # type: ignore[arg-type]
    return Case(name, CONV_2D, chosen, [_f(*x), _f(*filter_), _f(filter_[0])], constants=frozenset({1, 2}))


def _depthwise(name: str, x: tuple[int, ...], kernel: tuple[int, int], **options: object) -> Case:
    chosen = DepthwiseConv2DOptions(**{"stride_w": 1, "stride_h": 1, "depth_multiplier": 1} | options)  # type: ignore[arg-type]
    outputs = x[3] * chosen.depth_multiplier
    inputs = [_f(*x), _f(1, *kernel, outputs), _f(outputs)]
    return Case(name, DEPTHWISE_CONV_2D, chosen, inputs, constants=frozenset({1, 2}))


def _dense(rows: int, depth: int, units: int) -> Case:
    inputs = [_f(rows, depth), _f(units, depth), _f(units)]
    name = f"{rows} x {depth} x {units}"
    return Case(name, FULLY_CONNECTED, FullyConnectedOptions(), inputs, constants=frozenset({1, 2}))


def _transposed(name: str, x: tuple[int, ...], filter_: tuple[int, ...], stride: int) -> Case:
    size = np.array([x[0], x[1] * stride, x[2] * stride, filter_[0]], np.int32)
    options = TransposeConvOptions(Padding.SAME, stride, stride)
    return Case(name, TRANSPOSE_CONV, options, [size, _f(*filter_), _f(*x)], constants=frozenset({0, 1}))


def _lstm(batch: int, steps: int, depth: int, units: int) -> Case:
    gates = [_f(units, depth, scale=0.2) for _ in range(4)] + [_f(units, units, scale=0.2) for _ in range(4)]
    biases: list[Array | None] = [None, None, None, *(_f(units) for _ in range(4)), None, None]
    states = [np.zeros((batch, units), np.float32), np.zeros((batch, units), np.float32)]
    return Case(
        f"batch {batch}, {depth} to {units}",
        UNIDIRECTIONAL_SEQUENCE_LSTM,
        UnidirectionalSequenceLSTMOptions(ActivationFunctionType.TANH),
        [_f(batch, steps, depth), *gates, *biases, *states, None, None, None, None],
        constants=frozenset(range(1, 18)),
    )


CASES = (
    *(_conv(f"1x1, {c} to {n} channels", (1, 9, 7, c), (n, 1, 1, c)) for c, n in _CHANNELS),
    *(_conv(f"3x3, {c} to {n} channels", (2, 11, 9, c), (n, 3, 3, c)) for c, n in _CHANNELS),
    *(_conv(f"3x3 VALID, {c} to {n} channels", (1, 18, 18, c), (n, 3, 3, c), padding=_VALID) for c, n in _CHANNELS),
    *(
        _conv(f"5x5, stride 2, {c} to {n} channels", (1, 13, 17, c), (n, 5, 5, c), stride_w=2, stride_h=2)
        for c, n in _CHANNELS
    ),
    _conv("1x1, stride 2, 33 channels", (2, 15, 13, 33), (20, 1, 1, 33), stride_w=2, stride_h=2),
    _conv("3x3, images of many patches", (3, 21, 26, 32), (40, 3, 3, 32)),
    _conv(
        "3x3, RELU6, many patches",
        (1, 29, 30, 16),
        (16, 3, 3, 16),
        fused_activation_function=ActivationFunctionType.RELU6,
    ),
    _conv("3x3, dilation 2, wide", (1, 14, 60, 16), (16, 3, 3, 16), dilation_w_factor=2, dilation_h_factor=2),
    _conv("first convolution", (1, 65, 63, 3), (32, 3, 3, 3), stride_w=2, stride_h=2),
    _conv("groups of 17 channels", (1, 9, 9, 51), (39, 3, 3, 17)),
    *(_depthwise(f"3x3, {c} channels", (2, 9, 7, c), (3, 3)) for c in (1, 3, 15, 16, 17, 31, 33, 96, 130)),
    *(
        _depthwise(f"3x3, stride 2, {c} channels", (1, 14, 15, c), (3, 3), stride_w=2, stride_h=2)
        for c in (5, 16, 24, 96)
    ),
    _depthwise("7x7, wider than what is unrolled by far", (1, 6, 40, 20), (9, 9)),
    _depthwise("stride 3", (1, 17, 19, 24), (3, 3), stride_w=3, stride_h=3),
    _depthwise("blocks of channels", (1, 8, 8, 700), (3, 3)),
    _depthwise("multiplier 3 of 20 channels", (1, 7, 9, 20), (3, 3), depth_multiplier=3),
    _depthwise("dilation 2 of 40 channels", (1, 11, 12, 40), (3, 3), dilation_w_factor=2, dilation_h_factor=2),
    _depthwise("narrower than a piece", (1, 9, 2, 18), (3, 3)),
    *(_dense(rows, depth, units) for rows in _BATCH_SIZES for depth, units in ((1, 3), (17, 33), (130, 100))),
    _dense(200, 40, 70),
    _transposed("2x2, stride 2, 17 to 33 channels", (2, 7, 5, 17), (33, 2, 2, 17), 2),
    _transposed("5x5, stride 3, 5 to 16 channels", (1, 6, 7, 5), (16, 5, 5, 5), 3),
    _transposed("1x1, stride 2: pixels that no tap meets", (1, 4, 4, 3), (18, 1, 1, 3), 2),
    *(_lstm(batch, 6, depth, units) for batch in _BATCH_SIZES for depth, units in ((3, 5), (20, 33))),
    _lstm(1, 20, 16, 64),
    Case("many rows", BATCH_MATMUL, BatchMatMulOptions(), [_f(3, 50, 33), _f(3, 33, 65)]),
    Case("many rows, both adjoint", BATCH_MATMUL, BatchMatMulOptions(True, True), [_f(2, 33, 50), _f(1, 65, 33)]),
    *(_depthwise(name, x, (3, 3), **options) for name, x, options in LINES),
    *(_dense(rows, 40, 70) for rows in (2, 4, 9, 20)),
)
