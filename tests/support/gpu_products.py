"""Products and convolutions for GPUs, with what is expected of them in float64."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.interpreter.graph import Array
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support.build import Graph, randn
from support.gpu_nets import Net, convolved

Draw = Callable[..., Array]
"""Numbers of a generator, of a shape."""
_RELU6 = ActivationFunctionType.RELU6


def eighths(rng: np.random.Generator, *shape: int) -> Array:
    """Multiples of 1/8 up to 1: halves, whose products and sums are exact in float32."""
    return (rng.integers(-8, 9, shape) / 8).astype(np.float32)


def dense(
    rows: int, columns: int, depth: int, *, known: bool = True, kernel: str = "product_local", draw: Draw = randn
) -> Net:
    """A product with a bias, an addend and RELU6 behind it."""
    rng = np.random.default_rng(rows + columns + depth)
    g = Graph()
    x, w, b, r = (draw(rng, *shape) for shape in ((rows, depth), (columns, depth), (columns,), (rows, columns)))
    inputs = [g.input(x.shape), g.const(w) if known else g.input(w.shape), g.const(b)]
    y = g.op(FULLY_CONNECTED, inputs, FullyConnectedOptions())
    y = g.op(binary.ADD, [y, g.input(r.shape)], binary.AddOptions(_RELU6))
    expected = np.clip(x.astype(np.float64) @ w.T.astype(np.float64) + b + r, 0, 6)
    return Net(g, y, [x, *([] if known else [w]), r], expected, kernel)


def conv(
    side: int,
    channels: int,
    columns: int,
    size: int,
    stride: int = 1,
    groups: int = 1,
    dilation: int = 1,
    draw: Draw = randn,
) -> Net:
    """A convolution of two images with borders."""
    rng = np.random.default_rng(channels + columns + size)
    g = Graph()
    x, w = draw(rng, 2, side, side + 1, channels), draw(rng, columns, size, size, channels // groups)
    options = Conv2DOptions(Padding.SAME, stride, stride, _RELU6, dilation, dilation)
    y = g.op(CONV_2D, [g.input(x.shape), g.const(w), g.const(draw(rng, columns))], options)
    bias = g.tensors[2].data
    assert bias is not None
    return Net(g, y, [x], np.clip(convolved(x, w, stride, groups, dilation) + bias, 0, 6))


def gated(side: int, channels: int, columns: int, draw: Draw = randn) -> Net:
    """An image whose channels are multiplied by what is computed, and a 1x1 convolution of it with an addend."""
    rng = np.random.default_rng(channels)
    g = Graph()
    x, gates, w = (draw(rng, *shape) for shape in ((1, side, side, channels), (1, 1, 1, channels), (columns, channels)))
    inputs = [g.input(gates.shape), g.input(x.shape)]
    y = g.op(binary.MUL, inputs, binary.MulOptions())
    y = g.op(CONV_2D, [y, g.const(w.reshape(columns, 1, 1, channels)), None], Conv2DOptions(Padding.SAME, 1, 1))
    r = draw(rng, 1, side, side, columns)
    y = g.op(binary.ADD, [y, g.input(r.shape)], binary.AddOptions(_RELU6))
    expected = np.clip((x.astype(np.float64) * gates) @ w.T.astype(np.float64) + r, 0, 6)
    return Net(g, y, [gates, x, r], expected)


def separable(
    side: int, channels: int, columns: int, size: int, stride: int = 1, dilation: int = 1, draw: Draw = randn
) -> Net:
    """A depthwise convolution with a clamp, a 1x1 convolution of its result, and an addend."""
    rng = np.random.default_rng(channels + columns + size)
    g = Graph()
    x, w = draw(rng, 2, side, side + 1, channels), draw(rng, 1, size, size, channels)
    v, a, b = draw(rng, columns, 1, 1, channels), draw(rng, channels), draw(rng, columns)
    same = DepthwiseConv2DOptions(Padding.SAME, stride, stride, 1, _RELU6, dilation, dilation)
    y = g.op(DEPTHWISE_CONV_2D, [g.input(x.shape), g.const(w), g.const(a)], same)
    by_channel = np.moveaxis(w, 3, 0).reshape(channels, size, size, 1)
    middle = np.clip(convolved(x, by_channel, stride, channels, dilation) + a, 0, 6)
    y = g.op(CONV_2D, [y, g.const(v), g.const(b)], Conv2DOptions(Padding.SAME, 1, 1))
    r = draw(rng, *middle.shape[:3], columns)
    y = g.op(binary.ADD, [y, g.input(r.shape)], binary.AddOptions())
    return Net(g, y, [x, r], middle @ v.reshape(columns, channels).T.astype(np.float64) + b + r)


def depthwise(side: int, channels: int, size: int, stride: int = 1, draw: Draw = randn) -> Net:
    """A depthwise convolution of two images with borders."""
    rng = np.random.default_rng(channels + size)
    g = Graph()
    x, w, a = draw(rng, 2, side, side + 1, channels), draw(rng, 1, size, size, channels), draw(rng, channels)
    options = DepthwiseConv2DOptions(Padding.SAME, stride, stride, 1, _RELU6)
    y = g.op(DEPTHWISE_CONV_2D, [g.input(x.shape), g.const(w), g.const(a)], options)
    expected = convolved(x, np.moveaxis(w, 3, 0).reshape(channels, size, size, 1), stride, channels, 1) + a
    return Net(g, y, [x], np.clip(expected, 0, 6), "depthwise_conv_2d")


def matmul(
    x_batch: Sequence[int], y_batch: Sequence[int], sizes: Sequence[int], *, adj: bool, known: bool, draw: Draw = randn
) -> Net:
    """A product of batches, one of which may be broadcast."""
    rows, columns, depth = sizes
    rng = np.random.default_rng(sum(sizes))
    g = Graph()
    x, y = draw(rng, *x_batch, rows, depth), draw(rng, *y_batch, *((columns, depth) if adj else (depth, columns)))
    inputs = [g.input(x.shape), g.const(y) if known else g.input(y.shape)]
    out = g.op(BATCH_MATMUL, inputs, BatchMatMulOptions(False, adj, False))
    expected = x.astype(np.float64) @ (y.swapaxes(-1, -2) if adj else y).astype(np.float64)
    return Net(g, out, [x, *([] if known else [y])], expected)


def joined(draw: Draw = randn) -> Net:
    """Two products side by side in rows that are not aligned."""
    rng = np.random.default_rng(4)
    g = Graph()
    x, w, v = draw(rng, 1, 9, 9, 8), draw(rng, 6, 1, 1, 8), draw(rng, 9, 1, 1, 8)
    into = g.input(x.shape)
    parts = [
        g.op(CONV_2D, [into, g.const(f), g.const(np.zeros(len(f), np.float32))], Conv2DOptions(Padding.SAME, 1, 1))
        for f in (w, v)
    ]
    expected = np.concatenate([x.astype(np.float64) @ f.reshape(len(f), 8).T for f in (w, v)], axis=-1)
    return Net(g, g.op(CONCATENATION, parts, ConcatenationOptions(3)), [x], expected)


PRODUCTS: dict[str, Callable[..., Net]] = {
    "aligned": lambda **more: dense(64, 64, 256, **more),
    "edges": lambda **more: dense(70, 66, 132, **more),
    "few columns": lambda **more: dense(37, 3, 64, **more),
    "one step": lambda **more: dense(65, 20, 4, **more),
    "weights that are computed": lambda **more: dense(21, 35, 268, known=False, **more),
    "3x3": lambda **more: conv(9, 8, 20, 3, **more),
    "3x3, stride 2": lambda **more: conv(10, 12, 33, 3, stride=2, **more),
    "5x5, dilated": lambda **more: conv(9, 4, 16, 5, dilation=2, **more),
    "groups": lambda **more: conv(7, 24, 48, 3, groups=3, **more),
    "1x1": lambda **more: conv(6, 64, 70, 1, **more),
    "depthwise before": lambda **more: separable(9, 40, 36, 3, **more),
    "depthwise before, stride 2": lambda **more: separable(10, 260, 20, 3, stride=2, **more),
    "depthwise before, 5x5, dilated": lambda **more: separable(9, 8, 33, 5, dilation=2, **more),
    "gates before": lambda **more: gated(7, 36, 40, **more),
    "rows": joined,
    "batch": lambda **more: matmul((2, 3), (2, 3), (33, 36, 20), adj=False, known=False, **more),
    "batch, transposed": lambda **more: matmul((2, 1), (3,), (10, 37, 64), adj=True, known=False, **more),
    "batch, one for all": lambda **more: matmul((2, 3), (1, 1), (5, 40, 68), adj=False, known=False, **more),
    "batch, known": lambda **more: matmul((2, 2), (2, 1), (17, 19, 40), adj=False, known=True, **more),
    "one row": lambda **more: dense(1, 7, 68, kernel="matvec", **more),
    "four rows": lambda **more: dense(4, 34, 1028, kernel="matvec", **more),
    "two rows, computed weights": lambda **more: dense(2, 5, 256, known=False, kernel="matvec", **more),
}
"""Tiles, layouts and edges; ``draw`` may be given."""
