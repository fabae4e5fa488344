"""Graphs in two forms: with several nodes, or with the one that is all of them."""

from collections.abc import Callable

import numpy as np

from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.unary import EXP, RELU, SIN, TANH
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support.build import Graph, model, randn

Build = Callable[[Graph, np.random.Generator], int]
_NONE, _RELU = ActivationFunctionType.NONE, ActivationFunctionType.RELU


def made(build: Build, seed: int = 1) -> Model:
    g = Graph()
    return model(g.build(build(g, np.random.default_rng(seed))))


def _conv(g: Graph, rng: np.random.Generator, x: int, padding: Padding = Padding.SAME, *, bias: bool = True) -> int:
    weights, values = g.const(randn(rng, 6, 3, 3, 4)), randn(rng, 6)
    added = g.const(values if bias else np.zeros(6, np.float32))
    y = g.op(CONV_2D, [x, weights, added], Conv2DOptions(padding, 1, 1, _RELU if bias else _NONE))
    if bias:
        return y
    return g.op(RELU, [g.op(ADD, [y, g.const(values)], AddOptions())], NoOptions())


def split(fused: bool) -> Build:
    def build(g: Graph, rng: np.random.Generator) -> int:
        y = _conv(g, rng, g.op(SIN, [g.input((1, 6, 6, 4))], NoOptions()), bias=fused)
        return g.op(EXP, [y], NoOptions())

    return build


def padded(fused: bool) -> Build:
    def build(g: Graph, rng: np.random.Generator) -> int:
        x = g.op(TANH, [g.input((1, 6, 6, 4))], NoOptions())
        pads = g.const(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
        x = x if fused else g.op(PAD, [x, pads], NoOptions())
        return g.op(SIN, [_conv(g, rng, x, Padding.SAME if fused else Padding.VALID)], NoOptions())

    return build


def gelu(fused: bool) -> Build:
    """x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), in one node or many."""

    def build(g: Graph, rng: np.random.Generator) -> int:
        x = g.op(SIN, [g.input((2, 8))], NoOptions())
        return g.op(TANH, [_whole(g, x) if fused else _parts(g, x)], NoOptions())

    return build


def _whole(g: Graph, x: int) -> int:
    return g.op(GELU, [x], GeluOptions(approximate=True))


def _parts(g: Graph, x: int) -> int:
    def times(a: int, b: int | float) -> int:
        return g.op(MUL, [a, b if isinstance(b, int) else g.const(np.float32(b))], MulOptions())

    cube = times(times(times(x, x), x), 0.044715)
    inner = g.op(TANH, [times(g.op(ADD, [x, cube], AddOptions()), float(np.sqrt(2 / np.pi)))], NoOptions())
    return times(times(x, 0.5), g.op(ADD, [inner, g.const(np.float32(1))], AddOptions()))
