"""Families of products with weights: convolutions, dense layers and matrix products, of floats and integers."""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.graph import ABSENT, Array, Quantization, Shape, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pad import PAD, PADV2
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.transpose_conv import CONVOLUTION_2D_TRANSPOSE_BIAS, TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.options import CustomOptions
from litecl.interpreter.schema import Padding, TensorType
from litecl.random_graphs.elementwise import QUANTIZED, fused, is_quantized
from litecl.random_graphs.sketch import MOST_ELEMENTS, Sketch, T, Unfit

_MOST_PRODUCTS = 6_000_000
_BLOCK = 4  # elements with a scale of their own


def image(s: Sketch, *types: Any) -> int:
    """Return a tensor [n, height, width, channels] of one of these types (float, or those that represent real
    numbers).
    """
    wanted = types or (T.FLOAT32, *QUANTIZED)
    return s.pick(*wanted, rank=4, where=lambda spec: spec.type == T.FLOAT32 or is_quantized(spec))


def padded(s: Sketch, x: int) -> int:
    """Return the image, now and then after a PAD of its rows and columns that its reader may take over."""
    if not s.chance(0.25):
        return x
    spec = s.spec(x)
    borders = np.array([[0, 0], s.rng.integers(0, 3, 2), s.rng.integers(0, 3, 2), [0, 0]], np.int32)
    out = [TensorSpec(spec.type, None, quantization=spec.quantization)]
    if spec.type == T.FLOAT32 and s.chance(0.4):
        value = s.const(np.array(s.one_of(0, 0, 1.5), np.float32))
        return s.op(PADV2, [x, s.const(borders), value], None, out)
    return s.op(PAD, [x, s.const(borders)], None, out)


@dataclass(frozen=True)
class _Weights:
    """Weights, and the bias that fits them; ABSENT where there is none."""

    values: int
    bias: int


_NARROW = {T.INT8: 127, T.INT4: 7, T.INT2: 1}  # the largest weights of types


