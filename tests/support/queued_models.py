"""Models with loops and branches whose launches are queued: what the host decides, and what it does not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.compare import GREATER, LESS
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.unary import ABS, NEG
from support.build import Graph, model
from support.loop_models import (
    COUNTER,
    FLOAT,
    INT,
    State,
    below,
    growing,
    if_node,
    int32,
    next_,
    plus,
    subgraph,
    while_model,
    while_node,
)

ROW: State = [((9,), FLOAT)]


def branches() -> Model:
    """Each element doubled or negated, by the sign of their sum, between two launches of other nodes."""
    g = Graph()
    x = g.input((400, 40))
    total = g.op(SUM, [x, g.const(np.array([0, 1], np.int32))], ReducerOptions())
    (y,) = if_node(g, [g.op(GREATER, [total, g.const(np.float32(0))], NoOptions()), x], 1, 2, x)
    graph = g.build(g.op(ABS, [y], NoOptions()), y)
    doubled = subgraph("then", [((400, 40), FLOAT)], lambda g, x: [plus(g, x[0], x[0])])
    negated = subgraph("otherwise", [((400, 40), FLOAT)], lambda g, x: [g.op(NEG, [x[0]], NoOptions())])
    return replace(model(graph), subgraphs=(graph, doubled, negated))


def counted(trips: int) -> Model:
    """A loop that runs as often as the model says."""
    g = Graph()
    y = while_node(g, [g.const(int32(0)), g.input((5,))], 1, 2)[1]
    parts = [subgraph(name, COUNTER, part) for name, part in (("cond", below(trips)), ("body", growing))]
    return replace(model(graph := g.build(y)), subgraphs=(graph, *parts))


def limited() -> Model:
    """A vector that is doubled until its sum passes a limit: how often is not to be seen from the model."""
    return while_model(ROW, *doubled_until(1e4))


def doubled_until(limit: float) -> tuple[Any, Any]:
    """Return the condition and the body of a loop that doubles a vector until its sum passes a limit."""

    def small(g: Graph, x: Sequence[int]) -> int:
        total = g.op(SUM, [g.op(ABS, [x[0]], NoOptions()), g.const(np.array([0], np.int32))], ReducerOptions())
        return g.op(LESS, [total, g.const(np.float32(limit))], NoOptions())

    return small, lambda g, x: [plus(g, x[0], x[0])]


def twice() -> Model:
    """Two such loops, the second of what the first leaves, and of its negative."""
    g = Graph()
    (y,) = while_node(g, [g.input((9,))], 1, 2)
    (z,) = while_node(g, [g.op(NEG, [y], NoOptions())], 3, 4)
    parts = [subgraph("part", ROW, part) for limit in (1e3, 1e4) for part in doubled_until(limit)]
    return replace(model(graph := g.build(z, y)), subgraphs=(graph, *parts))


def nested() -> Model:
    """A loop whose body is negated and then doubled in a loop of its own, three times each."""
    g = Graph()
    (y,) = while_node(g, [g.input((9,))], 1, 2)

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [while_node(g, [g.const(int32(0)), g.op(NEG, x, NoOptions())], 3, 4)[1]]

    state = [((), INT), *ROW]
    parts = [subgraph("outer", ROW, part) for part in (doubled_until(1e4)[0], body)]
    inner = (below(3), lambda g, x: [next_(g, x[0]), plus(g, x[1], x[1])])
    parts += [subgraph("inner", state, part) for part in inner]
    return replace(model(graph := g.build(y)), subgraphs=(graph, *parts))


def deep() -> Model:
    """The same with a loop inside of which the model does not say how often it runs."""
    g = Graph()
    (y,) = while_node(g, [g.input((9,))], 1, 2)

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        (y,) = while_node(g, [g.op(NEG, x, NoOptions())], 3, 4)
        return [plus(g, y, plus(g, y, y))]

    parts = [subgraph("outer", ROW, part) for part in (doubled_until(1e4)[0], body)]
    parts += [subgraph("inner", ROW, part) for part in doubled_until(1e2)]
    return replace(model(graph := g.build(y)), subgraphs=(graph, *parts))


def sums(length: int = 6) -> Model:
    """Sums over rows that are added to them, one after another: two launches each."""
    g = Graph()
    x = g.input((3, 40))
    for _ in range(length):
        total = g.op(SUM, [x, g.const(np.array([1], np.int32))], ReducerOptions(keep_dims=True))
        x = plus(g, x, total)
    return model(g.build(x))
