"""MobileNets, ResNet-50, EfficientNet-B0 and BERT's encoder with random weights, layer by layer."""

import numpy as np

from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.pool_2d import MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import LOGISTIC, RSQRT
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.models.layers import MOBILENET_V2, Layers

_NONE, _RELU, _RELU6 = ActivationFunctionType.NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU6
# Output channels and stride of MobileNetV1's blocks (Howard et al., 2017, table 1).
_MOBILENET_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
# Channels within, blocks and first stride of ResNet-50's stages (He et al., 2015, table 1).
_RESNET_50 = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
# Expansion, output channels, repeats, first stride and size of EfficientNet-B0's blocks (Tan and Le, 2019, table 1).
_EFFICIENTNET_B0 = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
_SQUEEZED = 4  # the channels of a block's input for one of its squeeze
_EPSILON = np.float32(1e-12)


def mobilenet_v1(size: int = 224, batch: int = 1) -> bytes:
    """MobileNetV1 0.25, with a fourth of the channels, without its softmax."""
    layers = Layers()
    x = layers.conv(layers.graph.input((batch, size, size, 3)), 8, 3, 2, _RELU)
    for channels, stride in _MOBILENET_V1:
        x = layers.conv(layers.depthwise(x, stride, _RELU), channels // 4, activation=_RELU)
    return layers.file(layers.dense(layers.mean(x), 1000))


def mobilenet_v2(size: int = 224, batch: int = 1) -> bytes:
    """MobileNetV2 1.0 without its softmax, which a benchmark's random weights would saturate."""
    layers = Layers()
    x = layers.conv(layers.graph.input((batch, size, size, 3)), 32, 3, 2, _RELU6)
    for expansion, channels, repeats, first_stride in MOBILENET_V2:
        for stride in (first_stride, *(1,) * (repeats - 1)):
            y = x if expansion == 1 else layers.conv(x, expansion * layers.channels(x), activation=_RELU6)
            y = layers.conv(layers.depthwise(y, stride), channels)
            x = layers.add(x, y) if stride == 1 and layers.channels(x) == channels else y
    return layers.file(layers.dense(layers.mean(layers.conv(x, 1280, activation=_RELU6)), 1000))


def resnet_50(size: int = 224, batch: int = 1) -> bytes:
    """ResNet-50 without its softmax."""
    layers = Layers()
    x = layers.conv(layers.graph.input((batch, size, size, 3)), 64, 7, 2, _RELU)
    x = layers.graph.op(MAX_POOL_2D, (x,), Pool2DOptions(stride_w=2, stride_h=2, filter_width=3, filter_height=3))
    for channels, blocks, first_stride in _RESNET_50:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            shortcut = x if block else layers.conv(x, 4 * channels, 1, stride)
            y = layers.conv(layers.conv(x, channels, activation=_RELU), channels, 3, stride, _RELU)
            x = layers.add(layers.conv(y, 4 * channels), shortcut, _RELU)
    return layers.file(layers.dense(layers.mean(x), 1000))


def efficientnet_b0(size: int = 224, batch: int = 1) -> bytes:
    """EfficientNet-B0 without its softmax."""
    layers = Layers()
    x = _swish(layers, layers.conv(layers.graph.input((batch, size, size, 3)), 32, 3, 2))
    for expansion, channels, repeats, first_stride, window in _EFFICIENTNET_B0:
        for stride in (first_stride, *(1,) * (repeats - 1)):
            inner = layers.channels(x)
            y = x if expansion == 1 else _swish(layers, layers.conv(x, expansion * inner))
            y = _swish(layers, layers.depthwise(y, stride, _NONE, window))
            y = layers.conv(_excited(layers, y, inner // _SQUEEZED), channels)
            x = layers.add(x, y) if stride == 1 and inner == channels else y
    return layers.file(layers.dense(layers.mean(_swish(layers, layers.conv(x, 1280))), 1000))


def _swish(layers: Layers, x: int) -> int:
    return _times(layers, x, layers.graph.op(LOGISTIC, [x], NoOptions()))


def _times(layers: Layers, a: int, b: int) -> int:
    return layers.graph.op(binary.MUL, [a, b], binary.MulOptions())


def _excited(layers: Layers, x: int, channels: int) -> int:
    """Return an image whose channels are multiplied by what their means say."""
    axes = layers.graph.const(np.array([1, 2], np.int32))
    means = layers.graph.op(MEAN, [x, axes], ReducerOptions(keep_dims=True))
    gates = layers.conv(_swish(layers, layers.conv(means, channels)), layers.channels(x))
    return _times(layers, x, layers.graph.op(LOGISTIC, [gates], NoOptions()))


def bert(words: int = 128, batch: int = 1, layers: int = 12, width: int = 768, heads: int = 12) -> bytes:
    """The encoder of BERT-base (Devlin et al., 2019) on embedded words [batch, words, width], without a mask."""
    made = Layers()
    x = made.graph.input((batch * words, width))
    for _ in range(layers):
        x = _normalized(made, made.add(x, _attended(made, x, (batch, words, heads, width // heads))))
        inner = made.graph.op(GELU, [made.dense(x, 4 * width)], GeluOptions())
        x = _normalized(made, made.add(x, made.dense(inner, width)))
    return made.file(x)


def _attended(layers: Layers, x: int, shape: tuple[int, int, int, int]) -> int:
    batch, words, heads, size = shape
    g, width = layers.graph, heads * size

    def by_head(y: int) -> int:
        return _transposed(layers, g.op(RESHAPE, [y, g.const(np.array(shape, np.int32))], ReshapeOptions()))

    q, k, v = (by_head(layers.dense(x, width)) for _ in range(3))
    scores = g.op(BATCH_MATMUL, [q, k], BatchMatMulOptions(adj_y=True))
    scaled = _times(layers, scores, g.const(np.float32(size**-0.5)))
    seen = g.op(BATCH_MATMUL, [g.op(SOFTMAX, [scaled], SoftmaxOptions(1.0)), v], BatchMatMulOptions())
    rows = g.const(np.array((batch * words, width), np.int32))
    return layers.dense(g.op(RESHAPE, [_transposed(layers, seen), rows], ReshapeOptions()), width)


def _transposed(layers: Layers, x: int) -> int:
    """Return words and heads in each other's place."""
    return layers.graph.op(TRANSPOSE, [x, layers.graph.const(np.array([0, 2, 1, 3], np.int32))], NoOptions())


def _normalized(layers: Layers, x: int) -> int:
    """Return rows with mean 0 and variance 1."""
    g = layers.graph
    axis = g.const(np.array([1], np.int32))
    mean = g.op(MEAN, [x, axis], ReducerOptions(keep_dims=True))
    squares = g.op(binary.SQUARED_DIFFERENCE, [x, mean], NoOptions())
    variance = layers.add(g.op(MEAN, [squares, axis], ReducerOptions(keep_dims=True)), g.const(_EPSILON))
    return _times(layers, g.op(binary.SUB, [x, mean], binary.SubOptions()), g.op(RSQRT, [variance], NoOptions()))
