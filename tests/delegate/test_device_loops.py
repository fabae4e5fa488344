"""WHILE and IF on the device: within one kernel, by several workers, and queued; against LiteRT's reference kernels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import FLOOR_DIV, LOGICAL_AND, SUB, SubOptions
from litecl.interpreter.ops.compare import GREATER, LESS
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.unary import ABS, TANH
from support.build import Graph, model, randn
from support.loop_models import (
    BOOL,
    COUNTER,
    FLOAT,
    INT,
    State,
    below,
    check,
    concatenated,
    growing,
    if_node,
    int32,
    next_,
    one_element,
    plus,
    prepared,
    reasons,
    subgraph,
    times,
    while_model,
    while_node,
)
from support.modes import in_every_mode
from support.shared import GOLDEN, needs_shared

RNG = np.random.default_rng(3)


@in_every_mode
@pytest.mark.parametrize("trips", [0, 1, 2, 7])
def test_counted(mode: dict[str, Any], trips: int) -> None:
    check(while_model(COUNTER, below(trips), growing), [int32(0), randn(RNG, 5)], **mode)


@in_every_mode
def test_data_dependent_exit(mode: dict[str, Any]) -> None:
    """The sum of a vector is doubled until it passes a limit: how often is not to be seen from the model."""

    def small(g: Graph, x: Sequence[int]) -> int:
        total = g.op(SUM, [g.op(ABS, [x[0]], NoOptions()), g.const(np.array([0], np.int32))], ReducerOptions())
        return g.op(LESS, [total, g.const(np.float32(1e6))], NoOptions())

    model_ = while_model([((9,), FLOAT)], small, lambda g, x: plus(g, x[0], x[0]))
    interpreter = check(model_, [randn(RNG, 9)], **mode)
    check(model_, [randn(RNG, 9, scale=1e8)], **mode)
    if "queue_loops" not in mode:
        assert interpreter.delegation_report().counters.host_syncs == 1
        assert interpreter.delegation_report().counters.kernel_launches == 1


@in_every_mode
def test_outputs_that_are_swapped_constant_duplicated_and_unchanged(mode: dict[str, Any]) -> None:
    """LiteRT gets some of them wrong, so expected values are computed here."""
    state: State = [((), INT), ((3,), FLOAT), ((3,), FLOAT), ((3,), FLOAT), ((3,), FLOAT), ((3,), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        total = plus(g, x[1], x[3])
        return [next_(g, x[0]), x[2], x[1], g.const(np.array([1, 2, 3], np.float32)), total, x[5]]

    def duplicated(g: Graph, x: Sequence[int]) -> list[int]:
        total = plus(g, x[4], x[5])
        return [next_(g, x[0]), total, total, x[1], x[2], x[5]]

    feeds = [int32(0), *(randn(RNG, 3) for _ in range(5))]
    _, a, b, c, d, e = feeds
    check(while_model(state, below(1), body), feeds, [int32(1), b, a, np.float32([1, 2, 3]), a + c, e], **mode)
    constant = np.float32([1, 2, 3])
    check(while_model(state, below(3), body), feeds, [int32(3), b, a, constant, a + constant, e], **mode)
    check(while_model(state, below(1), duplicated), feeds, [int32(1), d + e, d + e, a, b, e], **mode)
    check(while_model(state, below(2), duplicated), feeds, [int32(2), b + e, b + e, d + e, d + e, e], **mode)


@in_every_mode
def test_unused_outputs_and_a_predicate_that_is_state(mode: dict[str, Any]) -> None:
    """The loop continues while a bool variable is true; only one result is read."""
    state: State = [((1,), BOOL), ((1,), INT), ((1,), INT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        one = g.const(np.array([1], np.int32))
        i = plus(g, x[1], one)
        less = g.op(LESS, [i, g.const(np.array([9], np.int32))], NoOptions())
        return [g.op(LOGICAL_AND, [less, x[0]], NoOptions()), i, times(g, i, x[1])]

    model_ = model(
        subgraph("main", state, lambda g, x: while_node(g, x, 1, 2)[2]),
        subgraph("cond", state, lambda g, x: x[0]),
        subgraph("body", state, body),
    )
    feed = np.array([3], np.int32)
    for goes_on in (True, False):
        check(model_, [np.array([goes_on]), feed, feed], **mode)


def branching(shape: tuple[int, ...] = (4,)) -> Model:
    """Return an IF with two branches, one of which returns its input."""
    state: State = [((), BOOL), (shape, FLOAT), (shape, FLOAT)]
    inner = state[1:]
    return model(
        subgraph("main", state, lambda g, x: if_node(g, x, 1, 2, x[1], x[1])),
        subgraph("then", inner, lambda g, x: [plus(g, x[0], x[1]), x[0]]),
        subgraph("else", inner, lambda g, x: [times(g, x[0], x[1])] * 2),
    )


@in_every_mode
@pytest.mark.parametrize("condition", [True, False])
def test_if(mode: dict[str, Any], condition: bool) -> None:
    """LiteRT leaves the second of two equal outputs unset, so expected values are computed here."""
    a, b = randn(RNG, 4), randn(RNG, 4)
    check(branching(), [np.array(condition), a, b], [a + b, a] if condition else [a * b, a * b], **mode)


@in_every_mode
def test_if_in_while_and_while_in_if(mode: dict[str, Any]) -> None:
    """Collatz: the number of steps to 1, with the halving behind an IF; and the whole behind another."""
    pair: State = [((), INT), ((), INT)]
    one: State = [((), INT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        half = g.op(FLOOR_DIV, [x[0], g.const(int32(2))], NoOptions())
        even = g.op(GREATER, [g.const(int32(1)), g.op(SUB, [x[0], plus(g, half, half)], SubOptions())], NoOptions())
        return [*if_node(g, [even, x[0]], 3, 4, x[0]), next_(g, x[1])]

    halve = subgraph("even", one, lambda g, x: g.op(FLOOR_DIV, [x[0], g.const(int32(2))], NoOptions()))
    triple = subgraph("odd", one, lambda g, x: next_(g, times(g, x[0], g.const(int32(3)))))
    above = subgraph("cond", pair, lambda g, x: g.op(GREATER, [x[0], g.const(int32(1))], NoOptions()))
    loop = subgraph("main", pair, lambda g, x: while_node(g, x, 1, 2))
    parts = (above, subgraph("body", pair, body), halve, triple)
    check(model(loop, *parts), [int32(27), int32(0)], **mode)
    outer: State = [((), BOOL), *pair]
    main = subgraph("outer", outer, lambda g, x: if_node(g, x, 5, 6, x[1], x[2]))
    other = subgraph("other", pair, lambda g, x: [x[1], x[0]])
    for condition in (True, False):
        check(model(main, *parts, loop, other), [np.array(condition), int32(7), int32(0)], **mode)


@in_every_mode
def test_nested_loops_that_share_a_condition(mode: dict[str, Any]) -> None:
    """An outer loop of 3 whose body runs an inner loop of as many steps as the outer one has done."""
    state: State = [((), INT), ((4,), FLOAT)]
    inner: State = [((), INT), ((4,), FLOAT), ((), INT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        _, y, _ = while_node(g, [g.const(int32(0)), x[1], x[0]], 3, 4)
        return [next_(g, x[0]), plus(g, y, g.const(np.float32(0.5)))]

    def inner_body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), times(g, x[1], g.const(np.float32(1.25))), x[2]]

    inner_condition = subgraph("c", inner, lambda g, x: g.op(LESS, [x[0], x[2]], NoOptions()))
    model_ = while_model(state, below(4), body, inner_condition, subgraph("b", inner, inner_body))
    check(model_, [int32(0), randn(RNG, 4)], **mode)


@in_every_mode
def test_an_inner_loop_that_passes_on_a_variable_of_the_outer_one(mode: dict[str, Any]) -> None:
    """The body reads it behind the inner loop, and returns it as another variable."""
    state: State = [((), INT), ((4,), FLOAT), ((4,), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        start = g.const(int32(0))
        _, same, total = while_node(g, [start, x[1], x[2]], 3, 4)
        _, again, _ = while_node(g, [start, x[1], x[2]], 3, 4)
        return [next_(g, x[0]), plus(g, total, same), again]

    def inner_body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), x[1], times(g, x[1], x[2])]

    parts = subgraph("c", state, below(2)), subgraph("b", state, inner_body)
    check(while_model(state, below(3), body, *parts), [int32(0), randn(RNG, 4), randn(RNG, 4)], **mode)


@in_every_mode
def test_one_body_for_two_loops(mode: dict[str, Any]) -> None:
    def main(g: Graph, x: Sequence[int]) -> list[int]:
        first = while_node(g, x, 1, 2)
        return while_node(g, [g.const(int32(2)), first[1]], 1, 2)

    parts = [subgraph("cond", COUNTER, below(6)), subgraph("body", COUNTER, growing)]
    check(model(subgraph("main", COUNTER, main), *parts), [int32(0), randn(RNG, 5)], **mode)


@in_every_mode
def test_a_large_body(mode: dict[str, Any]) -> None:
    """Products and vectors that several workers share."""
    state: State = [((), INT), ((48, 96), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        weights = [g.const(randn(RNG, 96, 96, scale=0.1)), g.const(randn(RNG, 96))]
        dense = g.op(FULLY_CONNECTED, [x[1], *weights], FullyConnectedOptions())
        return [next_(g, x[0]), g.op(TANH, [plus(g, dense, x[1])], NoOptions())]

    check(while_model(state, below(20), body), [int32(0), randn(RNG, 48, 96)], **mode)


@in_every_mode
@pytest.mark.parametrize("read_after", [False, True])
def test_a_list_is_updated_in_place_unless_its_old_value_is_read(mode: dict[str, Any], read_after: bool) -> None:
    state: State = [((), INT), ((6, 3), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        row = g.op(GATHER, [x[1], one_element(g, x[0])], GatherOptions(0, 0))
        place = g.op(CONCATENATION, [one_element(g, next_(g, x[0])), g.const(np.zeros(1, np.int32))], concatenated())
        written = g.op(DYNAMIC_UPDATE_SLICE, [x[1], plus(g, row, row), place], NoOptions())
        return [next_(g, x[0]), plus(g, written, x[1]) if read_after else written]

    check(while_model(state, below(5), body), [int32(0), randn(RNG, 6, 3)], **mode)


@in_every_mode
def test_a_constant_is_never_updated_in_place(mode: dict[str, Any]) -> None:
    """An update of a constant is computed at preparation; one of the result must leave it as it is."""
    state: State = [((), INT), ((4, 8), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        ones, fives = (g.const(np.full((1, 8), value, np.float32)) for value in (1, 5))
        known = g.op(DYNAMIC_UPDATE_SLICE, [g.const(np.zeros((4, 8), np.float32)), ones, _at(g, 1)], NoOptions())
        row = g.op(CONCATENATION, [one_element(g, x[0]), _at(g, 0, 1)], concatenated())
        updated = g.op(DYNAMIC_UPDATE_SLICE, [known, fives, row], NoOptions())
        return [next_(g, x[0]), plus(g, g.op(ABS, [updated], NoOptions()), x[1])]

    check(while_model(state, below(3), body), [int32(0), np.zeros((4, 8), np.float32)], **mode)


def _at(g: Graph, row: int, size: int = 2) -> int:
    return g.const(np.array([row, 0][-size:], np.int32))


@pytest.mark.parametrize("trips", [10, 10_000])
def test_iterations_cost_no_launch_and_no_sync(trips: int) -> None:
    interpreter = check(while_model(COUNTER, below(trips), growing), [int32(0), randn(RNG, 5)])
    counters = interpreter.delegation_report().counters
    assert (counters.kernel_launches, counters.host_syncs) == (1, 1)


def test_how_loops_run_is_reported() -> None:
    feeds = [int32(0), randn(RNG, 5)]
    in_kernel = prepared(while_model(COUNTER, below(7), growing), feeds, [CLDelegate()]).delegation_report()
    assert in_kernel.partitions[0].loops == ("WHILE (subgraph 0, node 0): in the region's kernel",)
    assert {row.partition for row in in_kernel.nodes} == {0}
    queued = prepared(while_model(COUNTER, below(7), growing), feeds, [CLDelegate(queue_loops=True)])
    assert "queued, exactly 7 iterations" not in str(queued.delegation_report())  # the count starts from an input

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        return while_node(g, [g.const(int32(0)), x[1]], 1, 2)

    parts = [subgraph("cond", COUNTER, below(7)), subgraph("body", COUNTER, growing)]
    counted = check(model(subgraph("main", COUNTER, main), *parts), feeds, queue_loops=True)
    assert "queued, exactly 7 iterations" in str(counted.delegation_report())
    assert counted.delegation_report().counters.host_syncs == 1


# What is not static stays on the CPU


# The published graphs

_DYNAMIC = ("dynamic", "pad", "growing", "string", "call_once", "variable", "aliases", "all_inplace")
_DYNAMIC += ("early_exit", "not_consumed")
_GOLDENS = sorted((GOLDEN / "models").glob("cf_*.tflite"))
_STATIC = [path for path in _GOLDENS if not any(word in path.name for word in _DYNAMIC)]


@needs_shared
@pytest.mark.parametrize("path", _STATIC, ids=lambda path: path.stem)
def test_static_goldens_are_claimed_whole(path: Path) -> None:
    """Their results are compared in test_golden_control_flow."""
    interpreter = Interpreter(path, delegates=[CLDelegate()])
    step = json.loads((GOLDEN / path.name.replace("__graph.tflite", ".json")).read_text())["steps"][0]
    for detail, feed in zip(interpreter.get_input_details(), step["feed"], strict=True):
        interpreter.resize_tensor_input(detail["index"], feed["shape"])
    interpreter.allocate_tensors()
    assert reasons(interpreter) == {}
