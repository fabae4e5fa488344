"""Resource variables on the device: read and assigned in order, in bodies, by several signatures and regions."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Signature, TensorSpec
from litecl.interpreter.ops.binary import ADD, DIV, AddOptions, DivOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import (
    CALL_ONCE,
    WHILE,
    CallOnceOptions,
    WhileOptions,
)
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTMKernelType, LSTMOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.variables import VAR_HANDLE
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.perf.feeds import run_on
from support import compare, devices
from support.build import Graph, model, randn
from support.variable_models import INT32, MODELS, NONE, RNG, SHAPE, add, assign, dense, initialised, read, tanh

MODES: dict[str, dict[str, Any]] = {
    "one thread": {"num_threads": 1},
    "several threads": {"num_threads": 2},
    "queued": {"num_threads": 1, "queue_loops": True},
    "profile": {"num_threads": 1, "profile": True},
    "OpenCL": {"device": devices.tested()[0]},
    "as a GPU": {},
}


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> dict[str, Any]:
    if request.param == "as a GPU":
        return devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "resources")
    return MODES[request.param]


def agrees(content: bytes, steps: int = 4, **options: Any) -> Any:
    """Run a model as LiteRT's reference kernels do, and return its report."""
    device = Interpreter(model_content=content, delegates=[CLDelegate(**options, strict=True)])
    reference = LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    for runtime in (device, reference):
        runtime.allocate_tensors()
    (fed,) = device.get_input_details()
    for _ in range(steps):
        x = randn(RNG, *fed["shape"])
        for runtime in (device, reference):
            runtime.set_tensor(fed["index"], x)
            runtime.invoke()
        for got, expected in zip(device.get_output_details(), reference.get_output_details(), strict=True):
            values = device.get_tensor(got["index"]), reference.get_tensor(expected["index"])
            compare.assert_close(*values, compare.DEVICE["float32"])
    return device.delegation_report()


@pytest.mark.parametrize("name", MODELS)
def test_whole_on_the_device(name: str, mode: dict[str, Any]) -> None:
    report = agrees(write(MODELS[name]()), **mode)
    assert all(row.claimed for row in report.nodes), str(report)
    assert len(report.partitions) == 1
    assert report.counters.bytes_to_device <= 48  # what is fed


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long
def test_regions_around_every_node(name: str) -> None:
    """Whichever node the CPU runs: the variables go to and fro."""
    made = MODELS[name]()
    content = write(made)
    for node, op in enumerate(made.subgraphs[0].nodes):
        if op.op is not VAR_HANDLE:
            agrees(content, steps=3, num_threads=1, queue_loops=True, deny_nodes=[node])
    agrees(content, steps=3, num_threads=1, queue_loops=True, deny_ops=["TANH"])
    agrees(content, steps=3, num_threads=1, queue_loops=True, deny_ops=["ASSIGN_VARIABLE"])


def test_a_variable_of_another_shape_when_the_inputs_have_an_earlier_one_again() -> None:
    def remembered(g: Graph) -> list[int]:
        x = g.input(SHAPE)
        before = tanh(g, read(g, "a"))
        assign(g, "a", tanh(g, x))
        return [before]

    built = initialised(remembered, "a")
    inputs = [randn(RNG, rows, SHAPE[1]) for rows in (2, 2, 3, 3, 2, 2)]
    for delegates in ([], [CLDelegate(strict=True)]):
        ours = Interpreter(built, delegates=delegates)
        results = [resized(ours, x) for x in inputs]
        for x, after in zip(inputs, results[1:], strict=False):  # LiteRT cuts off what has another shape
            np.testing.assert_allclose(after, np.tanh(np.tanh(x)), rtol=1e-5, atol=1e-6)


def resized(interpreter: Any, x: Array) -> Array:
    """Return the output for an input of any shape."""
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
    return run_on(interpreter, [x])[0]