def _weights(s: Sketch, x: int, shape: Shape, axis: int, columns: int, *, narrow: bool = False) -> _Weights:
    """Weights of a shape whose dimension ``axis`` counts output channels, of a kind that goes with ``x``.

    narrow: of integers of fewer bits than 8, too.
    """
    type_ = s.one_of(T.INT8, T.INT8, T.INT4, T.INT2) if narrow else T.INT8
    spec = s.spec(x)
    depth = max(1, int(np.prod(shape)) // columns)
    bias = s.chance(0.7)
    if spec.type != T.FLOAT32:
        return _integer_weights(s, spec, shape, axis, columns, bias, type_)
    if s.chance(0.35):
        per_channel = s.chance(0.5)
        most = _NARROW[type_]
        scales = s.rng.uniform(0.3, 1, columns if per_channel else 1) / (most / 2 * depth**0.5)
        by = Quantization(scales.astype(np.float32), np.zeros(scales.shape, np.int64), axis)
        if narrow and len(shape) == 2 and depth % _BLOCK == 0 and s.chance(0.5):
            scales = s.rng.uniform(0.3, 1, (columns, depth // _BLOCK)) / (most / 2 * depth**0.5)
            halves = scales.astype(s.one_of(np.float16, np.float32))
            by = Quantization(halves, np.zeros(scales.shape, np.int64), 1, block_size=_BLOCK)
        weights = s.const(s.rng.integers(-most, most + 1, shape).astype(np.int8), type_, by)
    else:
        weights = _floats(s, s.rng.standard_normal(shape) / depth**0.5)
    return _Weights(weights, s.const(s.random(T.FLOAT32, (columns,))) if bias else ABSENT)


def _floats(s: Sketch, values: Array) -> int:
    """Return weights: a constant, or one of halves that a node widens."""
    if s.chance(0.2):
        return s.op(DEQUANTIZE, [s.const(values.astype(np.float16))])
    return s.const(values.astype(np.float32))


def _integer_weights(
    s: Sketch, x: TensorSpec, shape: Shape, axis: int, columns: int, bias: bool, narrow: TensorType
) -> _Weights:
    assert x.quantization is not None
    unsigned = x.type == T.UINT8
    per_channel = not unsigned and s.chance(0.6)
    scales = s.rng.uniform(0.01, 0.04, columns if per_channel else 1).astype(np.float32)
    zero = int(s.rng.integers(0, 256)) if unsigned else 0
    by = Quantization(scales, np.full(scales.shape, zero, np.int64), axis)
    type_, most = T.UINT8 if unsigned else narrow, _NARROW[narrow]
    values = s.random(type_, shape) if unsigned else s.rng.integers(-most, most + 1, shape).astype(np.int8)
    weights = s.const(values, type_, by)
    if not bias:
        return _Weights(weights, ABSENT)
    deviation = 40.0 * (8000 if x.type == T.INT16 else 60) * (np.prod(shape) / columns) ** 0.5
    wide = x.type == T.INT16 and s.chance(0.6)
    of_bias = Quantization(x.quantization.scale * scales, np.zeros(scales.shape, np.int64))
    drawn: Array = np.clip(s.rng.normal(0, deviation, columns), -(2**30), 2**30).astype(np.int64 if wide else np.int32)
    return _Weights(weights, s.const(drawn, T.INT64 if wide else T.INT32, of_bias))


def _made(s: Sketch, op: Op, x: int, inputs: list[int], options: Any) -> int:
    """Add the node; quantized sums are scaled down, not up."""
    type_ = s.spec(x).type
    if type_ == T.FLOAT32:
        return s.op(op, inputs, options)
    weights = s.spec(inputs[1]).quantization
    by = s.spec(x).quantization
    assert by is not None and weights is not None
    return s.scaled(op, inputs, options, type_, least=float(by.scale[0] * weights.scale.max()))


def _inputs(x: int, weights: _Weights) -> list[int]:
    return [x, weights.values, weights.bias]


def conv_2d(s: Sketch) -> None:
    """CONV_2D of any window, stride, dilation and groups; with weights of floats also such as a node computes."""
    x = padded(s, image(s))
    n, height, width, channels = s.shape_of(x)
    groups = int(s.one_of(*(g for g in (1, 1, 1, 1, 2, 3, 4, 7, channels) if channels % g == 0)))
    columns = groups * s.size(24)
    size = s.one_of((1, 1), (1, 1), (3, 3), (3, 3), (2, 2), (1, 3), (5, 2), (7, 7), (9, 1))
    if n * height * width * size[0] * size[1] * channels // groups * columns > _MOST_PRODUCTS:
        raise Unfit("large")
    stride = s.one_of((1, 1), (1, 1), (2, 2), (1, 2), (3, 1), (4, 20))
    dilation = (
        s.one_of((1, 1), (1, 1), (1, 1), (2, 2), (1, 3), (19, 6)) if stride == (1, 1) or s.chance(0.1) else (1, 1)
    )
    options = Conv2DOptions(
        s.one_of(*Padding), stride[1], stride[0], fused(s, s.spec(x).type), dilation[1], dilation[0]
    )
    weights = _weights(s, x, (columns, *size, channels // groups), 0, columns, narrow=s.chance(0.3))
    _made(s, CONV_2D, x, _inputs(x, weights), options)


def depthwise_conv_2d(s: Sketch) -> None:
    """DEPTHWISE_CONV_2D."""
    x = padded(s, image(s))
    channels = s.shape_of(x)[3]
    multiplier = int(s.one_of(1, 1, 1, 2, 3, 8))
    size = s.one_of((3, 3), (3, 3), (1, 1), (5, 5), (2, 4), (7, 1))
    stride, dilation = s.one_of((1, 1), (2, 2), (1, 2), (20, 3)), s.one_of((1, 1), (1, 1), (2, 2), (2, 3), (7, 19))
    dilation = (1, 1) if stride != (1, 1) and s.chance(0.9) else dilation
    if s.spec(x).size * multiplier * size[0] * size[1] > _MOST_PRODUCTS:
        raise Unfit("large")
    options = DepthwiseConv2DOptions(
        s.one_of(*Padding), stride[1], stride[0], multiplier, fused(s, s.spec(x).type), dilation[1], dilation[0]
    )
    weights = _weights(s, x, (1, *size, channels * multiplier), 3, channels * multiplier, narrow=s.chance(0.3))
    _made(s, DEPTHWISE_CONV_2D, x, _inputs(x, weights), options)


def transpose_conv(s: Sketch) -> None:
    """TRANSPOSE_CONV, and MediaPipe's with a bias."""
    x = image(s)
    n, height, width, channels = s.shape_of(x)
    columns, size = s.size(17), s.one_of((2, 2), (3, 3), (4, 4), (1, 3), (5, 2))
    stride = s.one_of((1, 1), (2, 2), (3, 2), (2, 1), (5, 7))
    if n * height * width * size[0] * size[1] * channels * columns > _MOST_PRODUCTS:
        raise Unfit("large")
    weights = _weights(s, x, (columns, *size, channels), 0, columns)
    if s.spec(x).type == s.spec(weights.values).type == T.FLOAT32 and weights.bias != ABSENT and s.chance(0.4):
        data = struct.pack("<4i", int(s.one_of(1, 2)), stride[1], stride[0], 0)
        s.op(CONVOLUTION_2D_TRANSPOSE_BIAS, _inputs(x, weights), CustomOptions(data))
        return
    padding = s.one_of(*Padding)
    sides = [
        length * step if padding == Padding.SAME else (length - 1) * step + taps
        for length, step, taps in zip((height, width), stride, size, strict=True)
    ]
    options = TransposeConvOptions(padding, stride[1], stride[0], fused(s, s.spec(x).type))
    bias = [] if weights.bias == ABSENT else [weights.bias]
    _made(s, TRANSPOSE_CONV, x, [s.ints(n, *sides, columns), weights.values, x, *bias], options)


def fully_connected(s: Sketch) -> None:
    """FULLY_CONNECTED, of rows or of all that makes them up; with a bias or none."""
    x = s.pick(T.FLOAT32, *QUANTIZED, rank=range(1, 5), where=lambda p: p.type == T.FLOAT32 or is_quantized(p))
    shape = s.shape_of(x)
    keep = s.chance(0.6)
    depth = shape[-1] if keep or s.chance(0.6) else int(np.prod(shape[1:]))
    columns = s.size()
    if s.spec(x).size * columns > _MOST_PRODUCTS or depth * columns > 1 << 17:
        raise Unfit("large")
    options = FullyConnectedOptions(
        fused(s, s.spec(x).type), keep_num_dims=keep, asymmetric_quantize_inputs=s.chance(0.5)
    )
    if s.spec(x).type == T.FLOAT32 and s.chance(0.15):
        computed = s.pick(T.FLOAT32, rank=2, where=lambda p: p.shape is not None and p.shape[1] == depth, recent=0.2)
        s.op(FULLY_CONNECTED, [x, computed, ABSENT], options)
        return
    _made(s, FULLY_CONNECTED, x, _inputs(x, _weights(s, x, (columns, depth), 0, columns, narrow=True)), options)


def batch_matmul(s: Sketch) -> None:
    """BATCH_MATMUL of two tensors, or of one and a constant; adjoint or not; bytes, floats, floats and bytes."""
    x = s.pick(T.FLOAT32, T.INT8, rank=(2, 3, 4), where=lambda p: p.type == T.FLOAT32 or is_quantized(p))
    spec, shape = s.spec(x), s.shape_of(x)
    adj_x, adj_y = s.chance(0.3), s.chance(0.5)
    depth, columns = shape[-2] if adj_x else shape[-1], s.size(65)
    if spec.size * columns > _MOST_PRODUCTS:
        raise Unfit("large")
    batch = s.one_of(shape[:-2], (), tuple(1 for _ in shape[:-2]))
    matrix = (columns, depth) if adj_y else (depth, columns)
    options = BatchMatMulOptions(adj_x, adj_y, s.chance(0.5))
    wanted = (*batch, *matrix)
    scale = depth**-0.5
    if s.chance(0.4):
        y = s.pick(
            spec.type,
            rank=(2, 3, 4),
            recent=0.1,
            where=lambda p: (
                p.static_shape[-1 if adj_y else -2] == depth
                and p.static_shape[:-2] in (shape[:-2], ())
                and is_quantized(p) == is_quantized(spec)
                and p.size < MOST_ELEMENTS
            ),
        )
    elif spec.type == T.INT8:
        y = s.const(s.random(T.INT8, wanted), T.INT8, s.affine(T.INT8))
    elif s.chance(0.3) and not adj_x:
        by = Quantization(np.array([scale / 60], np.float32), np.zeros(1, np.int64))
        y = s.const(s.rng.integers(-127, 128, wanted).astype(np.int8), T.INT8, by)
    else:
        y = _floats(s, s.rng.standard_normal(wanted) * scale)
    _made(s, BATCH_MATMUL, x, [x, y], options)


FAMILIES = {
    "float": (conv_2d, conv_2d, depthwise_conv_2d, transpose_conv, fully_connected, fully_connected, batch_matmul),
}
