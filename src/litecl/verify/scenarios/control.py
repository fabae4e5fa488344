"""Loops and branches, run as one kernel and queued."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.compare import GREATER, LESS
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.unary import TANH
from litecl.perf.models.build import Graph, model
from litecl.perf.models.build_control import (
    BOOL,
    FLOAT,
    INT,
    below,
    if_node,
    int32,
    next_,
    plus,
    subgraph,
    times,
    while_model,
    while_node,
)
from litecl.verify.check import Check, Step
from litecl.verify.scenarios.scenario import scenario

_X = np.linspace(-1, 1, 7, dtype=np.float32)
_COUNTED = (((), INT), ((7,), FLOAT))


def _counted() -> Model:
    """Return a loop that sets x to tanh(x + 0.3) nine times."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), g.op(TANH, [plus(g, x[1], g.const(np.float32(0.3)))], NoOptions())]

    return while_model(_COUNTED, below(9), body)


def _swapped() -> Model:
    """Return a loop that swaps two variables five times."""
    state = (((), INT), ((7,), FLOAT), ((7,), FLOAT))
    return while_model(state, below(5), lambda g, x: [next_(g, x[0]), x[2], x[1]])


def _until() -> Model:
    """Return a loop that doubles x while the sum of squares is below 100."""

    def condition(g: Graph, x: Sequence[int]) -> int:
        squares = g.op(SUM, [times(g, x[0], x[0]), g.const(np.array([0], np.int32))], ReducerOptions())
        return g.op(LESS, [squares, g.const(np.float32(100))], NoOptions())

    return while_model((((7,), FLOAT),), condition, lambda g, x: plus(g, x[0], x[0]))


def _nested() -> Model:
    """Return a loop of four iterations around one that runs as often as the outer one has."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        inner = while_node(g, [g.const(int32(0)), x[0], x[1]], 3, 4)
        return [next_(g, x[0]), inner[2]]

    state = (((), INT), ((), INT), ((7,), FLOAT))
    return while_model(
        _COUNTED,
        below(4),
        body,
        subgraph("inner_cond", state, lambda g, x: g.op(LESS, [x[0], x[1]], NoOptions())),
        subgraph(
            "inner_body",
            state,
            lambda g, x: [next_(g, x[0]), x[1], times(g, x[2], g.const(np.float32(1.5)))],
        ),
    )


def _branching() -> Model:
    """Return a loop whose body takes one branch early and the other late."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        early = g.op(LESS, [x[0], g.const(int32(2))], NoOptions())
        return [next_(g, x[0]), *if_node(g, [early, x[1]], 3, 4, x[1])]

    return while_model(
        _COUNTED,
        below(5),
        body,
        subgraph("early", _COUNTED[1:], lambda g, x: plus(g, x[0], x[0])),
        subgraph("late", _COUNTED[1:], lambda g, x: times(g, x[0], x[0])),
    )


def _branch() -> Model:
    """Return two IFs in a row, the first on an input, the second on a computed value."""

    def main(g: Graph, x: Sequence[int]) -> int:
        (first,) = if_node(g, [x[0], x[1]], 1, 2, x[1])
        total = g.op(SUM, [first, g.const(np.array([0], np.int32))], ReducerOptions())
        positive = g.op(GREATER, [total, g.const(np.float32(0))], NoOptions())
        return if_node(g, [positive, first], 1, 2, x[1])[0]

    return model(
        subgraph("main", (((), BOOL), ((7,), FLOAT)), main),
        subgraph("then", _COUNTED[1:], lambda g, x: plus(g, x[0], g.const(np.float32(2)))),
        subgraph("else", _COUNTED[1:], lambda g, x: times(g, x[0], g.const(np.float32(-3)))),
    )


def _steps() -> list[Step]:
    return [Step([int32(start), _X * scale]) for start, scale in ((0, 1.0), (3, 2.0), (100, 1.0))]


def _signs() -> list[Step]:
    return [Step([np.array(flag), _X + shift]) for flag in (True, False) for shift in (1, -1)]


_MODELS = (
    ("counted", "WHILE", _counted, _steps),
    ("until a value is reached", "WHILE", _until, lambda: [Step([_X * scale]) for scale in (1.0, 0.01, 50.0)]),
    ("nested", "WHILE", _nested, _steps),
    ("swapped variables", "WHILE", _swapped, lambda: [Step([int32(0), _X, _X * _X])]),
    ("a branch within", "WHILE", _branching, _steps),
    ("two branches", "IF", _branch, _signs),
)

CHECKS: tuple[Check, ...] = (
    *(scenario(name, op, build, steps) for name, op, build, steps in _MODELS),
    *(
        scenario(f"{name}, queued", op, build, steps, options={"queue_loops": True}, quick=name == "counted")
        for name, op, build, steps in _MODELS
    ),
)
