"""WHILE and IF on the device: within one kernel, by several workers, and queued; against LiteRT's reference kernels."""

import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.analysis.list_writes import update_lists_in_place
from litecl.delegate.opencl import enqueue, programs
from litecl.delegate.recurrent import lstm_loop
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import KernelBuildError, ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import ADD, FLOOR_DIV, LOGICAL_AND, SUB, AddOptions, SubOptions
from litecl.interpreter.ops.compare import GREATER, LESS
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from litecl.interpreter.ops.unary import ABS, LOGISTIC, TANH
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.run.shapes import propagate
from litecl.interpreter.schema import ActivationFunctionType
from support import compare, oracle
from support.build import Graph, model, randn
from support.loop_models import (
    BOOL,
    FLOAT,
    INT,
    Part,
    State,
    below,
    check,
    if_node,
    int32,
    next_,
    outputs,
    plus,
    prepared,
    reasons,
    subgraph,
    times,
    while_model,
    while_node,
)
from support.shared import GOLDEN, needs_shared

RNG = np.random.default_rng(3)
LSTM_OPTIONS = UnidirectionalSequenceLSTMOptions(fused_activation_function=ActivationFunctionType.TANH)

MODES: dict[str, dict[str, Any]] = {
    "one worker": {"num_threads": 1},
    "several workers": {"num_threads": 2},
    "queued": {"num_threads": 1, "queue_loops": True},
}
in_every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


COUNTER: State = [((), INT), ((5,), FLOAT)]


def growing(g: Graph, x: Sequence[int]) -> list[int]:
    """i + 1, tanh(y * 1.1 + 0.1)"""
    scaled = times(g, x[1], g.const(np.float32(1.1)))
    return [next_(g, x[0]), g.op(TANH, [plus(g, scaled, g.const(np.float32(0.1)))], NoOptions())]


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
    """LiteRT gets some of them wrong, so what is expected is worked out here."""
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
    """The loop goes on while a bool variable holds; only one of the results is read."""
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
    """IF of two branches, one of which hands on what it gets."""
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
    """LiteRT leaves the second of two equal outputs unset, so what is expected is worked out here."""
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


def one_element(g: Graph, x: int) -> int:
    return g.op(RESHAPE, [x, g.const(np.array([1], np.int32))], ReshapeOptions((1,)))


def concatenated() -> ConcatenationOptions:
    return ConcatenationOptions(0)