def test_a_body_with_an_lstm_keeps_its_states(mode: dict[str, Any]) -> None:
    """Variable tensors of a body, which live from iteration to iteration and from invoke to invoke."""
    condition, body, g = Graph("condition"), Graph("body"), Graph()
    i, _ = condition.input((), INT32), condition.input(SHAPE)
    less = condition.build(condition.op(LESS, [i, condition.const(np.int32(3))], NONE))
    i, x = body.input((), INT32), body.input(SHAPE)
    states = body.variable(SHAPE), body.variable(SHAPE)
    options = LSTMOptions(ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC)
    weights, bias = body.const(randn(RNG, 24, 12, scale=0.3)), body.const(randn(RNG, 24))
    y = body.op(BASIC_LSTM, [x, states[0], weights, bias, states[1]], options)
    whole = body.build(body.op(ADD, [i, body.const(np.int32(1))], AddOptions()), add(body, y, states[1]))
    start = [g.const(np.int32(0)), g.input(SHAPE)]
    results = g.node(WHILE, start, [g.tensors[t] for t in start], WhileOptions(1, 2))
    content = write(model(g.build(results[1]), less, whole))
    device, plain = prepared(content, **mode), prepared(content)
    for step in range(4):
        if step == 2:
            for runtime in (device, plain):
                runtime.reset_all_variables()
        x = randn(RNG, *SHAPE)
        (got,), (expected,) = (run(runtime, x) for runtime in (device, plain))
        compare.assert_close(got, expected, compare.DEVICE["float32"])
        for state in states if step % 2 else ():
            values = (runtime.get_tensor(state, 2) for runtime in (device, plain))
            compare.assert_close(*values, compare.DEVICE["float32"])
    assert device.delegation_report().claimed == len(device.delegation_report().nodes)


@pytest.mark.parametrize("deny", [[], [(1, 4)], [(0, 4)]], ids=["both", "one on the CPU", "the other on the CPU"])
def test_signatures_share_variables(deny: list[tuple[int, int]], mode: dict[str, Any]) -> None:
    """One signature reads what another assigns: on the device, on the CPU, and across both."""
    first = Graph("first")
    assign(first, "a", first.const(randn(RNG, *SHAPE)))
    graphs = []
    for name in ("more", "other"):
        g = Graph(name)
        g.node(CALL_ONCE, (), (), CallOnceOptions(2))
        x = g.input(SHAPE)
        now = tanh(g, add(g, read(g, "a"), x))
        assign(g, "a", now)
        graphs.append(g.build(dense(g, now)))
    signatures = tuple(
        Signature(name, {"x": g.inputs[0]}, {"y": g.outputs[0]}, i)
        for i, (name, g) in enumerate(zip(("more", "other"), graphs, strict=True))
    )
    content = write(Model((*graphs, first.build()), signatures))
    device, plain = prepared(content, **mode, deny_nodes=deny), prepared(content)
    for name in ("more", "other", "other", "more", "more", "other"):
        x = randn(RNG, *SHAPE)
        got, expected = (runtime.get_signature_runner(name)(x=x)["y"] for runtime in (device, plain))
        compare.assert_close(got, expected, compare.DEVICE["float32"])


def test_a_failed_invoke_leaves_variables_as_they_were(mode: dict[str, Any]) -> None:
    """Two regions that assign, and a division between them that fails where its divisor is 0."""

    def build(g: Graph) -> list[int]:
        x, divisor = g.input(SHAPE), g.input((), INT32)
        once = tanh(g, add(g, read(g, "a"), x))
        assign(g, "a", once)
        quotient = g.op(DIV, [g.const(np.int32(6)), divisor], DivOptions())
        again = dense(g, add(g, read(g, "a"), read(g, "b")))
        assign(g, "b", again)
        return [again, quotient]

    content = write(initialised(build, "ab"))
    device, plain = prepared(content, **mode, deny_ops=["DIV"]), prepared(content)
    for divisor in (0, 2, 0, 0, 3, 2, 0, 1):
        x = randn(RNG, *SHAPE)
        if not divisor:
            with pytest.raises(ModelError, match="division by 0"):
                run(device, x, np.int32(0))
            continue
        for got, expected in zip(*(run(runtime, x, np.int32(divisor)) for runtime in (device, plain)), strict=True):
            compare.assert_close(got, expected, 1e-4)


def test_a_variable_of_several_shapes_stays_on_the_cpu() -> None:
    """The file declares one row, the first value has two, and later values as many as the input."""
    g, first = Graph(), Graph("first")
    g.node(CALL_ONCE, (), (), CallOnceOptions(1))
    assign(first, "a", first.const(np.ones((2, 6), np.float32)))
    x = g.input((1, 6), signature=(-1, 6))
    old = read(g, "a", TensorSpec(TensorType.FLOAT32, (1, 6)))
    assign(g, "a", tanh(g, x))
    content = write(model(g.build(old), first.build()))
    interpreter = prepared(content, num_threads=1)
    expected = np.ones((2, 6), np.float32)
    for rows in (1, 3, 3, 1):
        x = randn(RNG, rows, 6)
        interpreter.resize_tensor_input(0, x.shape)
        interpreter.allocate_tensors()
        (got,) = run(interpreter, x)
        np.testing.assert_allclose(got, expected, rtol=1e-5)
        expected = np.tanh(x)
    assert any("has not one known shape" in row.reason for row in interpreter.delegation_report().nodes)


