"""Models that are one region run in place: the same results, states, counters and errors as node by node."""

import gc
import weakref
from types import BuiltinFunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.backend import trials
from litecl.delegate.native import compiler, methods
from litecl.delegate.opencl import enqueue
from litecl.interpreter import DeviceTensor, Interpreter
from litecl.interpreter.errors import DelegateError, ModelError
from litecl.interpreter.graph import Array, Model, Signature
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import EXP, TANH
from litecl.interpreter.run.executor import Executor
from litecl.perf.feeds import outputs_of
from support.build import Graph, model, randn
from support.devices import several_threads
from support.loop_models import INT, State, below, next_, while_model
from support.small_models import lstm

RNG = np.random.default_rng(72)
on_the_processor = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor")


class Listener:
    """Has a model run node by node."""

    def ran(self, *event: Any) -> None:
        """Not of interest."""


def one_launch() -> Model:
    g = Graph()
    return model(g.build(g.op(EXP, [g.input((1, 3, 4))], NoOptions())))


def several() -> Model:
    g = Graph()
    x = g.input((1, 3, 4))
    for _ in range(3):
        x = g.op(SOFTMAX, [x], SoftmaxOptions(beta=1.0))
    weights = g.const(randn(RNG, 4, 4))
    y = g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions(keep_num_dims=True))
    return model(g.build(y, g.op(TANH, [y], NoOptions())))


def aliased() -> Model:
    """Outputs are a constant, the input's memory, and a result and its memory."""
    g = Graph()
    x, shape = g.input((1, 3, 4)), g.const(np.array([12], np.int32))
    y = g.op(EXP, [x], NoOptions())
    flat = [g.op(RESHAPE, [t, shape], ReshapeOptions((12,))) for t in (x, y)]
    return model(g.build(g.const(randn(RNG, 2)), *flat, y))


def opened(model_: Model, **options: Any) -> Interpreter:
    listeners = options.pop("listeners", ())
    interpreter = Interpreter(model_, delegates=[CLDelegate(**{"num_threads": 1, **options})], listeners=listeners)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, x: Array) -> list[Array]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return outputs_of(interpreter)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[Executor]:
    """The executors that have run a model node by node."""
    calls: list[Executor] = []
    real = Executor.call
    monkeypatch.setattr(Executor, "call", lambda self, *args: (calls.append(self), real(self, *args))[1])
    return calls


@pytest.mark.opencl
@pytest.mark.parametrize("make", [one_launch, several, lstm])
@pytest.mark.parametrize("options", [{}, {"queue_loops": True}, {"profile": True}, {"device": several_threads()}])
def test_the_same_as_node_by_node(make: Any, options: dict[str, Any], walked: list[Executor]) -> None:
    in_place = not {"device", "profile"} & options.keys()
    compare_with_node_by_node(make(), options, walked, in_place=in_place)


@on_the_processor
@pytest.mark.parametrize("make", [one_launch, several, lstm, aliased])
@pytest.mark.parametrize("options", [{}, {"num_threads": 2}, {"profile": True}, {"profile": True, "num_threads": 2}])
def test_the_same_without_launches(make: Any, options: dict[str, Any], walked: list[Executor]) -> None:
    compare_with_node_by_node(make(), options, walked, in_place=True)


def compare_with_node_by_node(model_: Model, options: dict[str, Any], walked: list[Executor], in_place: bool) -> None:
    short, long_ = opened(model_, **options), opened(model_, **options, listeners=[Listener()])
    assert long_._in_place == {}
    assert bool(short._in_place) == in_place
    variables = [t for t, spec in enumerate(model_.subgraphs[0].tensors) if spec.is_variable]
    for turn in range(24):  # from about the tenth on, kernels alone are run
        x = randn(RNG, 1, 3, 4)
        if turn in (4, 15):
            short.reset_all_variables(), long_.reset_all_variables()
        if turn in (7, 18) and variables:
            state = randn(RNG, *model_.subgraphs[0].tensors[variables[0]].static_shape)
            short.set_tensor(variables[0], state), long_.set_tensor(variables[0], state)
        walked.clear()
        for got, expected in zip(run(short, x), run(long_, x), strict=True):
            np.testing.assert_array_equal(got, expected)
        assert len(walked) == 1 + (not in_place)
        for interpreter in (short, long_) if turn % 3 == 0 else ():
            for variable in variables:
                np.testing.assert_array_equal(interpreter.get_tensor(variable), long_.get_tensor(variable))
        (a, b) = (interpreter.delegation_report().counters for interpreter in (short, long_))
        assert (a.kernel_launches, a.host_syncs, a.bytes_to_device, a.bytes_to_host) == (
            b.kernel_launches,
            b.host_syncs,
            b.bytes_to_device,
            b.bytes_to_host,
        )


