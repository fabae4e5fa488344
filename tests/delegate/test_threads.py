"""Interpreters in parallel threads, and the rules for what they share (docs/threads.md)."""

import faulthandler
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate, disk
from litecl.delegate.native.library import Libraries
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import EXP, LOGISTIC, TANH
from litecl.perf.feeds import outputs_of
from support.build import Graph, model, randn
from support.devices import calling_thread, several_threads
from support.small_models import lstm

RNG = np.random.default_rng(47)
MODES = {
    "one thread": {"num_threads": 1},
    "two threads": {"num_threads": 2},
    "queued": {"num_threads": 1, "queue_loops": True},
    "profile": {"num_threads": 1, "profile": True},
    "OpenCL, calling thread": {"device": calling_thread()},
    "OpenCL, all threads": {"device": several_threads()},
    "OpenCL, profile": {"device": calling_thread(), "profile": True},
}
_THREADS, _TIMEOUT_S = 6, 240


@pytest.fixture(autouse=True)
def often_switched() -> Iterator[None]:
    """Lets Python change threads a thousand times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def dense(width: int) -> Model:
    g = Graph()
    x = g.input((1, width))
    for _ in range(3):
        weights = g.const(randn(RNG, width, width, scale=width**-0.5))
        x = g.op(TANH, [g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions())], NoOptions())
    return model(g.build(g.op(SOFTMAX, [x], SoftmaxOptions(beta=1.0))))


def pieces(width: int) -> Model:
    """Regions with a node on the CPU between them, and a constant for an output."""
    g = Graph()
    x = g.op(EXP, [g.op(LOGISTIC, [g.input((3, width))], NoOptions())], NoOptions())
    return model(g.build(g.op(TANH, [x], NoOptions()), x))


MODELS = [(dense(16), {}), (dense(33), {}), (pieces(7), {"deny_ops": ["EXP"]}), (lstm(), {})]


def opened(model_: Model, options: dict[str, Any]) -> Interpreter:
    interpreter = Interpreter(model_, delegates=[CLDelegate(strict=True, **options)])
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, x: Array) -> list[Array]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return outputs_of(interpreter)


def feeds(model_: Model) -> list[Array]:
    graph = model_.subgraphs[0]
    return [randn(RNG, *graph.tensors[graph.inputs[0]].static_shape) for _ in range(4)]


def together(work: Callable[[int], None], count: int = _THREADS) -> None:
    """Run threads at once; raise their errors here, also if one hangs."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def guarded(i: int) -> None:
        try:
            start.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(count)]
    end_s = time.monotonic() + _TIMEOUT_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end_s - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        faulthandler.dump_traceback(sys.__stderr__)  # where they wait, or that they go on, though slowly
        pytest.fail(f"{sum(thread.is_alive() for thread in threads)} of {count} threads still run after {_TIMEOUT_S} s")
    if errors:
        raise errors[0]


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_interpreters_are_made_and_run_side_by_side(options: dict[str, Any]) -> None:
    inputs = [feeds(model_) for model_, _ in MODELS]
    expected = []
    for (model_, own), xs in zip(MODELS, inputs, strict=True):
        reference = Interpreter(model_)
        reference.allocate_tensors()
        alone = opened(model_, options | own)
        expected.append([run(alone, x) for x in xs])
        for x, values in zip(xs, expected[-1], strict=True):
            for value, plain in zip(values, run(reference, x), strict=True):
                np.testing.assert_allclose(value, plain, rtol=1e-4, atol=1e-5)

    def work(thread: int) -> None:
        for turn in range(3):
            which = (thread + turn) % len(MODELS)
            model_, own = MODELS[which]
            interpreter = opened(model_, options | own)
            for _ in range(10):
                interpreter.reset_all_variables()
                for x, values in zip(inputs[which], expected[which], strict=True):
                    for got, value in zip(run(interpreter, x), values, strict=True):
                        np.testing.assert_array_equal(got, value)
            assert not interpreter.delegation_report().failures

    together(work)


def test_threads_that_build_the_same_program_build_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []
    real = Libraries._content
    monkeypatch.setattr(Libraries, "_content", lambda self, *given: (built.append(given), real(self, *given))[1])
    model_ = dense(16)
    x = feeds(model_)[0]
    expected = run(opened(model_, {"num_threads": 1}), x)
    built.clear()

    def work(thread: int) -> None:
        interpreter = opened(model_, {"num_threads": 1, "cache_dir": tmp_path})
        np.testing.assert_array_equal(run(interpreter, x)[0], expected[0])

    together(work)
    assert len(built) == 1
    assert len(list((tmp_path / disk.OWN).glob("library-*.bin"))) == 1


def test_a_wait_for_the_device_lets_other_threads_run() -> None:
    """An invoke of tens of milliseconds, meanwhile this thread counts: with Python's lock held it could not."""
    g = Graph()
    x = g.input((64, 1024))
    for _ in range(8):
        x = g.op(FULLY_CONNECTED, [x, g.const(randn(RNG, 1024, 1024, scale=0.03)), None], FullyConnectedOptions())
    for options in (MODES[name] for name in ("one thread", "queued", "OpenCL, calling thread", "OpenCL, all threads")):
        interpreter = opened(model(g.build(x)), options)
        interpreter.invoke()
        sys.setswitchinterval(1.0)  # so that nothing but a lock let go lets this thread run
        # On a busy machine this thread may get no core for the time of one invoke, but not for that of many.
        assert any(_counted_during(interpreter.invoke) > 1 for _ in range(50)), options


def _counted_during(call: Callable[[], object]) -> int:
    """Return how far this thread counts while another one makes a call."""
    done = threading.Event()
    thread = threading.Thread(target=lambda: (call(), done.set()))
    thread.start()
    counted = 0
    while not done.is_set():
        counted += 1
        time.sleep(0)
    thread.join()
    return counted


def test_an_interpreter_runs_in_one_thread_at_a_time() -> None:
    entered, leave = threading.Event(), threading.Event()

    def wait(options: NoOptions, inputs: Any) -> list[Array]:
        entered.set()
        assert leave.wait(_TIMEOUT_S)
        return [inputs[0]]

    g = Graph()
    op = Op("Wait", options=NoOptions, infer=lambda options, specs: [specs[0]], run=wait, custom=True, pure=False)
    interpreter = Interpreter(model(g.build(g.op(op, [g.input((2,))], NoOptions()))))
    interpreter.allocate_tensors()
    thread = threading.Thread(target=interpreter.invoke, daemon=True)
    thread.start()
    assert entered.wait(_TIMEOUT_S)
    with pytest.raises(ModelError, match="already running"):
        interpreter.invoke()
    leave.set()
    thread.join(_TIMEOUT_S)
    interpreter.invoke()


def test_an_interpreter_may_change_threads() -> None:
    model_ = lstm()
    interpreter, alone = opened(model_, {"num_threads": 1}), opened(model_, {"num_threads": 1})
    for x in feeds(model_):
        got: list[list[Array]] = []
        thread = threading.Thread(target=lambda x=x, got=got: got.append(run(interpreter, x)))
        thread.start()
        thread.join(_TIMEOUT_S)
        np.testing.assert_array_equal(got[0][0], run(alone, x)[0])