def test_a_variable_that_has_another_shape_since_a_resize() -> None:
    """One call assigns rows as many as are fed, another reads them; all agree before and after, but not in between."""
    graphs = [Graph("set"), Graph("get")]
    x = graphs[0].input((1, 6), signature=(-1, 6))
    assign(graphs[0], "a", tanh(graphs[0], x))
    y = graphs[1].input((1, 6))
    old = read(graphs[1], "a", TensorSpec(TensorType.FLOAT32, (1, 6)))
    sums = graphs[1].op(SUM, [old, graphs[1].const(np.int32([0]))], ReducerOptions())
    built = [graphs[0].build(x), graphs[1].build(sums, y)]
    signatures = (Signature("set", {"x": x}, {"x": x}, 0), Signature("get", {"y": y}, {"sums": sums}, 1))
    interpreter = prepared(write(Model(tuple(built), signatures)), num_threads=1)
    with pytest.raises(ModelError, match="variable '/a' was never assigned"):
        interpreter.get_signature_runner("get")(y=np.zeros((1, 6), np.float32))
    for rows in (1, 3, 1):
        x = randn(RNG, rows, 6)
        interpreter.get_signature_runner("set")(x=x)
        for _ in range(2):
            got = interpreter.get_signature_runner("get")(y=np.zeros((1, 6), np.float32))["sums"]
            np.testing.assert_allclose(got, np.tanh(x).sum(0), rtol=1e-4, atol=1e-5)


def test_what_is_fed_is_not_the_variable() -> None:
    """An input that is assigned as it is, and whose memory is then written to."""
    g = Graph()
    x = g.input(SHAPE)
    old = read(g, "a")
    assign(g, "a", x)
    first = Graph("first")
    assign(first, "a", first.const(np.zeros(SHAPE, np.float32)))
    g.nodes.insert(0, Node(CALL_ONCE, (), (), CallOnceOptions(1)))
    content = write(model(g.build(old), first.build()))
    for options in ({}, {"num_threads": 1}, {"deny_ops": ["READ_VARIABLE"]}):
        interpreter = prepared(content, **options)
        memory, expected = interpreter.tensor(x), np.zeros(SHAPE, np.float32)
        for step in range(3):
            memory()[...] = step + 1
            interpreter.invoke()
            np.testing.assert_array_equal(interpreter.get_tensor(old), expected)
            expected = np.full(SHAPE, step + 1, np.float32)


def prepared(content: bytes, **options: Any) -> Interpreter:
    """An interpreter, with a delegate if it has options."""
    delegates = [CLDelegate(**options, strict=True)] if options else []
    interpreter = Interpreter(model_content=content, delegates=delegates)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, *feeds: Array) -> list[Array]:
    """The outputs of an invoke."""
    for details, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(details["index"], feed)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def test_variables_are_reset_on_request(mode: dict[str, Any]) -> None:
    """To what CALL_ONCE assigns, and only with ``resources=True``: they may be weights that were learned."""
    first, g = Graph("first"), Graph("main")
    start = randn(RNG, *SHAPE)
    assign(first, "a", first.const(start))
    g.node(CALL_ONCE, (), (), CallOnceOptions(1))
    x = g.input(SHAPE)
    now = tanh(g, add(g, read(g, "a"), x))
    assign(g, "a", now)
    runtime = prepared(write(model(g.build(now), first.build())), **mode)
    x = randn(RNG, *SHAPE)
    for resources in (True, False, True):
        after = start
        for _ in range(3):
            after = np.tanh(after + x)
            (got,) = run(runtime, x)
            compare.assert_close(got, after, compare.DEVICE["float32"])
        if not resources:
            runtime.reset_all_variables()
            after = np.tanh(after + x)
            compare.assert_close(run(runtime, x)[0], after, compare.DEVICE["float32"])
        runtime.reset_all_variables(resources=True)
