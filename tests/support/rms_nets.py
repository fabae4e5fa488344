"""RMS norms in the forms that files have them in."""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import ADD, DIV, MUL, SUB, AddOptions, DivOptions, MulOptions, SubOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import RSQRT, SQRT, SQUARE
from support.build import Graph, randn

EPSILON = 1e-6
_OPTIONS = {ADD: AddOptions(), SUB: SubOptions(), MUL: MulOptions(), DIV: DivOptions()}


class Rms:
    """Rows ``x`` of a graph, its first input, and a factor for each element of a row."""

    def __init__(self, *shape: int, graph: Graph | None = None, x: int | None = None) -> None:
        self.graph, self.shape = Graph() if graph is None else graph, shape
        self.x = self.graph.input(shape) if x is None else x
        self.factors = randn(np.random.default_rng(3), shape[-1])
        self.gamma = self.graph.const(self.factors)

    def of(self, op: Op, *inputs: int, options: Any = None) -> int:
        return self.graph.op(op, list(inputs), options or _OPTIONS.get(op, NoOptions()))

    def mean(self, squares: int, *, keep: bool = True, axis: int = -1) -> int:
        return self.graph.op(MEAN, [squares, self.graph.const(np.array([axis], np.int32))], ReducerOptions(keep))

    def shifted(self, mean: int, epsilon: float = EPSILON, options: Any = None) -> int:
        return self.of(ADD, mean, self.graph.const(np.float32(epsilon)), options=options)

    def squares(self) -> int:
        return self.of(MUL, self.x, self.x)

    def inverse(self) -> int:
        return self.of(RSQRT, self.shifted(self.mean(self.squares())))

    def reshaped(self, x: int, shape: Shape) -> int:
        return self.graph.op(RESHAPE, [x, self.graph.const(np.array(shape, np.int32))], ReshapeOptions(shape))

    def expected(self, x: Array) -> Array:
        """Normalize rows in float64."""
        rows = x.astype(np.float64)
        return np.asarray(rows / np.sqrt((rows**2).mean(-1, keepdims=True) + EPSILON) * self.factors)


def _exported(r: Rms) -> int:
    """As the decomposition of odml.rms_norm."""
    columns = r.reshaped(r.shifted(r.mean(r.squares(), keep=False)), (*r.shape[:-1], 1))
    return r.of(MUL, r.of(MUL, r.x, r.of(RSQRT, columns)), r.gamma)


def _late(r: Rms) -> int:
    flat = r.of(RSQRT, r.shifted(r.mean(r.squares(), keep=False, axis=len(r.shape) - 1)))
    columns = r.of(EXPAND_DIMS, flat, r.graph.const(np.array(-1, np.int32)))
    return r.of(MUL, r.gamma, r.of(MUL, columns, r.x))


def _divided(r: Rms) -> int:
    root = r.of(SQRT, r.shifted(r.mean(r.of(SQUARE, r.x))))
    return r.of(MUL, r.of(DIV, r.x, root), r.gamma)


FORMS: dict[str, Callable[[Rms], int]] = {
    "exported": _exported,
    "late": _late,
    "divided": _divided,
    "factors first": lambda r: r.of(MUL, r.x, r.of(MUL, r.inverse(), r.gamma)),
    "one beside": lambda r: r.of(MUL, r.of(MUL, r.inverse(), r.x), r.gamma),
}