@on_the_processor
def test_outputs_of_the_inputs_memory_stay_what_they_are() -> None:
    interpreter, expected = opened(aliased()), np.zeros((1, 3, 4), np.float32)
    memory = interpreter.tensor(0)
    for _ in range(12):
        expected += 1
        run(interpreter, expected)
        memory()[...] = 77
        of_input = interpreter.get_output_details()[1]["index"]
        np.testing.assert_array_equal(interpreter.get_tensor(of_input), expected.reshape(-1))
    assert interpreter._in_place


@on_the_processor
def test_what_cannot_fail_takes_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with states either, once the first runs have shown how the function is best called."""
    for model_ in (one_launch(), lstm()):
        interpreter = opened(model_)
        for _ in range(12):
            run(interpreter, randn(RNG, 1, 3, 4))
        place: Any = interpreter._in_place[0]
        monkeypatch.setattr(place._program, "lock", None)  # until the test ends: a fork takes the locks of all programs
        run(interpreter, randn(RNG, 1, 3, 4))


def test_a_loop_that_runs_too_often_and_then_does_not() -> None:
    state: State = [((), INT)]
    interpreter = opened(while_model(state, below(40), lambda g, x: [next_(g, x[0])]), max_loop_iterations=10)
    for start in (35, 0, 33, 1):
        interpreter.set_tensor(0, np.int32(start))
        if start > 30:
            interpreter.invoke()
            assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]) == 40
        else:
            with pytest.raises(ModelError, match="more than 10 iterations") as caught:
                interpreter.invoke()
            assert any("CL_REGION (subgraph 0, node 0)" in note for note in caught.value.__notes__)


def test_what_has_to_be_seen_to_is_not_run_in_place() -> None:
    for options in ({"experimental_preserve_all_tensors": True}, {"memory_limit": 1 << 30}, {"time_limit": 60.0}):
        interpreter = Interpreter(several(), delegates=[CLDelegate(num_threads=1)], **options)
        interpreter.allocate_tensors()
        assert not interpreter._in_place


def two_entries() -> Model:
    """Return a model of two signatures, each of which is one region."""
    graphs = several().subgraphs[0], one_launch().subgraphs[0]
    entries = [
        Signature(key, {"x": graph.inputs[0]}, {"y": graph.outputs[-1]}, i)
        for i, (key, graph) in enumerate(zip(("first", "second"), graphs, strict=True))
    ]
    return Model(graphs, tuple(entries))


def test_other_entries_and_other_shapes_in_between() -> None:
    model_ = two_entries()
    interpreter, plain = opened(model_), Interpreter(model_)
    assert interpreter._in_place.keys() == {0, 1}
    for _ in range(2):
        for key, shape in (("first", (1, 3, 4)), ("second", (1, 3, 4)), ("second", (1, 2, 5)), ("first", (1, 2, 4))):
            x = randn(RNG, *shape)
            got = interpreter.get_signature_runner(key)(x=x)["y"]
            np.testing.assert_allclose(got, plain.get_signature_runner(key)(x=x)["y"], rtol=1e-5, atol=1e-6)
    interpreter.resize_tensor_input(0, (1, 1, 4))
    with pytest.raises(ModelError, match="not ready"):
        interpreter.invoke()


@on_the_processor
def test_a_run_is_repeated_until_something_else_happens() -> None:
    """Once runs are known to be alike, an invoke repeats the last one, unless it was of another entry, on a device's
    tensors, or of other shapes.
    """
    model_ = two_entries()
    interpreter, plain = opened(model_), Interpreter(model_)
    plain.allocate_tensors()

    def repeats(shape: tuple[int, ...]) -> None:
        for _ in range(12):
            x = randn(RNG, *shape)
            got, expected = run(interpreter, x), run(plain, x)
            np.testing.assert_allclose(got[-1], expected[-1], rtol=1e-5, atol=1e-6)
        assert interpreter._again is not None
        assert interpreter.delegation_report().counters.kernel_launches == 1

    def others() -> None:
        x = randn(RNG, 1, 3, 4)
        got, expected = (each.get_signature_runner("second")(x=x)["y"] for each in (interpreter, plain))
        np.testing.assert_allclose(got, expected, rtol=1e-5)

    def on_device() -> None:
        x = randn(RNG, 1, 3, 4)
        got = interpreter.get_signature_runner("first")(x=DeviceTensor.of(x))["y"]
        np.testing.assert_allclose(got, plain.get_signature_runner("first")(x=x)["y"], rtol=1e-5, atol=1e-6)

    def resized() -> None:
        for each in (interpreter, plain):
            each.resize_tensor_input(0, (1, 2, 4))
            with pytest.raises(ModelError, match="not ready"):
                each.invoke()
            each.allocate_tensors()

    repeats((1, 3, 4))
    for happens in (others, on_device, resized):
        happens()
        assert interpreter._again is None
        repeats((1, 2, 4) if happens is resized else (1, 3, 4))


@on_the_processor
@pytest.mark.parametrize("implementation", ["cpython", "another"])
def test_a_regions_function_owns_its_memory(implementation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With CPython it does, so that a thread may be about to call it while another closes the interpreter."""
    monkeypatch.setattr(methods.sys, "implementation", SimpleNamespace(name=implementation))
    interpreter, plain = opened(one_launch()), Interpreter(one_launch())
    plain.allocate_tensors()
    for _ in range(12):
        x = randn(RNG, 1, 3, 4)
        np.testing.assert_allclose(run(interpreter, x)[0], run(plain, x)[0], rtol=1e-5)
    again: Any = interpreter._again
    y, x = (
        interpreter.tensor(d()[0]["index"])() for d in (interpreter.get_output_details, interpreter.get_input_details)
    )
    assert isinstance(again, BuiltinFunctionType) == (implementation == "cpython")
    if implementation == "cpython":
        alive = weakref.ref(again.__module__[1])
        interpreter.close()
        del interpreter
        gc.collect()
        x[...] = 2.0
        again()
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-5)
        del again
        gc.collect()
        assert alive() is None


