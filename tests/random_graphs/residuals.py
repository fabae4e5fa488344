"""Inverted residuals: three convolutions that a GPU may run as one kernel."""

from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from litecl.random_graphs.sketch import MOST_ELEMENTS, Sketch, T, Unfit

_NONE, _RELU6 = ActivationFunctionType.NONE, ActivationFunctionType.RELU6


def inverted_residual(s: Sketch) -> None:
    """A 1x1 convolution to more channels, a depthwise one and a 1x1 one to fewer; its input added where it fits."""
    x = s.pick(T.FLOAT32, rank=4)
    images, height, width, channels = s.shape_of(x)
    hidden, columns = 4 * s.size(24), int(s.one_of(channels, 4 * s.size(16), s.size(9)))
    if images * height * width * max(hidden, columns) > MOST_ELEMENTS:
        raise Unfit("large")
    size, stride = s.one_of((3, 3), (3, 3), (5, 5), (1, 3)), s.one_of((1, 1), (1, 1), (2, 2), (2, 1))
    dilation = s.one_of((1, 1), (1, 1), (2, 1)) if stride == (1, 1) else (1, 1)
    y = s.op(CONV_2D, [x, *_weights(s, hidden, 1, 1, channels)], Conv2DOptions(Padding.SAME, 1, 1, _RELU6))
    options = DepthwiseConv2DOptions(s.one_of(*Padding), stride[1], stride[0], 1, _RELU6, dilation[1], dilation[0])
    filter_ = s.const(s.random(T.FLOAT32, (1, *size, hidden)) / (size[0] * size[1]) ** 0.5)
    y = s.op(DEPTHWISE_CONV_2D, [y, filter_, s.const(s.random(T.FLOAT32, (hidden,)))], options)
    y = s.op(CONV_2D, [y, *_weights(s, columns, 1, 1, hidden)], Conv2DOptions(Padding.SAME, 1, 1, _NONE))
    if s.shape_of(x) == s.shape_of(y) and s.chance(0.7):
        s.op(ADD, [x, y], AddOptions(s.one_of(_NONE, _RELU6)))


def _weights(s: Sketch, *shape: int) -> tuple[int, int]:
    """Return a filter that leaves results of order one, and a bias."""
    depth = shape[1] * shape[2] * shape[3]
    filter_ = s.random(T.FLOAT32, shape) / depth**0.5
    return s.const(filter_), s.const(s.random(T.FLOAT32, shape[:1]))
