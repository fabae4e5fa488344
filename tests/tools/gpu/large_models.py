"""EfficientNet-B0 and BERT's encoder with random weights, layer by layer, for measurements on GPUs."""

import numpy as np

from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import LOGISTIC, RSQRT
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.models.peer_models import Layers

_NONE = ActivationFunctionType.NONE
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
