"""Models for bisections: of many operators, of integers, with LSTMs, with a loop, with a fused chain."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Quantization
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.arg_max import ARG_MAX, ArgMaxOptions
from litecl.interpreter.ops.binary import ADD, MAXIMUM, MUL, SQUARED_DIFFERENCE, SUB, AddOptions, MulOptions, SubOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, ResizeBilinearOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import LOGISTIC, NEG, SIN
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType
from litecl.perf.models.layers import Layers
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, State, below, int32, next_, subgraph, times, while_node
from support.nets import Domain, Net, by


def zoo() -> bytes:
    """A model in which an image goes through twenty operators, of which no two neighbours are one kernel."""
    rng, g, one = np.random.default_rng(71), Graph(), {"stride_w": 1, "stride_h": 1}
    window = {"filter_width": 3, "filter_height": 3, **one}
    relu = ActivationFunctionType.RELU
    x = g.input((1, 9, 9, 20))
    x = g.op(
        CONV_2D,
        [x, g.const(randn(rng, 24, 3, 3, 20, scale=0.1)), g.const(randn(rng, 24))],
        Conv2DOptions(**one, fused_activation_function=relu),
    )
    x = g.op(MAX_POOL_2D, [x], Pool2DOptions(Padding.SAME, **window))
    x = g.op(
        DEPTHWISE_CONV_2D,
        [x, g.const(randn(rng, 1, 3, 3, 24)), g.const(randn(rng, 24))],
        DepthwiseConv2DOptions(**one, depth_multiplier=1),
    )
    x = g.op(SIN, [x], NoOptions())
    x = g.op(RESIZE_BILINEAR, [x, g.const(np.array([7, 11], np.int32))], ResizeBilinearOptions())
    x = g.op(AVERAGE_POOL_2D, [x], Pool2DOptions(Padding.SAME, **window))
    x = g.op(CONV_2D, [x, g.const(randn(rng, 30, 1, 1, 24)), g.const(randn(rng, 30))], Conv2DOptions(**one))
    x = g.op(L2_NORMALIZATION, [x], L2NormOptions())
    x = g.op(CUMSUM, [x, g.const(np.int32(2))], CumsumOptions())
    x = g.op(TRANSPOSE, [x, g.const(np.array([0, 3, 1, 2], np.int32))], NoOptions())
    x = g.op(SQUARED_DIFFERENCE, [x, g.const(randn(rng, 11))], NoOptions())
    x = g.op(GATHER, [x, g.const(np.array([4, 0, 6, 2], np.int32))], GatherOptions(axis=2))
    x = g.op(MEAN, [x, g.const(np.array([3], np.int32))], ReducerOptions())
    x = g.op(LOG_SOFTMAX, [x], NoOptions())
    x = g.op(MAXIMUM, [x, g.const(randn(rng, 1, 30, 1, scale=2.0))], NoOptions())
    x = g.op(FULLY_CONNECTED, [x, g.const(randn(rng, 50, 120, scale=0.02)), None], FullyConnectedOptions())
    x = g.op(SOFTMAX, [x], SoftmaxOptions(beta=0.5))
    values, places = g.node(TOPK_V2, [x, g.const(np.int32(5))], TOPK_V2.infer(None, [g.tensors[x], _k()]), NoOptions())
    most = g.op(ARG_MAX, [x, g.const(np.int32(1))], ArgMaxOptions(TensorType.INT32))
    return write(model(g.build(values, places, most)))


def doubling(steps: int) -> bytes:
    """A model of x = 4 x (1 - x), again and again: each step doubles an error, on average."""
    g = Graph()
    x = g.op(LOGISTIC, [g.input((1, 64))], NoOptions())
    four, one = g.const(np.float32(4)), g.const(np.float32(1))
    for _ in range(steps):
        rest = g.op(SUB, [one, x], SubOptions())
        x = g.op(MUL, [g.op(MUL, [x, four], MulOptions()), rest], MulOptions())
    return write(model(g.build(x)))


def _k() -> Any:
    g = Graph()
    return g.tensors[g.const(np.int32(5))]


def integers() -> bytes:
    """Quantized operators whose zero points are not 0."""
    g = Net(Domain(TensorType.INT8, quantization=by(0.05, 3)))
    x = g.apply(AVERAGE_POOL_2D, [g.x((2, 6, 5, 8))], Pool2DOptions(Padding.SAME, 1, 1, 3, 3))
    x = g.apply(MUL, [x, g.known((8,))], MulOptions(), by(0.1, -7))
    x = g.apply(MAX_POOL_2D, [x], Pool2DOptions(Padding.SAME, 1, 1, 3, 3), by(0.1, -7))
    return write(model(g.build(x)))


def recurrent(*, hybrid: bool = False) -> bytes:
    """An LSTM between two operators. hybrid: its weights are of 8 bits."""
    layers = Layers()
    g = layers.graph
    x = layers.lstm(g.op(L2_NORMALIZATION, [g.input((2, 3, 9))], L2NormOptions()), 10)
    if hybrid:
        rng = np.random.default_rng(73)
        for i, spec in enumerate(g.tensors):
            if spec.data is not None and spec.data.ndim == 2:
                weights = rng.integers(-127, 128, spec.data.shape).astype(np.int8)
                steps = Quantization(np.full(1, 0.01, np.float32), np.zeros(1, np.int64))
                g.tensors[i] = replace(spec, type=TensorType.INT8, data=weights, quantization=steps)
    return layers.file(g.op(SOFTMAX, [x], SoftmaxOptions(beta=2.0)))


def loop() -> bytes:
    """Five times y = 4 y, and sin(4 y)."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        grown = times(g, x[1], g.const(np.float32(4)))
        return [next_(g, x[0]), grown, g.op(SIN, [grown], NoOptions())]

    state: State = [((), INT), ((5,), FLOAT), ((5,), FLOAT)]
    main = Graph()
    made = while_node(main, [main.const(int32(0)), main.input((5,)), main.input((5,))], 1, 2)
    parts = subgraph("cond", state, below(5)), subgraph("body", state, body)
    return write(model(main.build(*made[1:]), *parts))


def chain() -> bytes:
    """Three element-wise operators that are one kernel, and two others."""
    g, rng = Graph(), np.random.default_rng(5)
    x = g.op(NEG, [g.input((3, 40))], NoOptions())
    x = g.op(MUL, [x, g.const(randn(rng, 40))], MulOptions())
    x = g.op(ADD, [x, g.const(randn(rng, 3, 40))], AddOptions())
    x = g.op(CUMSUM, [x, g.const(np.int32(1))], CumsumOptions())
    return write(model(g.build(g.op(SIN, [x], NoOptions()))))
