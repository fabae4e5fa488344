"""Models to quantize, and what is asked of the quantized ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.converter import Quantization
from litecl.converter.quantization.quantize import quantize
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.binary import MAXIMUM
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pool_2d import MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.quantize import quantize as stored
from litecl.perf.feeds import run_on
from support import oracle
from support.build import Graph, model, randn

SHAPE = (1, 6, 5, 4)


class Net(Graph):
    """A graph with layers of random weights."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def conv(self, x: int, channels: int = 8, scale: float = 1.0, offset: float = 0.0) -> int:
        shape = self.tensors[x].static_shape
        weights = randn(self.rng, channels, 3, 3, shape[3], scale=scale / np.sqrt(9 * shape[3]))
        bias = randn(self.rng, channels, scale=0.1) + np.float32(offset)
        options = Conv2DOptions(stride_w=1, stride_h=1)
        return self.op(CONV_2D, [x, self.const(weights), self.const(bias)], options)

    def dense(self, x: int, outputs: int, scale: float = 1.0) -> int:
        depth = self.tensors[x].static_shape[-1]
        weights = randn(self.rng, outputs, depth, scale=scale / np.sqrt(depth))
        return self.op(FULLY_CONNECTED, [x, self.const(weights), None], FullyConnectedOptions())

    def unary(self, op: Any, x: int) -> int:
        return self.op(op, [x], op.options())


def samples_of(model: Model, count: int = 8, seed: int = 1) -> list[list[Array]]:
    rng = np.random.default_rng(seed)
    specs = [model.subgraphs[0].tensors[t] for t in model.subgraphs[0].inputs]
    return [[randn(rng, *spec.static_shape) for spec in specs] for _ in range(count)]


def quantized(of: Model, **options: Any) -> tuple[Model, Any]:
    how = Quantization(**{"activations": "int8", "data": samples_of(of), **options})
    return quantize(of, how)


def names_of(model: Model) -> list[str]:
    return [node.op.name for node in model.subgraphs[0].nodes]


def run(runtime: Any, feeds: Sequence[Array]) -> list[Array]:
    return run_on(runtime, feeds)


def assert_good(before: Model, after: Model, least_db: float = 25.0) -> None:
    """The quantized model computes the same integers here, in LiteRT and on a device, near those in float."""
    content, (graph,) = write(after), after.subgraphs[:1]
    specs = [graph.tensors[t] for t in graph.inputs]
    for sample in samples_of(before, 3, seed=2):
        feeds = [
            x if s.quantization is None else stored(x, s.quantization, s.type)
            for x, s in zip(sample, specs, strict=True)
        ]
        expected = oracle.run(content, feeds)
        for delegates in ([], [CLDelegate(dynamic_range="reference")]):
            got = run(Interpreter(content, delegates=delegates), feeds)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max() if a.dtype.kind == "f" else 0)
        for t, value, wanted in zip(graph.outputs, expected, run(Interpreter(before), sample), strict=True):
            known = graph.tensors[t].quantization
            number = value if known is None else known.scale[0] * (value.astype(np.float64) - known.zero_point[0])
            noise = np.square(wanted - number).sum()
            assert 10 * np.log10(np.square(wanted).sum() / noise) > least_db


def tree() -> Model:
    """A concatenation of what has a scale of its own, what has a prescribed one, and what takes one over."""
    g = Net()
    x = g.conv(g.input(SHAPE))
    a = g.unary(unary.LOGISTIC, g.conv(x))
    b = g.op(MAX_POOL_2D, [g.conv(x, scale=3)], Pool2DOptions(stride_w=1, stride_h=1, filter_width=2, filter_height=2))
    joined = g.op(CONCATENATION, [a, b], ConcatenationOptions(axis=3))
    return model(g.build(g.op(MAXIMUM, [joined, g.const(np.float32(-1e9))], NoOptions()), a))
