"""Types that change on the way through loops and branches are refused, with the place that they change at."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import CALL, CallOptions
from litecl.interpreter.ops.stablehlo import STABLEHLO_CASE, StablehloCaseOptions
from support import devices, oracle
from support.build import Graph, model
from support.loop_models import (
    FLOAT,
    INT,
    State,
    below,
    if_node,
    int32,
    next_,
    prepared,
    subgraph,
    while_model,
    while_node,
)

STATE: State = [((), INT), ((4,), FLOAT), ((4,), INT)]
FEEDS = (int32(0), np.float32([1, 2, 3, 4]), np.int32([5, 6, 7, 8]))
FLOATS, INTS = TensorSpec(FLOAT, (4,)), TensorSpec(INT, (4,))


def _cast(g: Graph, x: int) -> int:
    (y,) = g.node(CAST, [x], [INTS], CastOptions(FLOAT, INT))
    return y


def _swapped() -> Model:
    return while_model(STATE, below(3), lambda g, x: [next_(g, x[0]), x[2], x[1]])


def _changed() -> Model:
    return while_model(STATE, below(3), lambda g, x: [next_(g, x[0]), _cast(g, x[1]), x[2]])


def _branches() -> Model:
    def main(g: Graph, x: Sequence[int]) -> list[int]:
        return if_node(g, [g.op(LESS, [x[0], g.const(int32(1))], NoOptions()), x[1], x[2]], 1, 2, x[1])

    parts = (subgraph("then", STATE[1:], lambda g, x: x[0]), subgraph("else", STATE[1:], lambda g, x: x[1]))
    return model(subgraph("main", STATE, main), *parts)


def _cases() -> Model:
    def main(g: Graph, x: Sequence[int]) -> Sequence[int]:
        return g.node(STABLEHLO_CASE, [x[0], x[1], x[2]], [FLOATS], StablehloCaseOptions((1, 2)))

    parts = (subgraph("first", STATE[1:], lambda g, x: x[0]), subgraph("second", STATE[1:], lambda g, x: x[1]))
    return model(subgraph("main", STATE, lambda g, x: list(main(g, x))), *parts)


def _given() -> Model:
    parts = (subgraph("cond", STATE, below(2)), subgraph("body", STATE, lambda g, x: [next_(g, x[0]), x[1], x[2]]))
    return model(subgraph("main", STATE, lambda g, x: while_node(g, [x[0], x[2], x[2]], 1, 2)), *parts)


def _called() -> Model:
    def main(g: Graph, x: Sequence[int]) -> list[int]:
        return list(g.node(CALL, [x[2]], [FLOATS], CallOptions(1)))

    return model(subgraph("main", STATE, main), subgraph("callee", STATE[1:2], lambda g, x: x[0]))


REFUSED = [
    (_swapped, r"WHILE: output 1 of subgraph 2 \('.+'\): expected type FLOAT32, as of the loop variable, got INT32"),
    (_changed, r"WHILE: output 1 of subgraph 2 \('.+'\): expected type FLOAT32, as of the loop variable, got INT32"),
    (_branches, r"IF: output 0 of subgraph 2 \('.+'\): expected type FLOAT32, as of subgraph 1, got INT32"),
    (_cases, r"STABLEHLO_CASE: output 0 of subgraph 2 \('.+'\): expected type FLOAT32, as of subgraph 1, got INT32"),
    (_given, r"WHILE: input 1 of subgraph 1 \('.+'\): expected type FLOAT32, got INT32"),
    (_called, r"CALL: input 0 of subgraph 1 \('.+'\): expected type FLOAT32, got INT32"),
]


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("make, message", REFUSED, ids=[make.__name__.lstrip("_") for make, _ in REFUSED])
def test_refused(make: Any, message: str, device: Any) -> None:
    delegates = [] if device is None else [CLDelegate(device)]
    with pytest.raises(ModelError, match=message):
        prepared(make(), FEEDS, delegates)


@pytest.mark.parametrize("make", [_swapped, _changed])
def test_litert_refuses_such_loops_too(make: Any) -> None:
    with pytest.raises(RuntimeError, match=r"body_input->type != body_output->type \(FLOAT32 != INT32\)"):
        oracle.run(write(make()), FEEDS)
