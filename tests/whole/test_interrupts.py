"""Ctrl-C in an invoke: either it raises and nothing has changed, or it returns with new states; and in a predictor."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest

from litecl import Predictor
from litecl.background import Background
from litecl.delegate import CLDelegate
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter, limits
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Signature
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.run import threads
from support import small_models
from support.build import Graph, model, randn
from support.fault_models import Subject, subjects
from support.interrupts import interrupted, no_hang, places

_STEP = 7  # of many places every so manyth is tried; no divisor of what a loop may take
_FEW = 150
_NATIVE = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")

_MODES: dict[str, tuple[dict[str, Any] | None, dict[str, Any]]] = {
    "interpreter": (None, {}),
    "interpreter, limited": (None, {"memory_limit": 1 << 24, "num_threads": 1}),
    "in place": ({"device": "native", "num_threads": 1}, {}),
    "in place, helpers": ({"device": "native", "num_threads": 2}, {}),
    "profiled": ({"device": "native", "profile": True}, {}),
    "node by node": ({"device": "native"}, {"experimental_preserve_all_tensors": True}),
}


@cache
def _subjects() -> dict[str, Subject]:
    return {subject.name: subject for subject in subjects()}


def _made(subject: Subject, mode: str) -> Interpreter:
    options, keywords = _MODES[mode]
    delegates = [] if options is None else [CLDelegate(strict=True, **{**options, **subject.options})]
    interpreter = Interpreter(subject.model, delegates=delegates, **keywords)
    interpreter.allocate_tensors()
    return interpreter


def _feed(interpreter: Interpreter, feeds: Sequence[Array]) -> None:
    for tensor, value in zip(interpreter.model.subgraphs[0].inputs, feeds, strict=True):
        interpreter.set_tensor(tensor, value)


def blas_threads() -> list[int]:
    """How many threads each BLAS of the process takes."""
    return [library.get() for library in threads._blas()._libraries]


@pytest.mark.parametrize("name", ["lstm", "two LSTMs", "variables"])
@pytest.mark.parametrize("mode", [pytest.param(mode, marks=() if "interp" in mode else _NATIVE) for mode in _MODES])
def test_an_interrupt_anywhere_in_an_invoke(name: str, mode: str) -> None:
    """The invoke that follows one that has raised is the first one of these inputs. The others return."""
    subject, rng = _subjects()[name], np.random.default_rng(8)
    interpreter, wanted = _made(subject, mode), _made(subject, "interpreter")
    outputs = interpreter.model.subgraphs[0].outputs
    heard, number, given = 0, 0, blas_threads()
    for number in count():
        at = number if number < _FEW else _FEW + (number - _FEW) * _STEP
        feeds = [rng.standard_normal(x.shape).astype(x.dtype) for x in subject.feeds[0]]
        for each in (interpreter, wanted):
            _feed(each, feeds)
        wanted.invoke()
        outcome = interrupted(interpreter.invoke, at)
        assert limits.active() is None, f"a limit outlasts the call, interrupted at place {at}"
        if outcome == "raised":
            interpreter.invoke()
        assert blas_threads() == given, f"BLAS has other threads than before, interrupted at place {at}"
        for tensor in outputs:
            where = f"interrupted at place {at}"
            np.testing.assert_allclose(
                interpreter.get_tensor(tensor), wanted.get_tensor(tensor), rtol=1e-3, atol=1e-4, err_msg=where
            )
        heard += outcome == "raised"
        if outcome == "returned":
            break
    assert heard == number > (5 if name == "lstm" and mode.startswith("in place") else 10)


@pytest.mark.parametrize("mode", ["interpreter", pytest.param("in place", marks=_NATIVE)])
def test_an_interrupt_anywhere_in_a_preparation(mode: str) -> None:
    """Shapes that were interrupted while they were prepared are prepared at the next try, and states begin anew."""
    subject, rng = _subjects()["lstm"], np.random.default_rng(8)
    feeds = {steps: randn(rng, 1, steps, 4) for steps in (3, 5)}
    wanted = {steps: _answer(_made(subject, "interpreter"), x) for steps, x in feeds.items()}
    interpreter = _made(subject, mode)
    for x in (feeds[5], feeds[3]):
        _answer(interpreter, x)  # from now on both are kept prepared
    for number in range(places(lambda: _prepared(interpreter, feeds[5]))):
        _answer(interpreter, feeds[3])
        interrupted(lambda: _prepared(interpreter, feeds[5]), number)
        np.testing.assert_allclose(_answer(interpreter, feeds[5]), wanted[5], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(_answer(interpreter, feeds[3]), wanted[3], rtol=1e-4, atol=1e-5)


def _prepared(interpreter: Interpreter, x: Array) -> None:
    (tensor,) = interpreter.model.subgraphs[0].inputs
    interpreter.resize_tensor_input(tensor, x.shape)
    interpreter.allocate_tensors()


def _answer(interpreter: Interpreter, x: Array) -> Array:
    """Return the first answer of new states: nothing resets them but the preparation."""
    _prepared(interpreter, x)
    _feed(interpreter, [x])
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.model.subgraphs[0].outputs[0])


@pytest.mark.parametrize("mode", ["interpreter", pytest.param("in place", marks=_NATIVE)])
def test_an_interrupt_anywhere_in_a_run_on_tensors(mode: str) -> None:
    """Neither the interpreter nor a tensor stays in use, though the frames that used them are alive."""
    g, rng = Graph(), np.random.default_rng(8)
    a, b = g.input((2, 3)), g.input((2, 3))
    y = g.op(ADD, [a, b], AddOptions())
    content = write(model(g.build(y), signatures=[Signature("s", {"a": a, "b": b}, {"y": y})]))
    options, keywords = _MODES[mode]
    interpreter = Interpreter(content, delegates=[] if options is None else [CLDelegate(**options)], **keywords)
    runner = interpreter.get_signature_runner()
    first, sum_ = runner.device_tensor("a"), runner.device_tensor("y")
    for number in count():
        held = list[BaseException]()
        x, other = randn(rng, 2, 3), randn(rng, 2, 3)
        first.write(x)
        outcome = interrupted(lambda other=other: runner.run({"a": first, "b": other}, {"y": sum_}), number, held)
        interrupted(first.read, number, held)
        interrupted(lambda x=x: first.write(x), number, held)  # type: ignore[misc]
        runner.run({"a": first, "b": other}, {"y": sum_})
        np.testing.assert_array_equal(sum_.read(), x + other)
        if outcome == "returned":
            break
    assert number > 50


# Predictors


@pytest.fixture
def _no_hang() -> Iterator[None]:
    with no_hang(60):
        yield


_X = randn(np.random.default_rng(5), 2, 5)
_WAYS: dict[str, Callable[[Predictor], Any]] = {
    "call": lambda predictor: predictor(_X),
    "submit": lambda predictor: predictor.submit(_X),
    "result": lambda predictor: predictor.submit(_X).result(),
    "result, with a timeout": lambda predictor: predictor.submit(_X).result(20),
    "map": lambda predictor: [*predictor.map([_X] * 3)],
}


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signals here")
@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize("way", _WAYS)
def test_an_interrupt_anywhere_in_a_predictor(way: str, buffers: int, _no_hang: None) -> None:
    """No lane is lost, no lock stays held, and no thread of its own is lost or blocked."""
    chain = small_models.chain()
    wanted = small_models.run(small_models.reference(chain), _X)
    number = 0
    with Predictor(write(chain), cpu=True, buffers=buffers) as predictor:
        (output,) = predictor.outputs
        for number in count():
            held = list[BaseException]()
            outcome = interrupted(lambda: _WAYS[way](predictor), number, held)
            for result in (predictor(_X), predictor.submit(_X).result(20)):
                np.testing.assert_allclose(result[output], wanted, rtol=1e-5, atol=1e-6)
            if outcome == "returned":
                break
        for future in [predictor.submit(_X) for _ in range(3)]:
            future.result(20)
        assert len(predictor._pool._free) == buffers
    assert number > 15


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signals here")
def test_an_interrupt_anywhere_while_threads_are_started(_no_hang: None) -> None:
    """As many as there may be serve the calls that follow."""
    for number in count():
        background = Background(2)
        outcome = interrupted(lambda background=background: background.submit(abs, -1), number)  # type: ignore[misc]
        both = threading.Barrier(2)
        for future in [background.submit(both.wait, 20) for _ in range(2)]:
            future.result(20)
        background.close()
        if outcome == "returned":
            break
    assert number > 10


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such signals here")
@pytest.mark.parametrize("buffers", [1, 2])
def test_interrupts_at_random_among_threads(buffers: int, _no_hang: None) -> None:
    """The main thread hears of them, while others wait for the same lanes."""
    rng, chain = np.random.default_rng(buffers), small_models.chain()
    wanted, heard, ended = small_models.run(small_models.reference(chain), _X), 0, threading.Event()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    with Predictor(write(chain), cpu=True, buffers=buffers) as predictor:
        (output,) = predictor.outputs
        wrong = list[Array]()

        def others() -> None:
            while not ended.is_set():
                result = predictor(_X)[output]
                if not np.allclose(result, wanted, rtol=1e-5, atol=1e-6):
                    wrong.append(result)

        threads = [threading.Thread(target=others) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(300):
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 3e-3))
                    while True:
                        predictor(_X)
                except KeyboardInterrupt:
                    heard += 1
        finally:
            ended.set()
            signal.signal(signal.SIGALRM, before)
        signal.alarm(30)
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)
        assert (heard, wrong, len(predictor._pool._free)) == (300, [], buffers)
