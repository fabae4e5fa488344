"""Variable tensors that nodes read before, between and after updates, in one region and in several."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import WHILE, WhileOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTMKernelType, LSTMOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.unary import ABS, EXP, NEG
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support import compare, devices
from support.build import Graph, model, randn

RNG = np.random.default_rng(21)
ROWS, UNITS = 2, 16
SHAPE = (ROWS, UNITS)


def dense(g: Graph, x: int) -> int:
    weights = g.const(randn(RNG, UNITS, UNITS, scale=UNITS**-0.5))
    return g.op(FULLY_CONNECTED, [x, weights, g.const(randn(RNG, UNITS))], FullyConnectedOptions())


def step(g: Graph, x: int, h: int, c: int) -> int:
    """A step of an LSTM, which updates ``h`` and ``c``."""
    weights, bias = g.const(randn(RNG, 4 * UNITS, 2 * UNITS, scale=0.3)), g.const(randn(RNG, 4 * UNITS))
    options = LSTMOptions(ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC)
    return g.op(BASIC_LSTM, [x, h, weights, bias, c], options)


def add(g: Graph, a: int, b: int) -> int:
    return g.op(ADD, [a, b], AddOptions())


def states(g: Graph) -> tuple[int, int, int]:
    """The input and two variables."""
    return g.input(SHAPE), g.variable(SHAPE), g.variable(SHAPE)


def residual(g: Graph) -> list[int]:
    """Add states to products before and after their update: a sum is as new as the addition, not as the product."""
    x, h, c = states(g)
    before, between = dense(g, x), dense(g, g.op(NEG, [x], NoOptions()))
    first = add(g, before, c)
    y = step(g, x, h, c)
    return [first, y, add(g, between, h), add(g, dense(g, x), c)]


def chained(g: Graph) -> list[int]:
    """The operands of a chain that begins before the update and ends after it."""
    x, h, c = states(g)
    before = add(g, g.op(ABS, [x], NoOptions()), h)
    started = g.op(EXP, [g.op(NEG, [x], NoOptions())], NoOptions())
    y = step(g, x, h, c)
    return [before, y, g.op(ABS, [add(g, started, h)], NoOptions()), g.op(MUL, [add(g, h, c), h], MulOptions())]


def leaving(g: Graph) -> list[int]:
    """Old values that leave the region under another shape, or in part; and new ones."""
    x, h, c = states(g)
    flat = ReshapeOptions((ROWS * UNITS,))

    def views() -> list[int]:
        size = g.const(np.array([1, UNITS], np.int32))
        row = g.op(SLICE, [c, g.const(np.zeros(2, np.int32)), size], NoOptions())
        return [g.op(RESHAPE, [h, g.const(np.array([ROWS * UNITS], np.int32))], flat), row]

    old = views()
    y = step(g, x, h, c)
    return [*old, y, *views(), h]


def twice(g: Graph) -> list[int]:
    """Two updates of the same variables, each with readers before it."""
    x, h, c = states(g)
    results = []
    for _ in range(2):
        results += [add(g, dense(g, x), h), step(g, x, h, c)]
    return [*results, add(g, g.op(NEG, [x], NoOptions()), c)]


def fed(g: Graph) -> list[int]:
    """States that are no variables: one is fed, the other is made by a node."""
    x, h = g.input(SHAPE), g.input(SHAPE)
    c = g.op(NEG, [x], NoOptions())
    before = dense(g, c)
    y = step(g, x, h, c)
    return [y, add(g, before, c), add(g, dense(g, x), h)]


def looped() -> Model:
    """A body that updates a loop variable in the place of a state, and hands on the same tensor."""
    main, condition, body = Graph(), Graph("condition"), Graph("body")
    kinds = [((), TensorType.INT32), (SHAPE, TensorType.FLOAT32), (SHAPE, TensorType.FLOAT32)]
    tests, given = ([g.input(*kind) for kind in kinds] for g in (condition, body))
    less = condition.build(condition.op(LESS, [tests[0], condition.const(np.int32(3))], NoOptions()))
    grown = body.op(ADD, [given[0], body.const(np.int32(1))], AddOptions())
    step(body, body.const(randn(RNG, *SHAPE)), given[1], given[2])
    start = [main.const(np.int32(0)), main.input(SHAPE), main.input(SHAPE)]
    _, *results = main.node(WHILE, start, [main.tensors[t] for t in start], WhileOptions(1, 2))
    return model(main.build(*results), less, body.build(grown, *given[1:]))


_GRAPHS = (residual, chained, leaving, twice, fed)


@pytest.fixture(params=["several threads", "one thread", "queued", "OpenCL", "as a GPU"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> dict[str, Any]:
    if request.param == "as a GPU":
        return devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "variables")
    modes: dict[str, dict[str, Any]] = {
        "several threads": {"num_threads": 2},
        "one thread": {"num_threads": 1},
        "queued": {"num_threads": 1, "queue_loops": True},
        "OpenCL": {"device": devices.tested()[0]},
    }
    return modes[request.param]


@pytest.mark.parametrize("build", _GRAPHS, ids=lambda build: build.__name__)
def test_one_region(build: Callable[[Graph], list[int]], mode: dict[str, Any]) -> None:
    g = Graph()
    report = agrees(model(g.build(*build(g))), **mode).delegation_report()
    assert len(report.partitions) == 1
    assert all(row.claimed for row in report.nodes), str(report)


@pytest.mark.parametrize("build", _GRAPHS, ids=lambda build: build.__name__)
def test_regions_around_every_node(build: Callable[[Graph], list[int]]) -> None:
    """Whichever node the CPU runs, and whatever of the variables is read and updated on either side."""
    g = Graph()
    whole = model(g.build(*build(g)))
    for node in range(len(g.nodes)):
        agrees(whole, num_threads=1, queue_loops=True, deny_nodes=[node])
    agrees(whole, num_threads=1, queue_loops=True, deny_ops=["LSTM"])


def test_a_loop_variable_in_the_place_of_a_state(mode: dict[str, Any]) -> None:
    report = agrees(looped(), **mode).delegation_report()
    assert all(row.claimed for row in report.nodes), str(report)


def agrees(model_: Model, **options: Any) -> Interpreter:
    """Runs a model as the interpreter does, variables reset and set in between."""
    content = write(model_)
    device = Interpreter(model_content=content, delegates=[CLDelegate(**options, strict=True)])
    runs = (device, Interpreter(model_content=content))
    variables = [t for t, spec in enumerate(model_.subgraphs[0].tensors) if spec.is_variable]
    for interpreter in runs:
        interpreter.allocate_tensors()
    for invocation in range(5):
        feeds = {t: randn(RNG, *model_.subgraphs[0].tensors[t].static_shape) for t in model_.subgraphs[0].inputs}
        if invocation == 3:
            feeds |= {t: randn(RNG, *SHAPE) for t in variables[:1]}
        for interpreter in runs:
            if invocation == 2:
                interpreter.reset_all_variables()
            for tensor, value in feeds.items():
                interpreter.set_tensor(tensor, value)
            interpreter.invoke()
        for tensor in (*model_.subgraphs[0].outputs, *(variables if invocation % 2 else ())):
            got, expected = (interpreter.get_tensor(tensor) for interpreter in runs)
            compare.assert_close(got, expected, compare.DEVICE["float32"])
    return device


def test_a_constant_in_the_place_of_a_state_of_a_loop_is_not_constant(mode: dict[str, Any]) -> None:
    """A loop variable that begins as a constant, is handed on, and that an LSTM in the body updates."""
    main, condition, body = Graph(), Graph("condition"), Graph("body")
    kinds = [((), TensorType.INT32), *[(SHAPE, TensorType.FLOAT32)] * 3]
    tests, given = ([g.input(*kind) for kind in kinds] for g in (condition, body))
    less = condition.build(condition.op(LESS, [tests[0], condition.const(np.int32(3))], NoOptions()))
    grown = body.op(ADD, [given[0], body.const(np.int32(1))], AddOptions())
    x, weights, bias = randn(RNG, *SHAPE), randn(RNG, 4 * UNITS, 2 * UNITS, scale=0.3), randn(RNG, 4 * UNITS)
    options = LSTMOptions(ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC)
    body.op(BASIC_LSTM, [body.const(x), given[1], body.const(weights), body.const(bias), given[2]], options)
    total = add(body, given[3], given[1])
    h, c = randn(RNG, *SHAPE), randn(RNG, *SHAPE)
    start = [main.const(np.int32(0)), main.const(h), main.const(c), main.input(SHAPE)]
    results = main.node(WHILE, start, [main.tensors[t] for t in start], WhileOptions(1, 2))
    looped = model(main.build(*results[1:]), less, body.build(grown, given[1], given[2], total))
    expected = np.zeros(SHAPE)
    for _ in range(3):
        h, c = _basic_lstm(x, h, weights, bias, c)
        expected = expected + h
    for delegates in ([], [CLDelegate(**mode, strict=True)]):
        interpreter = Interpreter(model_content=write(looped), delegates=delegates)
        interpreter.allocate_tensors()
        interpreter.set_tensor(start[3], np.zeros(SHAPE, np.float32))
        interpreter.invoke()
        for tensor, value in zip(results[1:], (h, c, expected), strict=True):
            np.testing.assert_allclose(interpreter.get_tensor(tensor), value, rtol=1e-4, atol=1e-5)


def test_a_folded_value_in_the_place_of_a_state_is_read_as_it_is_after_the_update() -> None:
    g = Graph()
    x, h, first = g.input(SHAPE), g.input(SHAPE), randn(RNG, *SHAPE)
    c = g.op(NEG, [g.const(first)], NoOptions())
    before = g.op(ABS, [c], NoOptions())
    step(g, x, h, c)
    after = g.op(ABS, [c], NoOptions())
    whole = model(g.build(before, after))
    feeds = randn(RNG, *SHAPE), randn(RNG, *SHAPE)
    weights, bias = (whole.subgraphs[0].tensors[t].data for t in whole.subgraphs[0].nodes[2].inputs[2:4])
    _, expected = _basic_lstm(feeds[0], feeds[1], weights, bias, -first)
    for delegates in ([], [CLDelegate(strict=True)]):
        interpreter = Interpreter(model_content=write(whole), delegates=delegates)
        interpreter.allocate_tensors()
        for tensor, value in zip((x, h), feeds, strict=True):
            interpreter.set_tensor(tensor, value)
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(before), np.abs(first))
        np.testing.assert_allclose(interpreter.get_tensor(after), np.abs(expected), rtol=1e-4, atol=1e-5)


def _basic_lstm(x: Any, h: Any, weights: Any, bias: Any, c: Any) -> tuple[Any, Any]:
    """A step in float64."""
    sums = np.concatenate([x, h], 1).astype(np.float64) @ weights.T.astype(np.float64) + bias
    accept, new, forget, out = np.split(sums, 4, axis=1)
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    c = sigmoid(forget) * c + sigmoid(accept) * np.tanh(new)
    return sigmoid(out) * np.tanh(c), c
