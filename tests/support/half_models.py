"""Small forms of models that users have seen fail on GPUs with 16-bit floats, with what each loses, and where."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import (
    ADD,
    DIV,
    MUL,
    SQUARED_DIFFERENCE,
    SUB,
    AddOptions,
    DivOptions,
    MulOptions,
    SubOptions,
)
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reduce import MEAN, SUM, ReducerOptions
from litecl.interpreter.ops.unary import LOGISTIC, RSQRT, SQRT, SQUARE, TANH
from litecl.interpreter.schema import ActivationFunctionType
from support.build import Graph, model, randn

KEPT, RELU = ReducerOptions(keep_dims=True), ActivationFunctionType.RELU
WORDS, WIDTH, OUTLIER = 6, 64, 11


@dataclass(frozen=True)
class Failing:
    """A model with its input. It names the operator that overflows first, and how by mode: the fields of ``Finding``.

    is_finite: whether the wrong result looks right.
    """

    content: bytes
    feed: Array
    op: str
    ways: Mapping[str, set[str]]
    is_finite: bool


def _dense(g: Graph, rng: np.random.Generator, x: int, columns: int, depth: int, *, last: int | None = None) -> int:
    weights = g.const(randn(rng, columns, depth, scale=depth**-0.5))
    function = FullyConnectedOptions(RELU if last is None else ActivationFunctionType.NONE, keep_num_dims=True)
    y = g.op(FULLY_CONNECTED, [x, weights, g.const(randn(rng, columns, scale=0.1))], function)
    return y if last is None else g.op(LOGISTIC, [y], NoOptions())


def squeezed() -> Failing:
    """EfficientNet's squeeze: a sum over all pixels, of which some channels pass 65504, then a scale."""
    rng, g = np.random.default_rng(1), Graph()
    side, channels = 24, 32
    x = g.input((1, side, side, channels))
    total = g.op(SUM, [x, g.const(np.array([1, 2], np.int32))], KEPT)
    mean = g.op(MUL, [total, g.const(np.float32(side**-2))], MulOptions())
    gates = _dense(g, rng, _dense(g, rng, mean, 8, channels), channels, 8, last=1)
    content = write(model(g.build(g.op(MUL, [x, gates], MulOptions()))))
    feed = np.abs(randn(rng, 1, side, side, channels))
    feed[..., ::5] *= 190
    return Failing(content, feed, "SUM", {"storage": {"result"}, "sums": {"sum"}, "both": {"result", "sum"}}, False)


def _rms(g: Graph, x: int, epsilon: float = 1e-6) -> int:
    squares = g.op(MEAN, [g.op(SQUARE, [x], NoOptions()), g.const(np.array([-1], np.int32))], KEPT)
    roots = g.op(RSQRT, [g.op(ADD, [squares, g.const(np.float32(epsilon))], AddOptions())], NoOptions())
    return g.op(MUL, [x, roots], MulOptions())


def _stream(rng: np.random.Generator, largest: float) -> Array:
    """Activations of a decoder: one channel is far larger than the others."""
    feed = randn(rng, 1, WORDS, WIDTH)
    feed[..., OUTLIER] = largest * rng.uniform(0.8, 1, WORDS).astype(np.float32)
    return feed


def normed() -> Failing:
    """A language model's RMS norm: squares of the residual stream pass 65504, its root becomes 0, and every word the
    same.
    """
    rng, g = np.random.default_rng(2), Graph()
    x = g.input((1, WORDS, WIDTH))
    y = g.op(FULLY_CONNECTED, [_rms(g, x), g.const(randn(rng, 50, WIDTH)), None], FullyConnectedOptions())
    content = write(model(g.build(g.op(TANH, [y], NoOptions()))))
    return Failing(content, _stream(rng, 900), "SQUARE", {"storage": {"result"}, "both": {"result"}}, True)


def tiny() -> Failing:
    """The same of small activations: squares and an epsilon of 1e-8 become 0, and the root of 0 infinite."""
    rng, g = np.random.default_rng(5), Graph()
    content = write(model(g.build(_rms(g, g.input((1, WORDS, WIDTH)), 1e-8))))
    feed = randn(rng, 1, WORDS, WIDTH, scale=1e-5)
    return Failing(content, feed, "RSQRT", {"storage": set(), "both": set()}, False)


def streaming() -> Failing:
    """Return the residual stream itself: the sum of two halves overflows."""
    rng, g = np.random.default_rng(3), Graph()
    x = g.input((1, WORDS, WIDTH))
    scaled = g.op(MUL, [x, g.const(np.float32(0.9))], MulOptions())
    stream = g.op(ADD, [x, scaled], AddOptions())
    small = g.op(MUL, [stream, g.const(np.float32(2.0**-10))], MulOptions())
    y = g.op(FULLY_CONNECTED, [_rms(g, small), g.const(randn(rng, 50, WIDTH)), None], FullyConnectedOptions())
    content = write(model(g.build(y)))
    return Failing(content, _stream(rng, 50_000), "ADD", {"storage": {"result"}, "both": {"result"}}, False)


def decomposed() -> Failing:
    """Return a LayerNorm in parts: the variance becomes infinite, the quotient 0, and the result looks right."""
    rng, g = np.random.default_rng(4), Graph()
    x, last = g.input((1, WORDS, WIDTH)), g.const(np.array([-1], np.int32))
    mean = g.op(MEAN, [x, last], KEPT)
    variance = g.op(MEAN, [g.op(SQUARED_DIFFERENCE, [x, mean], NoOptions()), last], KEPT)
    root = g.op(SQRT, [g.op(ADD, [variance, g.const(np.float32(1e-5))], AddOptions())], NoOptions())
    y = g.op(DIV, [g.op(SUB, [x, mean], SubOptions()), root], DivOptions())
    scaled = g.op(MUL, [y, g.const(randn(rng, WIDTH))], MulOptions())
    content = write(model(g.build(g.op(ADD, [scaled, g.const(randn(rng, WIDTH))], AddOptions()))))
    ways = {"storage": {"result"}, "both": {"result"}}
    return Failing(content, _stream(rng, 795), "SQUARED_DIFFERENCE", ways, True)


FAILING: Mapping[str, Callable[[], Failing]] = {
    "a sum over pixels": squeezed,
    "an RMS norm": normed,
    "an RMS norm with a small epsilon": tiny,
    "a residual stream": streaming,
    "a LayerNorm in parts": decomposed,
}