def list_writer() -> Model:
    """A loop that writes row i of a list as TensorFlow's converter puts it."""
    state: State = [((), INT), ((5, 3), FLOAT), ((1, 3), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        following = next_(g, x[0])
        rest, zero = g.const(np.array([-1], np.int32)), g.const(np.array([0], np.int32))
        ends = g.op(CONCATENATION, [one_element(g, x[0]), rest], concatenated())
        begins = g.op(CONCATENATION, [one_element(g, following), zero], concatenated())
        unknown = [TensorSpec(FLOAT, ())]
        head = g.node(SLICE, [x[1], g.const(np.zeros(2, np.int32)), ends], unknown, NoOptions())
        tail = g.node(SLICE, [x[1], begins, g.const(np.full(2, -1, np.int32))], unknown, NoOptions())
        item = g.op(TANH, [plus(g, x[2], g.const(np.float32(0.3)))], NoOptions())
        joined = g.node(CONCATENATION, [*head, item, *tail], [TensorSpec(FLOAT, (5, 3))], concatenated())
        return [following, *joined, item]

    return while_model(state, below(5), body)


@in_every_mode
def test_a_constant_is_never_updated_in_place(mode: dict[str, Any]) -> None:
    """An update of a constant is computed at preparation; one of the result must leave it as it is."""
    state: State = [((), INT), ((4, 8), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        ones, fives = (g.const(np.full((1, 8), value, np.float32)) for value in (1, 5))
        known = g.op(DYNAMIC_UPDATE_SLICE, [g.const(np.zeros((4, 8), np.float32)), ones, _at(g, 1)], NoOptions())
        row = g.op(CONCATENATION, [one(g, x[0]), _at(g, 0, 1)], ConcatenationOptions(0))
        updated = g.op(DYNAMIC_UPDATE_SLICE, [known, fives, row], NoOptions())
        return [next_(g, x[0]), plus(g, g.op(ABS, [updated], NoOptions()), x[1])]

    check(while_model(state, below(3), body), [int32(0), np.zeros((4, 8), np.float32)], **mode)


def one(g: Graph, i: int) -> int:
    return g.op(RESHAPE, [i, g.const(np.array([1], np.int32))], ReshapeOptions((1,)))


def _at(g: Graph, row: int, size: int = 2) -> int:
    return g.const(np.array([row, 0][-size:], np.int32))


@in_every_mode
def test_a_list_write_is_recognised(mode: dict[str, Any]) -> None:
    model_ = list_writer()
    feeds = [int32(0), randn(RNG, 5, 3), randn(RNG, 1, 3)]
    check(model_, feeds, **mode)
    specs = propagate(model_, {0: [x.shape for x in feeds]})
    changed = update_lists_in_place(model_, specs)
    assert changed.subgraphs[0] is model_.subgraphs[0]
    assert update_lists_in_place(changed, specs) is changed
    plain = Interpreter(changed)
    plain.allocate_tensors()
    for position, feed in enumerate(feeds):
        plain.set_tensor(position, feed)
    for got, wanted in zip(outputs(plain), oracle.run(write(model_), feeds), strict=True):
        compare.assert_close(got, wanted, compare.INTERPRETER.get(wanted.dtype.name, 0.0))


def keras_lstm(batch: int, *, whole: bool, gate: Op = LOGISTIC) -> Model:
    """A loop over 5 steps of 4 numbers, 3 units, as Keras 3 and TensorFlow's converter put it."""
    rows = 5 if whole else 1
    step = ((batch, 3), FLOAT)
    state: State = [((), INT), ((rows, batch, 3), FLOAT), step, step, ((5, batch, 4), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        t, listed, h, c, inputs = x
        row = g.op(GATHER, [inputs, t], GatherOptions(0, 0))
        products = [
            g.op(FULLY_CONNECTED, [value, g.const(randn(RNG, 12, width, scale=0.5)), None], FullyConnectedOptions())
            for value, width in ((row, 4), (h, 3))
        ]
        z = plus(g, plus(g, *products), g.const(randn(RNG, 12)))
        part = TensorSpec(FLOAT, (batch, 3))
        i, f, n, o = g.node(SPLIT, [g.const(int32(1)), z], [part] * 4, SplitOptions(4))
        kept = times(g, unary(g, LOGISTIC, f), c)
        c_new = plus(g, kept, times(g, unary(g, gate, i), unary(g, TANH, n)))
        h_new = times(g, unary(g, LOGISTIC, o), unary(g, TANH, c_new))
        item = g.op(RESHAPE, [h_new, g.const(np.array([1, batch, 3], np.int32))], ReshapeOptions((1, batch, 3)))
        place = g.op(CONCATENATION, [one_element(g, t), g.const(np.zeros(2, np.int32))], concatenated())
        written = g.op(DYNAMIC_UPDATE_SLICE, [listed, item, place], NoOptions()) if whole else item
        return [next_(g, t), written, h_new, c_new, inputs]

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        return while_node(g, [g.const(int32(0)), *x], 1, 2)

    parts = [subgraph("cond", state, below(5)), subgraph("body", state, body)]
    return model(subgraph("main", state[1:], main), *parts)


def unary(g: Graph, op: Op, x: int) -> int:
    return g.op(op, [x], NoOptions())


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("whole", [True, False])
def test_a_loop_that_is_an_lstm(monkeypatch: pytest.MonkeyPatch, batch: int, whole: bool) -> None:
    """Against LiteRT, and against the loop as it stands."""
    model_ = keras_lstm(batch, whole=whole)
    feeds = [randn(RNG, *model_.subgraphs[0].tensors[t].static_shape) for t in model_.subgraphs[0].inputs]
    fused = check(model_, feeds)
    assert fused.delegation_report().partitions[0].loops == ("WHILE (subgraph 0, node 0): as one LSTM",)
    monkeypatch.setattr(lstm_loop, "find", lambda *known: None)
    loop = check(model_, feeds)
    assert "in the region's kernel" in loop.delegation_report().partitions[0].loops[0]
    for got, wanted in zip(outputs(fused), outputs(loop), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


def test_a_loop_that_is_almost_an_lstm() -> None:
    model_ = keras_lstm(2, whole=True, gate=TANH)
    feeds = [randn(RNG, *model_.subgraphs[0].tensors[t].static_shape) for t in model_.subgraphs[0].inputs]
    report = check(model_, feeds).delegation_report()
    assert "in the region's kernel" in report.partitions[0].loops[0]


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


@in_every_mode
def test_too_many_iterations(mode: dict[str, Any]) -> None:
    model_ = while_model(COUNTER, below(40), growing)
    feeds = [int32(0), randn(RNG, 5)]
    check(model_, feeds, max_loop_iterations=40, **mode)
    interpreter = prepared(model_, feeds, [CLDelegate(max_loop_iterations=39, **mode)])
    for _ in range(2):
        with pytest.raises(ModelError, match=r"WHILE \(subgraph 0, node 0\): more than 39 iterations"):
            interpreter.invoke()
    interpreter.set_tensor(0, int32(30))
    assert outputs(interpreter)[0] == 40


def remembering(limit: int | None) -> Model:
    """An LSTM, whose state stays between invokes, and a loop over its output: of so many steps, or as many as are fed.

    The inputs are the number of steps, where the model does not say it, and what the LSTM reads.
    """
    state: State = [((), INT), ((), INT), ((1, 3, 6), FLOAT)]

    def main(g: Graph, x: Sequence[int]) -> int:
        weights = [g.const(randn(RNG, 6, depth, scale=0.4)) for depth in (4,) * 4 + (6,) * 4]
        biases = [g.const(randn(RNG, 6)) for _ in range(4)]
        states = [g.variable((1, 6)), g.variable((1, 6))]
        inputs = [x[-1], *weights, None, None, None, *biases, None, None, *states, None, None, None, None]
        y = g.op(UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, LSTM_OPTIONS)
        steps = x[0] if limit is None else g.const(int32(limit))
        return while_node(g, [g.const(int32(0)), steps, y], 1, 2)[2]

    def condition(g: Graph, x: Sequence[int]) -> int:
        return g.op(LESS, [x[0], x[1] if limit is None else g.const(int32(limit))], NoOptions())

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), x[1], unary(g, TANH, x[2])]

    given: State = [((), INT), ((1, 3, 4), FLOAT)]
    parts = [subgraph("cond", state, condition), subgraph("body", state, body)]
    return model(subgraph("main", given if limit is None else given[1:], main), *parts)


@contextmanager
def ctrl_c(after_s: float) -> Iterator[None]:
    """A KeyboardInterrupt from a signal handler, which is how Ctrl-C comes."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("limit", [None, 2**31 - 2], ids=["under a flag", "counted"])
def test_ctrl_c_ends_a_queued_loop(limit: int | None) -> None:
    """It would run for hours; it ends at once, with variables as they were before the invoke."""
    model_ = remembering(limit)
    interpreter, plain = prepared(model_, [], [CLDelegate(queue_loops=True)]), prepared(model_, [], [])
    assert reasons(interpreter) == {}
    states = [t for t, spec in enumerate(model_.subgraphs[0].tensors) if spec.is_variable]
    x = [randn(RNG, 1, 3, 4) for _ in range(3)]

    def run(runtime: Interpreter, steps: int, feed: Array) -> list[Array]:
        details = runtime.get_input_details()
        if limit is None:
            runtime.set_tensor(details[0]["index"], int32(steps))
        runtime.set_tensor(details[-1]["index"], feed)
        return [*outputs(runtime), *(runtime.get_tensor(t) for t in states)]

    if limit is None:
        for got, wanted in zip(run(interpreter, 3, x[0]), run(plain, 3, x[0]), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)
    before = [interpreter.get_tensor(t) for t in states]
    start_s = time.perf_counter()
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.5):
        run(interpreter, 2**31 - 2, x[1])
    assert time.perf_counter() - start_s < 10
    for t, value in zip(states, before, strict=True):
        np.testing.assert_array_equal(interpreter.get_tensor(t), value)
    if limit is None:
        for got, wanted in zip(run(interpreter, 5, x[2]), run(plain, 5, x[2]), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


# What is not static stays on the CPU


def test_a_state_that_grows_stays_on_the_cpu() -> None:
    state: State = [((), INT), ((2, 3), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        doubled = plus(g, x[1], x[1])
        return [next_(g, x[0]), g.op(CONCATENATION, [doubled, g.const(randn(RNG, 2, 1))], ConcatenationOptions(1))]

    def declared(g: Graph, x: Sequence[int]) -> list[int]:
        return while_node(g, x, 1, 2)

    model_ = model(subgraph("main", state, declared), subgraph("cond", state, below(3)), subgraph("body", state, body))
    interpreter = check(model_, [int32(0), randn(RNG, 2, 3)], claimed=False)
    assert reasons(interpreter)["WHILE"] == "WHILE: output 1 of the body changes shape [2, 3] -> [2, 4]"
    claimed = [(row.subgraph, row.op) for row in interpreter.delegation_report().nodes if row.claimed]
    assert (1, "LESS") in claimed and (2, "ADD") in claimed


def test_a_state_of_any_length_stays_on_the_cpu() -> None:
    """The state is declared [None], and every step puts its negative behind it; what is not the state is claimed."""

    def graph(name: str, part: Part) -> Subgraph:
        g = Graph(name)
        found = part(g, [g.input((), INT), g.input((1,), FLOAT, signature=(-1,))])
        return g.build(*([found] if isinstance(found, int) else found))

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        negative = times(g, x[1], g.const(np.float32(-1)))
        return [next_(g, x[0]), g.op(CONCATENATION, [x[1], negative], ConcatenationOptions(0))]

    model_ = model(graph("main", lambda g, x: while_node(g, x, 1, 2)), graph("cond", below(3)), graph("body", body))
    for length in (1, 5):
        interpreter = check(model_, [int32(0), randn(RNG, length)], claimed=False)
        change = f"[{length}] -> [{2 * length}]"
        assert reasons(interpreter)["WHILE"] == f"WHILE: output 1 of the body changes shape {change}"
        claimed = [(row.subgraph, row.op) for row in interpreter.delegation_report().nodes if row.claimed]
        assert claimed == [(1, "LESS"), (2, "ADD")]


def test_a_denied_operator_keeps_the_loop_on_the_cpu() -> None:
    model_ = while_model(COUNTER, below(3), growing)
    interpreter = check(model_, [int32(0), randn(RNG, 5)], claimed=False, deny_ops=["TANH"])
    assert reasons(interpreter)["WHILE"] == "WHILE: TANH in subgraph 2 stays on the CPU: denied by deny_ops"
    denied = check(model_, [int32(0), randn(RNG, 5)], claimed=False, deny_ops=["WHILE"])
    assert reasons(denied) == {"WHILE": "denied by deny_ops"}


def test_a_resize_decides_anew() -> None:
    model_ = while_model([((), INT), ((1,), FLOAT)], below(3), lambda g, x: [next_(g, x[0]), add_row(g, x[1])])
    interpreter = check(model_, [int32(0), randn(RNG, 4)])
    interpreter.resize_tensor_input(1, [1])
    interpreter.allocate_tensors()
    assert reasons(interpreter)["WHILE"] == "WHILE: output 1 of the body changes shape [1] -> [4]"
    interpreter.resize_tensor_input(1, [4])
    interpreter.allocate_tensors()
    assert reasons(interpreter) == {}


def add_row(g: Graph, x: int) -> int:
    return g.node(ADD, [x, g.const(randn(RNG, 4))], [TensorSpec(FLOAT, (1,))], AddOptions())[0]


def test_tensors_of_the_last_iteration_can_be_kept() -> None:
    model_ = while_model(COUNTER, below(3), growing)
    feeds = [int32(0), randn(RNG, 5)]
    ours, plain = (
        Interpreter(model_, delegates=delegates, experimental_preserve_all_tensors=True)
        for delegates in ([CLDelegate()], [])
    )
    for interpreter in (ours, plain):
        interpreter.allocate_tensors()
        for position, feed in enumerate(feeds):
            interpreter.set_tensor(position, feed)
        interpreter.invoke()
    for tensor in (t for node in model_.subgraphs[2].nodes for t in node.outputs):
        compare.assert_close(ours.get_tensor(tensor, 2), plain.get_tensor(tensor, 2), 1e-5)


def test_a_device_that_fails_leaves_the_loop_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    model_ = while_model(COUNTER, below(7), growing)
    interpreter = check(model_, [int32(0), randn(RNG, 5)])
    real = cl.enqueue_nd_range_kernel
    monkeypatch.setattr(enqueue, "_enqueue", None)
    monkeypatch.setattr(
        cl, "enqueue_nd_range_kernel", lambda queue, kernel, *sizes: real(queue, kernel, (2**24,), (2**24,))
    )
    expected = oracle.run(write(model_), [int32(0), np.ones(5, np.float32)])
    interpreter.set_tensor(1, np.ones(5, np.float32))
    np.testing.assert_allclose(outputs(interpreter)[1], expected[1], rtol=1e-5)
    report = interpreter.delegation_report()
    assert report.claimed == 0
    assert all("device failure" in row.reason for row in report.nodes)


def test_a_runtime_that_cannot_link_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, region: Any, *, solo: bool) -> Any:
        raise KernelBuildError("no linker")

    monkeypatch.setattr(programs.Programs, "region_kernel", refuse)
    interpreter = check(while_model(COUNTER, below(7), growing), [int32(0), randn(RNG, 5)])
    assert "queued under a flag" in interpreter.delegation_report().partitions[0].loops[0]


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
