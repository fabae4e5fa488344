"""Layers with random weights, and models of a single kind of layer."""

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.models.build import Graph, model, randn

_NONE = ActivationFunctionType.NONE
_RELU6, _TANH = ActivationFunctionType.RELU6, ActivationFunctionType.TANH

# Expansion, output channels, repeats and first stride of MobileNetV2's blocks (Sandler et al., 2018, table 2).
MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class Layers:
    """Adds whole layers to a graph, with weights that keep activations of order one."""

    def __init__(self, seed: int = 0) -> None:
        self.graph = Graph()
        self._rng = np.random.default_rng(seed)

    def _weights(self, *shape: int, fan_in: int) -> int:
        return self.graph.const(randn(self._rng, *shape, scale=(2.0 / fan_in) ** 0.5))

    def _bias(self, channels: int) -> int:
        return self.graph.const(randn(self._rng, channels, scale=0.1))

    def channels(self, x: int) -> int:
        """Return the size of a tensor's last dimension."""
        return self.graph.tensors[x].static_shape[-1]

    def conv(
        self, x: int, channels: int, size: int = 1, stride: int = 1, activation: ActivationFunctionType = _NONE
    ) -> int:
        """Add a convolution with bias."""
        depth = self.channels(x)
        filter_ = self._weights(channels, size, size, depth, fan_in=size * size * depth)
        options = Conv2DOptions(stride_w=stride, stride_h=stride, fused_activation_function=activation)
        return self.graph.op(CONV_2D, (x, filter_, self._bias(channels)), options)

    def depthwise(self, x: int, stride: int = 1, activation: ActivationFunctionType = _RELU6, size: int = 3) -> int:
        """Add a depthwise convolution with bias."""
        channels = self.channels(x)
        options = DepthwiseConv2DOptions(
            stride_w=stride, stride_h=stride, depth_multiplier=1, fused_activation_function=activation
        )
        filter_ = self._weights(1, size, size, channels, fan_in=size * size)
        return self.graph.op(DEPTHWISE_CONV_2D, (x, filter_, self._bias(channels)), options)

    def dense(self, x: int, units: int) -> int:
        """Add a fully connected layer with bias."""
        depth = self.channels(x)
        return self.graph.op(
            FULLY_CONNECTED, (x, self._weights(units, depth, fan_in=depth), self._bias(units)), FullyConnectedOptions()
        )

    def add(self, a: int, b: int, activation: ActivationFunctionType = _NONE) -> int:
        """Add the sum of two tensors."""
        return self.graph.op(ADD, (a, b), AddOptions(activation))

    def mean(self, x: int) -> int:
        """Add the mean over an image."""
        return self.graph.op(MEAN, (x, self.graph.const(np.array([1, 2], np.int32))), ReducerOptions())

    def lstm(self, x: int, units: int) -> int:
        """Add a fused LSTM, batch first, without peepholes or projection."""
        depth = self.channels(x)
        gates = [self._weights(units, depth, fan_in=2 * depth) for _ in range(4)]
        gates += [self._weights(units, units, fan_in=2 * units) for _ in range(4)]
        batch = self.graph.tensors[x].static_shape[0]
        states = [self.graph.variable((batch, units)) for _ in range(2)]
        inputs = (x, *gates, None, None, None, *(self._bias(units) for _ in range(4)), None, None, *states)
        options = UnidirectionalSequenceLSTMOptions(_TANH)
        return self.graph.op(UNIDIRECTIONAL_SEQUENCE_LSTM, (*inputs, None, None, None, None), options)

    def file(self, *outputs: int) -> bytes:
        """Return the model file that computes these tensors."""
        return write(model(self.graph.build(*outputs)))


def convolution(side: int, channels: int) -> bytes:
    """Return a model of one 3x3 convolution with stride 1."""
    layers = Layers()
    return layers.file(layers.conv(layers.graph.input((1, side, side, channels)), channels, 3))


def products(side: int, channels: int, count: int) -> bytes:
    """Return a model of consecutive 1x1 convolutions."""
    layers = Layers()
    x = layers.graph.input((1, side, side, channels))
    for _ in range(count):
        x = layers.conv(x, channels)
    return layers.file(x)


def depthwise_set() -> bytes:
    """Return MobileNetV2 224's depthwise convolutions, four in a row for stride 1; their means are the outputs."""
    layers = Layers()
    outputs = []
    for side, channels, stride in _widths():
        x = layers.graph.input((1, side, side, channels))
        for _ in range(4 if stride == 1 else 1):
            x = layers.depthwise(x, stride)
        outputs.append(layers.mean(x))
    return layers.file(*outputs)


def _widths() -> list[tuple[int, int, int]]:
    """Return image side, channels and stride of MobileNetV2's depthwise convolutions."""
    side, channels, widths = 112, 32, []
    for expansion, out, repeats, first_stride in MOBILENET_V2:
        for stride in (first_stride, *(1,) * (repeats - 1)):
            widths.append((side, expansion * channels, stride))
            side, channels = side // stride, out
    return widths


def dense(depth: int, units: int, batch: int = 1) -> bytes:
    """Return a model of one fully connected layer on ``batch`` rows."""
    layers = Layers()
    return layers.file(layers.dense(layers.graph.input((batch, depth)), units))


def lstm(steps: int, units: int, batch: int = 1) -> bytes:
    """Return a model of one LSTM whose input is as wide as its output."""
    layers = Layers()
    return layers.file(layers.lstm(layers.graph.input((batch, steps, units)), units))
