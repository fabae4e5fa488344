"""Joins and cuts within the bodies of loops and branches."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import IF, WHILE, IfOptions, WhileOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.unary import ABS, EXP, LOGISTIC, NEG
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn
from support.joins import agrees, cut, integers, joined, reshaped

RNG = np.random.default_rng(8)


def looped(carried: Sequence[tuple[int, ...]], body: Callable[[Graph, Sequence[int]], list[int]]) -> Model:
    """A WHILE of five iterations over a counter and float variables."""
    state = [((), TensorType.INT32), *((shape, TensorType.FLOAT32) for shape in carried)]
    main, condition, inner = Graph(), Graph("condition"), Graph("body")
    tests, given = ([g.input(*kind) for kind in state] for g in (condition, inner))
    values = [main.input(shape) for shape in carried]
    less = condition.build(condition.op(LESS, [tests[0], condition.const(np.int32(5))], NoOptions()))
    grown = inner.op(ADD, [given[0], inner.const(np.int32(1))], AddOptions())
    after = inner.build(grown, *body(inner, given[1:]))
    start = [main.const(np.int32(0)), *values]
    loop = main.node(WHILE, start, [main.tensors[t] for t in start], WhileOptions(1, 2))
    return model(main.build(*loop[1:]), less, after)


def shifted(g: Graph, given: Sequence[int]) -> list[int]:
    """A window that moves along: its last rows and a new one; joined straight into the loop's variable."""
    (x,) = given
    last = g.op(SLICE, [x, g.const(integers(1, 0)), g.const(integers(3, 32))], NoOptions())
    new = g.op(FULLY_CONNECTED, [last, g.const(randn(RNG, 32, 32, scale=0.2)), None], FullyConnectedOptions())
    first = g.op(SLICE, [new, g.const(integers(0, 0)), g.const(integers(1, 32))], NoOptions())
    return [joined(g, last, g.op(LOGISTIC, [first], NoOptions()), axis=0)]


def swapped(g: Graph, given: Sequence[int]) -> list[int]:
    """Halves that change places every time."""
    a, b = given
    left, right = cut(g, joined(g, g.op(NEG, [a], NoOptions()), b, axis=0), 0, 2)
    return [g.op(LOGISTIC, [right], NoOptions()), left]


@pytest.mark.parametrize(
    "shapes_and_body", [([(4, 32)], shifted), ([(2, 32), (2, 32)], swapped)], ids=["shifted", "swapped"]
)
@pytest.mark.parametrize("mode", [{}, {"num_threads": 1}, {"queue_loops": True}], ids=str)
def test_in_loops(shapes_and_body: tuple[Any, Any], mode: dict[str, Any]) -> None:
    """Loop variables swap memory in every iteration, together with the tensors within them."""
    agrees(looped(*shapes_and_body), **mode)


@pytest.mark.parametrize("mode", [{}, {"num_threads": 1}, {"queue_loops": True}], ids=str)
def test_in_branches(mode: dict[str, Any]) -> None:
    """A branch's result is a part of a later tensor."""
    main, then, otherwise = Graph(), Graph("then"), Graph("otherwise")
    x = main.input((2, 32))
    first = main.op(SLICE, [x, main.const(integers(0, 0)), main.const(integers(1, 1))], NoOptions())
    less = reshaped(main, main.op(LESS, [first, main.const(np.float32(0))], NoOptions()))
    (y,) = main.node(IF, [less, x], [main.tensors[x]], IfOptions(1, 2))
    graphs = []
    for g, op in ((then, NEG), (otherwise, EXP)):
        a, b = cut(g, g.input((2, 32)), 0, 2)
        graphs.append(g.build(joined(g, g.op(op, [b], NoOptions()), a, axis=0)))
    whole = joined(main, y, main.op(ABS, [x], NoOptions()), axis=0)
    agrees(model(main.build(main.op(LOGISTIC, [whole], NoOptions())), *graphs), **mode)
