"""Where LiteRT runs nodes in another order, or steps and branches differently: rows of docs/differences.md."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.cases import Case, hybrid
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Quantization, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import compare as comparisons
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.control import IF, IfOptions
from litecl.interpreter.ops.rnn import BIDIRECTIONAL_SEQUENCE_RNN, RNN, RNNOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.perf.feeds import run_on
from support import compare, devices, oracle
from support.build import Graph, model, randn


def _run(content: bytes, feeds: list[Array], device: Any, **options: Any) -> list[Array]:
    delegates = devices.delegates(device, num_threads=1, **options)
    return run_on(Interpreter(model_content=content, delegates=delegates), feeds)


@devices.on_each_and_the_cpu
def test_steps_of_a_hybrid_rnn_in_both_orders(device: Any) -> None:
    """LiteRT computes the batch-major form right, and the time-major one wrong."""
    (batched,) = (case for case in hybrid.CASES if case.op is BIDIRECTIONAL_SEQUENCE_RNN)
    assert not batched.options.time_major and isinstance(batched.inputs[0], np.ndarray)
    turned = batched.inputs[0].swapaxes(0, 1).copy()
    timed = replace(batched, options=replace(batched.options, time_major=True), inputs=[turned, *batched.inputs[1:]])
    wanted = [y.swapaxes(0, 1) for y in oracle.run(write(batched.model()), batched.feeds)]
    theirs = oracle.run(write(timed.model()), timed.feeds)
    ours = _run(write(timed.model()), timed.feeds, device, dynamic_range="reference")
    for wrong, got, right in zip(theirs, ours, wanted, strict=True):
        compare.assert_close(got, right, compare.DEVICE["float32"])
        assert np.abs(wrong - right).max() > 0.05


def _branches() -> Model:
    """IF: a branch returns one sum twice, the other a product and a sum."""
    x, a, b, c = (TensorSpec(TensorType.FLOAT32, (4,), name) for name in "xabc")
    taken = TensorSpec(TensorType.BOOL, (), "taken")
    main = Subgraph((taken, x, a, b), (0, 1), (2, 3), (Node(IF, (0, 1), (2, 3), IfOptions(1, 2)),), "main")
    once = Subgraph((x, a), (0,), (1, 1), (Node(ADD, (0, 0), (1,), AddOptions()),), "twice")
    two = Node(MUL, (0, 0), (1,), MulOptions()), Node(ADD, (0, 0), (2,), AddOptions())
    return Model((main, once, Subgraph((x, b, c), (0,), (1, 2), two, "apart")))


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_returns_a_tensor_twice(taken: bool, device: Any) -> None:
    x = np.float32([1, -2, 3, 4])
    first, second = _run(write(_branches()), [np.array(taken), x], device)
    np.testing.assert_array_equal(first, 2 * x if taken else x * x)
    np.testing.assert_array_equal(second, 2 * x)


def _reader_of_a_state() -> bytes:
    """ADD, an RNN, and a MUL that reads the RNN's state: XNNPACK takes the first and the last."""
    g, rng = Graph(), np.random.default_rng(4)
    x = g.input((1, 4))
    state = g.variable((1, 3))
    weights = [g.const(randn(rng, *shape)) for shape in ((3, 4), (3, 3), (3,))]
    y = g.op(RNN, [g.op(ADD, [x, x], AddOptions()), *weights, state], RNNOptions(ActivationFunctionType.TANH))
    return write(model(g.build(y, g.op(MUL, [state, g.const(np.float32([2]))], MulOptions()))))


@devices.on_each_and_the_cpu
def test_a_reader_of_a_state(device: Any) -> None:
    x = randn(np.random.default_rng(5), 1, 4)
    y, doubled = _run(_reader_of_a_state(), [x], device)
    np.testing.assert_allclose(doubled, 2 * y, rtol=1e-6)
    for kernels, read in (("reference", 2 * y), ("optimised", 2 * y), ("default", 0 * y)):
        theirs = oracle.run(_reader_of_a_state(), [x], oracle.RESOLVERS[kernels])
        np.testing.assert_allclose(theirs[0], y, rtol=1e-5)
        np.testing.assert_allclose(theirs[1], read, rtol=1e-5)


def _state_in_a_branch() -> bytes:
    """IF: both branches are an RNN, with other weights."""
    rng = np.random.default_rng(8)
    x, y = (TensorSpec(TensorType.FLOAT32, (1, 3), name) for name in "xy")
    taken = TensorSpec(TensorType.BOOL, (), "taken")
    main = Subgraph((taken, x, y), (0, 1), (2,), (Node(IF, (0, 1), (2,), IfOptions(1, 2)),), "main")
    branches = []
    for name in ("then", "else"):
        weights = [randn(rng, *shape) for shape in ((3, 3), (3, 3), (3,))]
        constants = [TensorSpec(TensorType.FLOAT32, data.shape, f"w{i}", data) for i, data in enumerate(weights)]
        state = TensorSpec(TensorType.FLOAT32, (1, 3), "state", is_variable=True)
        node = Node(RNN, (0, 1, 2, 3, 4), (5,), RNNOptions(ActivationFunctionType.TANH))
        branches.append(Subgraph((x, *constants, state, y), (0,), (5,), (node,), name))
    return write(Model((main, *branches)))


def _runs_in_turn(interpreter: Any, x: Array, taken: list[bool]) -> list[Array]:
    interpreter.allocate_tensors()
    found = []
    for value in taken:
        for index, fed in enumerate((np.array(value), x)):
            interpreter.set_tensor(index, fed)
        interpreter.invoke()
        found.append(np.array(interpreter.get_tensor(2)))
    return found


@devices.on_each_and_the_cpu
def test_states_of_a_branch(device: Any) -> None:
    x, content = randn(np.random.default_rng(9), 1, 3), _state_in_a_branch()
    delegates = [] if device is None else [CLDelegate(device, num_threads=1)]
    first, second, other, third = _runs_in_turn(Interpreter(content, delegates=delegates), x, [True, True, False, True])
    theirs = _runs_in_turn(LiteRT(model_content=content), x, [True, True, False, True])
    for found, wanted in zip(theirs, (first, first, other, first), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert min(np.abs(a - b).max() for a, b in ((first, second), (second, third), (first, third))) > 0.01


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("scale", [0.5, 3.0])
@pytest.mark.parametrize("type_", [TensorType.INT8, TensorType.UINT8], ids=lambda type_: type_.name)
def test_comparisons_at_any_scale(type_: TensorType, scale: float, device: Any) -> None:
    """Compared with the real numbers."""
    by = [Quantization(np.float32([each]), np.int64([0])) for each in (scale, 0.3)]
    a = np.arange(0, 128).astype(type_.dtype)
    b = a[::-1].copy()
    for op, wanted in ((comparisons.GREATER, np.greater), (comparisons.LESS_EQUAL, np.less_equal)):
        case = Case(op.name, op, NoOptions(), [a, b], quantization=dict(enumerate(by)), version=2)
        (ours,) = _run(write(case.model()), case.feeds, device)
        np.testing.assert_array_equal(ours, wanted(a * np.float64(scale), b * np.float64(np.float32(0.3))))
