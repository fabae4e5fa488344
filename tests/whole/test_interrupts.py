"""Ctrl-C in an invoke: either it raises and nothing has changed, or it returns with new states."""

from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter, limits
from litecl.interpreter.graph import Array
from litecl.interpreter.run import threads
from support.build import randn
from support.interrupts import interrupted, places
from tools.fault_models import Subject, subjects

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
