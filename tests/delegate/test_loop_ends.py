"""Loops that end early, stay on the CPU, or go back to it."""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.opencl import enqueue
from litecl.delegate.opencl.devices import programs
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import KernelBuildError, ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
)
from support import compare, oracle
from support.build import Graph, model, randn
from support.loop_models import (
    COUNTER,
    FLOAT,
    INT,
    LSTM_OPTIONS,
    Part,
    State,
    below,
    check,
    growing,
    int32,
    next_,
    outputs,
    plus,
    prepared,
    reasons,
    subgraph,
    times,
    unary,
    while_model,
    while_node,
)
from support.modes import in_every_mode

RNG = np.random.default_rng(3)


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
    signal.setitimer(signal.ITIMER_REAL, after_s, 5.0)  # again where it came while Python could not raise it
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
    """The state is declared [None], and every step puts its negative after it; what is not the state is claimed."""

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


@pytest.mark.opencl
def test_a_device_that_fails_leaves_the_loop_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    model_ = while_model(COUNTER, below(7), growing)
    interpreter = check(model_, [int32(0), randn(RNG, 5)])
    for name in ("_enqueue", "_enqueue_locked"):
        monkeypatch.setattr(enqueue, name, lambda *call: cl.status_code.OUT_OF_RESOURCES)
    expected = oracle.run(write(model_), [int32(0), np.ones(5, np.float32)])
    interpreter.set_tensor(1, np.ones(5, np.float32))
    np.testing.assert_allclose(outputs(interpreter)[1], expected[1], rtol=1e-5)
    report = interpreter.delegation_report()
    assert report.claimed == 0
    assert all("device failure" in row.reason for row in report.nodes)


@pytest.mark.opencl
def test_a_runtime_that_cannot_link_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, region: Any, *entry: str, **options: bool) -> Any:
        raise KernelBuildError("no linker")

    monkeypatch.setattr(programs.Programs, "region_kernel", refuse)
    interpreter = check(while_model(COUNTER, below(7), growing), [int32(0), randn(RNG, 5)])
    assert "queued under a flag" in interpreter.delegation_report().partitions[0].loops[0]


def test_queued_loops_make_kernels_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Including those that decide on the device whether a loop continues: creating a kernel takes longer than queueing
    it.
    """
    model_, feeds = while_model(COUNTER, below(9), growing), [int32(0), randn(RNG, 5)]
    interpreter = prepared(model_, feeds, [CLDelegate(num_threads=1, queue_loops=True, strict=True)])
    first = outputs(interpreter)

    def made_again(program: Any, entry: str) -> Any:
        raise AssertionError(f"{entry} is made again")

    monkeypatch.setattr(programs, "kernel_object", made_again)
    for got, wanted in zip(outputs(interpreter), first, strict=True):
        np.testing.assert_array_equal(got, wanted)