@pytest.mark.opencl
@pytest.mark.parametrize("make", [one_launch, several, lstm])
def test_a_device_that_fails_later_on(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model_ = make()
    soft, strict, plain = opened(model_), opened(model_, strict=True), Interpreter(model_)
    plain.allocate_tensors()
    for turn in range(14):
        x = randn(RNG, 1, 3, 4)
        expected = run(plain, x)
        with monkeypatch.context() as patch:
            if turn == 11:
                for name in ("_enqueue", "_enqueue_locked"):
                    patch.setattr(enqueue, name, lambda *call: cl.status_code.OUT_OF_RESOURCES)
                with pytest.raises(DelegateError, match="running a region"):
                    strict.invoke()
            got = run(soft, x)
        for value, other, right in zip(got, run(strict, x), expected, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(other, right, rtol=1e-4, atol=1e-5)
        assert len(soft.delegation_report().failures) == (turn >= 11)
        assert not strict.delegation_report().failures


@pytest.mark.parametrize(
    ("took_s", "locked"),
    [(5e-6, [False] + 12 * [True]), (50e-6, [False] + 7 * [True] + 5 * [False]), (1.0, 13 * [False])],
)
def test_who_keeps_the_lock(took_s: float, locked: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are tried with Python's lock held, but those that are long never are."""
    now_s, seen = [0.0], []

    def native(held: bool) -> Any:
        def enqueue_(*call: Any) -> int:
            seen.append(held)
            now_s[0] += took_s
            return 0

        return enqueue_

    monkeypatch.setattr(enqueue, "_enqueue", native(False))
    monkeypatch.setattr(enqueue, "_enqueue_locked", native(True))
    monkeypatch.setattr(trials, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    object_ = SimpleNamespace(int_ptr=1, set_args=lambda *args: None)
    kernel = enqueue.BoundKernel(object_, object_, [], (1,), (1,), may_be_short=True)
    for _ in range(13):
        kernel.run_at_once()
    assert seen == locked
