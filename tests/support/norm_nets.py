"""Layer norms in the forms that occur in files."""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
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
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.unary import NEG, RSQRT, SQRT, SQUARE
from support.build import Graph, randn

EPSILON = 0.01
_OPTIONS = {ADD: AddOptions(), SUB: SubOptions(), MUL: MulOptions(), DIV: DivOptions()}


class Normed:
    """Rows ``x`` of a graph with their mean ``m``, and numbers for each element of a row."""

    def __init__(self, graph: Graph, x: int, length: int) -> None:
        rng = np.random.default_rng(3)
        self.graph, self.x = graph, x
        self.factors, self.addends = randn(rng, length), randn(rng, length)
        self.gamma, self.beta = graph.const(self.factors), graph.const(self.addends)
        self.m = self.mean(x)

    def expected(self, x: Array) -> Array:
        """Normalize rows in float64."""
        centred = x - x.mean(-1, keepdims=True, dtype=np.float64)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        return np.asarray(scaled * self.factors + self.addends)

    def of(self, op: Op, *inputs: int, options: Any = None) -> int:
        """Add an operator with its plain options."""
        return self.graph.op(op, list(inputs), options or _OPTIONS.get(op, NoOptions()))

    def mean(self, x: int, axis: int = -1) -> int:
        """Add the means along an axis."""
        return self.graph.op(MEAN, [x, self.graph.const(np.array([axis], np.int32))], ReducerOptions(keep_dims=True))

    def shifted(self, variance: int, epsilon: float = EPSILON) -> int:
        """Add a small number to a variance."""
        return self.of(ADD, variance, self.graph.const(np.float32(epsilon)))

    def inverse(self, epsilon: float = EPSILON) -> int:
        """Add the inverse deviation."""
        return self.of(RSQRT, self.shifted(self.mean(self.of(SQUARED_DIFFERENCE, self.x, self.m)), epsilon))


def _plain(g: Normed) -> int:
    return g.of(MUL, g.of(SUB, g.x, g.m), g.inverse())


def _scaled(g: Normed) -> int:
    return g.of(ADD, g.beta, g.of(MUL, g.gamma, _plain(g)))


def _as_batches(g: Normed) -> int:
    scale = g.of(MUL, g.inverse(), g.gamma)
    return g.of(ADD, g.of(MUL, g.x, scale), g.of(SUB, g.beta, g.of(MUL, g.m, scale)))


def _negated(g: Normed) -> int:
    negative = g.of(NEG, g.m)
    scale = g.of(MUL, g.inverse(), g.gamma)
    return g.of(ADD, g.of(MUL, g.x, scale), g.of(ADD, g.of(MUL, negative, scale), g.beta))


def _divided(g: Normed) -> int:
    difference = g.of(SUB, g.x, g.m)
    deviation = g.of(SQRT, g.shifted(g.mean(g.of(MUL, difference, difference))))
    return g.of(ADD, g.of(MUL, g.of(DIV, difference, deviation), g.gamma), g.beta)


def _squared(g: Normed) -> int:
    variance = g.mean(g.of(SQUARE, g.of(SUB, g.m, g.x)))
    return g.of(MUL, g.of(SUB, g.x, g.m), g.of(RSQRT, g.shifted(variance)))


FORMS: dict[str, Callable[[Normed], int]] = {
    "plain": _plain,
    "scaled": _scaled,
    "as batches": _as_batches,
    "negated": _negated,
    "divided": _divided,
    "squared": _squared,
}


def normed(*shape: int) -> Normed:
    """Return the rows of a graph of their own, its input."""
    g = Graph()
    return Normed(g, g.input(shape), shape[-1])
