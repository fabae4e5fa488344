"""Three small whole models with random weights: an image network, an int8 one, and a sound network."""

from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, Model, Quantization, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.perf.models.build import Graph, model
from litecl.perf.models.layers import Layers
from litecl.verify.check import Check, Step
from litecl.verify.scenarios.scenario import invokes, scenario

_RELU, _RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
_INT8_DEVIATION = 255 / 12**0.5  # standard deviation of integers spread evenly over their range


def image() -> Model:
    """Return a convolution, two inverted residual blocks like MobileNetV2's, a pool, a dense layer and a softmax."""
    layers = Layers(seed=11)
    g = layers.graph
    x = layers.conv(g.input((1, 33, 31, 3)), 16, 3, 2, _RELU6)
    for _ in range(2):
        y = layers.conv(x, 48, activation=_RELU6)
        x = layers.add(x, layers.conv(layers.depthwise(y), 16))
    x = g.op(MAX_POOL_2D, (x,), Pool2DOptions(stride_w=2, stride_h=2, filter_width=2, filter_height=2))
    return model(g.build(g.op(SOFTMAX, (layers.dense(layers.mean(x), 10),), SoftmaxOptions(1.0))))


def sound() -> Model:
    """Return convolutions over a spectrogram, an LSTM over its frames, a dense layer and a softmax."""
    layers = Layers(seed=12)
    g = layers.graph
    x = layers.conv(g.input((1, 24, 20, 1)), 8, 3, 2, _RELU)
    x = layers.conv(x, 8, 3, 1, _RELU)
    frames = g.op(RESHAPE, (x, g.const(np.array([1, 12, 80], np.int32))), ReshapeOptions((1, 12, 80)))
    return model(g.build(g.op(SOFTMAX, (layers.dense(layers.lstm(frames, 24), 12),), SoftmaxOptions(1.0))))


class _Integers:
    """Builds INT8 layers whose scales keep results spread over their range."""

    def __init__(self, seed: int) -> None:
        self.graph = Graph()
        self._rng = np.random.default_rng(seed)

    def input(self, shape: tuple[int, ...], scale: float, zero: int) -> int:
        """Add an input."""
        return self._scaled(self.graph.input(shape, TensorType.INT8), scale, zero)

    def weighted(self, op: Op, x: int, shape: tuple[int, ...], axis: int, options: Any) -> int:
        """Add a layer with a bias and weights scaled per channel along ``axis``; FULLY_CONNECTED has a single scale."""
        channels = shape[axis]
        depth = int(np.prod(shape)) // channels if op is not DEPTHWISE_CONV_2D else shape[1] * shape[2]
        scales = self._rng.uniform(0.01, 0.04, channels if op is not FULLY_CONNECTED else 1).astype(np.float32)
        weights = self.graph.const(self._rng.integers(-127, 128, shape).astype(np.int8))
        self._set(weights, Quantization(scales, np.zeros(len(scales), np.int64), axis))
        deviation = _INT8_DEVIATION**2 * depth**0.5
        bias = self.graph.const(self._rng.normal(0, deviation, channels).astype(np.int32))
        scale = self._scale(x)
        self._set(bias, Quantization(scale * scales, np.zeros(len(scales), np.int64)))
        step = scale * float(scales.mean()) * deviation / (0.8 * _INT8_DEVIATION)
        return self._scaled(self.graph.op(op, (x, weights, bias), options), step, -3)

    def add(self, a: int, b: int) -> int:
        """Add an addition."""
        step = (self._scale(a) ** 2 + self._scale(b) ** 2) ** 0.5
        return self._scaled(self.graph.op(ADD, (a, b), AddOptions()), step, 5)

    def pool(self, x: int, size: int) -> int:
        """Add an average over ``size`` by ``size`` pixels."""
        options = Pool2DOptions(stride_w=1, stride_h=1, filter_width=size, filter_height=size)
        return self._set(self.graph.op(AVERAGE_POOL_2D, (x,), options), self.graph.tensors[x].quantization)

    def softmax(self, x: int) -> int:
        """Add a softmax with the output scale that TFLite prescribes."""
        return self._scaled(self.graph.op(SOFTMAX, (x,), SoftmaxOptions(1.0)), 1 / 256, -128)

    def _scale(self, tensor: int) -> float:
        by = self.graph.tensors[tensor].quantization
        assert by is not None
        return float(by.scale[0])

    def _scaled(self, tensor: int, scale: float, zero: int) -> int:
        return self._set(tensor, Quantization(np.array([scale], np.float32), np.array([zero])))

    def _set(self, tensor: int, by: Quantization | None) -> int:
        spec: TensorSpec = self.graph.tensors[tensor]
        self.graph.tensors[tensor] = replace(spec, quantization=by)
        return tensor


def integer_image() -> Model:
    """Return a convolution, an inverted residual block, a pool, a dense layer and a softmax, all INT8."""
    n = _Integers(seed=13)
    x = n.input((1, 17, 15, 3), 0.02, -7)
    x = n.weighted(CONV_2D, x, (16, 3, 3, 3), 0, Conv2DOptions(stride_w=2, stride_h=2))
    y = n.weighted(
        CONV_2D, x, (40, 1, 1, 16), 0, Conv2DOptions(stride_w=1, stride_h=1, fused_activation_function=_RELU)
    )
    depthwise = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1, fused_activation_function=_RELU)
    y = n.weighted(DEPTHWISE_CONV_2D, y, (1, 3, 3, 40), 3, depthwise)
    x = n.add(x, n.weighted(CONV_2D, y, (16, 1, 1, 40), 0, Conv2DOptions(stride_w=1, stride_h=1)))
    x = n.weighted(FULLY_CONNECTED, n.pool(x, 8), (10, 16), 0, FullyConnectedOptions())
    return model(n.graph.build(n.softmax(x), x))


def _bytes() -> list[Step]:
    rng = np.random.default_rng(14)
    drawn: list[Array] = [rng.integers(-128, 128, (1, 17, 15, 3)).astype(np.int8) for _ in range(2)]
    return [Step([x]) for x in drawn]


CHECKS: tuple[Check, ...] = (
    scenario("image network", "model", image, invokes(2, (1, 33, 31, 3))),
    scenario("image network, int8", "model", integer_image, _bytes),
    scenario("sound network", "model", sound, invokes(3, (1, 24, 20, 1))),
    scenario(
        "image network, queued",
        "model",
        image,
        invokes(2, (1, 33, 31, 3)),
        options={"queue_loops": True},
        quick=False,
    ),
    scenario(
        "image network, weights as halves",
        "model",
        image,
        invokes(1, (1, 33, 31, 3)),
        options={"precision": "fp16"},
        tolerance=2e-3,  # the weights have 11 bits
        quick=False,
    ),
)
