"""Products and convolutions for GPUs, with expected results in float64."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.interpreter.ops import binary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support.build import Graph, randn
from support.gpu_nets import Net, convolved

_RELU6 = ActivationFunctionType.RELU6


def dense(rows: int, columns: int, depth: int, *, known: bool = True, kernel: str = "product_local") -> Net:
    """Return a product followed by a bias, an addend and RELU6."""
    rng = np.random.default_rng(rows + columns + depth)
    g = Graph()
    x, w, b, r = (randn(rng, *shape) for shape in ((rows, depth), (columns, depth), (columns,), (rows, columns)))
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
) -> Net:
    """A convolution of two images with borders."""
    rng = np.random.default_rng(channels + columns + size)
    g = Graph()
    x, w = randn(rng, 2, side, side + 1, channels), randn(rng, columns, size, size, channels // groups)
    options = Conv2DOptions(Padding.SAME, stride, stride, _RELU6, dilation, dilation)
    y = g.op(CONV_2D, [g.input(x.shape), g.const(w), g.const(randn(rng, columns))], options)
    bias = g.tensors[2].data
    assert bias is not None
    return Net(g, y, [x], np.clip(convolved(x, w, stride, groups, dilation) + bias, 0, 6))


def gated(side: int, channels: int, columns: int) -> Net:
    """Return a 1x1 convolution, with an addend, of an image whose channels are multiplied by computed gates."""
    rng = np.random.default_rng(channels)
    g = Graph()
    x, gates, w = (
        randn(rng, *shape) for shape in ((1, side, side, channels), (1, 1, 1, channels), (columns, channels))
    )
    inputs = [g.input(gates.shape), g.input(x.shape)]
    y = g.op(binary.MUL, inputs, binary.MulOptions())
    y = g.op(CONV_2D, [y, g.const(w.reshape(columns, 1, 1, channels)), None], Conv2DOptions(Padding.SAME, 1, 1))
    r = randn(rng, 1, side, side, columns)
    y = g.op(binary.ADD, [y, g.input(r.shape)], binary.AddOptions(_RELU6))
    expected = np.clip((x.astype(np.float64) * gates) @ w.T.astype(np.float64) + r, 0, 6)
    return Net(g, y, [gates, x, r], expected)


def separable(side: int, channels: int, columns: int, size: int, stride: int = 1, dilation: int = 1) -> Net:
    """A depthwise convolution with a clamp, a 1x1 convolution of its result, and an addend."""
    rng = np.random.default_rng(channels + columns + size)
    g = Graph()
    x, w = randn(rng, 2, side, side + 1, channels), randn(rng, 1, size, size, channels)
    v, a, b = randn(rng, columns, 1, 1, channels), randn(rng, channels), randn(rng, columns)
    same = DepthwiseConv2DOptions(Padding.SAME, stride, stride, 1, _RELU6, dilation, dilation)
    y = g.op(DEPTHWISE_CONV_2D, [g.input(x.shape), g.const(w), g.const(a)], same)
    by_channel = np.moveaxis(w, 3, 0).reshape(channels, size, size, 1)
    middle = np.clip(convolved(x, by_channel, stride, channels, dilation) + a, 0, 6)
    y = g.op(CONV_2D, [y, g.const(v), g.const(b)], Conv2DOptions(Padding.SAME, 1, 1))
    r = randn(rng, *middle.shape[:3], columns)
    y = g.op(binary.ADD, [y, g.input(r.shape)], binary.AddOptions())
    return Net(g, y, [x, r], middle @ v.reshape(columns, channels).T.astype(np.float64) + b + r)


def depthwise(side: int, channels: int, size: int, stride: int = 1) -> Net:
    """A depthwise convolution of two images with borders."""
    rng = np.random.default_rng(channels + size)
    g = Graph()
    x, w, a = randn(rng, 2, side, side + 1, channels), randn(rng, 1, size, size, channels), randn(rng, channels)
    options = DepthwiseConv2DOptions(Padding.SAME, stride, stride, 1, _RELU6)
    y = g.op(DEPTHWISE_CONV_2D, [g.input(x.shape), g.const(w), g.const(a)], options)
    expected = convolved(x, np.moveaxis(w, 3, 0).reshape(channels, size, size, 1), stride, channels, 1) + a
    return Net(g, y, [x], np.clip(expected, 0, 6), "depthwise_conv_2d")


def matmul(x_batch: Sequence[int], y_batch: Sequence[int], sizes: Sequence[int], *, adj: bool, known: bool) -> Net:
    """A product of batches, one of which may be broadcast."""
    rows, columns, depth = sizes
    rng = np.random.default_rng(sum(sizes))
    g = Graph()
    x, y = randn(rng, *x_batch, rows, depth), randn(rng, *y_batch, *((columns, depth) if adj else (depth, columns)))
    inputs = [g.input(x.shape), g.const(y) if known else g.input(y.shape)]
    out = g.op(BATCH_MATMUL, inputs, BatchMatMulOptions(False, adj, False))
    expected = x.astype(np.float64) @ (y.swapaxes(-1, -2) if adj else y).astype(np.float64)
    return Net(g, out, [x, *([] if known else [y])], expected)


def joined() -> Net:
    """Two products side by side in rows that are not aligned."""
    rng = np.random.default_rng(4)
    g = Graph()
    x, w, v = randn(rng, 1, 9, 9, 8), randn(rng, 6, 1, 1, 8), randn(rng, 9, 1, 1, 8)
    into = g.input(x.shape)
    parts = [
        g.op(CONV_2D, [into, g.const(f), g.const(np.zeros(len(f), np.float32))], Conv2DOptions(Padding.SAME, 1, 1))
        for f in (w, v)
    ]
    expected = np.concatenate([x.astype(np.float64) @ f.reshape(len(f), 8).T for f in (w, v)], axis=-1)
    return Net(g, g.op(CONCATENATION, parts, ConcatenationOptions(3)), [x], expected)


PRODUCTS: dict[str, Callable[[], Net]] = {
    "aligned": lambda: dense(64, 64, 256),
    "edges": lambda: dense(70, 66, 132),
    "few columns": lambda: dense(37, 3, 64),
    "one step": lambda: dense(65, 20, 4),
    "weights that are computed": lambda: dense(21, 35, 268, known=False),
    "3x3": lambda: conv(9, 8, 20, 3),
    "3x3, stride 2": lambda: conv(10, 12, 33, 3, stride=2),
    "5x5, dilated": lambda: conv(9, 4, 16, 5, dilation=2),
    "groups": lambda: conv(7, 24, 48, 3, groups=3),
    "1x1": lambda: conv(6, 64, 70, 1),
    "depthwise before": lambda: separable(9, 40, 36, 3),
    "depthwise before, stride 2": lambda: separable(10, 260, 20, 3, stride=2),
    "depthwise before, 5x5, dilated": lambda: separable(9, 8, 33, 5, dilation=2),
    "gates before": lambda: gated(7, 36, 40),
    "rows": joined,
    "batch": lambda: matmul((2, 3), (2, 3), (33, 36, 20), adj=False, known=False),
    "batch, transposed": lambda: matmul((2, 1), (3,), (10, 37, 64), adj=True, known=False),
    "batch, one for all": lambda: matmul((2, 3), (1, 1), (5, 40, 68), adj=False, known=False),
    "batch, known": lambda: matmul((2, 2), (2, 1), (17, 19, 40), adj=False, known=True),
    "one row": lambda: dense(1, 7, 68, kernel="matvec"),
    "four rows": lambda: dense(4, 34, 1028, kernel="matvec"),
    "two rows, computed weights": lambda: dense(2, 5, 256, known=False, kernel="matvec"),
}
"""Tiles, layouts and edges."""
