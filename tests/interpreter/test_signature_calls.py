"""Consecutive calls of a signature: later ones only copy arrays, as long as a model stays prepared."""

import threading
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.native import compiler
from litecl.interpreter import DeviceTensor, Interpreter
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(4)
_NATIVE = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
_MODES: dict[str, dict[str, Any]] = {
    "numpy": {},
    "limited": {"memory_limit": 1 << 24},
    "device": {"delegates": [CLDelegate(device="native", num_threads=1)]},
    "two regions": {"delegates": [CLDelegate(device="native", num_threads=1, deny_nodes=[(0, 1), (1, 1)])]},
}


def _content() -> bytes:
    """(a + b) * a, as the first subgraph and as another one."""
    graphs = []
    for _ in range(2):
        g = Graph()
        a, b = g.input((2, 3), signature=(-1, 3)), g.input((2, 3), signature=(-1, 3))
        added = g.op(ADD, [a, b], AddOptions())
        graphs.append(g.build(g.op(MUL, [added, a], MulOptions()), added))
    names: Any = {"a": 0, "b": 1}, {"y": 3, "sum": 2}
    return write(model(*graphs, signatures=[Signature("first", *names, 0), Signature("second", *names, 1)]))


@pytest.fixture(
    params=[pytest.param(mode, marks=_NATIVE if "d" in mode[:3] or "two" in mode else ()) for mode in _MODES]
)
def interpreter(request: pytest.FixtureRequest) -> Interpreter:
    return Interpreter(_content(), **_MODES[request.param])


def _values(*shape: int) -> dict[str, np.ndarray]:
    return {"a": randn(RNG, *(shape or (2, 3))), "b": randn(RNG, *(shape or (2, 3)))}


def _check(got: dict[str, Any], a: Any, b: Any) -> None:
    assert [*got] == ["sum", "y"]
    for name, wanted in (("sum", np.add(a, b)), ("y", np.add(a, b) * a)):
        np.testing.assert_allclose(got[name], wanted, rtol=1e-6)
        assert got[name].dtype == np.float32


@pytest.mark.parametrize("key", ["first", "second"])
def test_calls_one_after_another(interpreter: Interpreter, key: str) -> None:
    """Of arrays in any order and layout, of lists, of other shapes and back, and between other uses."""
    runner, other = (interpreter.get_signature_runner(each) for each in (key, "first"))
    calls = [_values() for _ in range(4)]
    results = [runner(**values) for values in calls]
    for values, got in zip(calls, results, strict=True):  # of which none is a view of what the next one writes
        _check(got, **values)
    values = _values()
    _check(runner(b=values["b"], a=values["a"]), **values)
    strided = {name: np.asfortranarray(x) for name, x in _values().items()}
    _check(runner(**strided), **strided)
    listed = {name: x.astype(np.float32) for name, x in _values().items()}
    _check(runner(a=listed["a"], b=listed["b"]), **listed)
    for rows in (5, 2, 5, 1):
        values = _values(rows, 3)
        _check(runner(**values), **values)
        _check(runner(**values), **values)
    interpreter.resize_tensor_input(0, (4, 3), subgraph_index=runner._subgraph_index)
    values = _values()
    _check(other(**values), **values)
    _check(runner(**values), **values)
    _check(runner(**values), **values)


@pytest.mark.parametrize("key", ["first", "second"])
def test_errors_after_calls(interpreter: Interpreter, key: str) -> None:
    """They are those of a first call, and the next one is right."""
    runner = interpreter.get_signature_runner(key)
    a, b = _values().values()
    for _ in range(2):
        _check(runner(a=a, b=b), a, b)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"a": a}, ModelError, r"expected inputs \['a', 'b'\], got \['a'\]"),
        ({"a": a, "c": b}, ModelError, r"expected inputs \['a', 'b'\], got \['a', 'c'\]"),
        ({"a": a, "b": b, "c": b}, ModelError, r"expected inputs \['a', 'b'\]"),
        ({"a": a, "b": b.astype(np.float64)}, ShapeError, "expected float32, got float64"),
        ({"a": a, "b": b.astype(">f4")}, ShapeError, "expected float32"),
        ({"a": a, "b": [[1, 2, 3], [4]]}, ShapeError, "input 'b'"),
    ]
    for given, error, match in wrong:
        with pytest.raises(error, match=match):
            runner(**given)
        _check(runner(a=a, b=b), a, b)
    interpreter.close()
    with pytest.raises(ModelError, match="closed"):
        runner(a=a, b=b)


def test_what_a_call_was_given_is_its_own(interpreter: Interpreter) -> None:
    """An array that a caller changes later, and one that it writes through ``tensor``."""
    runner = interpreter.get_signature_runner("first")
    a, b = _values().values()
    for _ in range(2):
        runner(a=a, b=b)
    before = a.copy()
    a[...] = 7
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(3), (before + b) * before, rtol=1e-6)
    interpreter.tensor(0)()[...] = 2
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(3), (2 + b) * 2, rtol=1e-6)
    _check(runner(a=a, b=b), a, b)


def test_tensors_on_the_device_after_arrays(interpreter: Interpreter) -> None:
    runner = interpreter.get_signature_runner("first")
    a, b = _values().values()
    for _ in range(3):
        _check(runner(a=a, b=b), a, b)
        _check(runner(a=DeviceTensor.of(a), b=b), a, b)


@_NATIVE
def test_bytes_are_counted_by_every_call() -> None:
    interpreter = Interpreter(_content(), delegates=[CLDelegate(device="native", num_threads=1)])
    runner, counted = interpreter.get_signature_runner("first"), []
    for rows in (2, 2, 2, 4, 4):
        runner(**_values(rows, 3))
        counters = interpreter.delegation_report().counters
        counted.append((counters.bytes_given, counters.bytes_returned, counters.kernel_launches))
    assert [each[:2] for each in counted] == [(48, 48)] * 3 + [(96, 96)] * 2
    assert len({each[2] for each in counted}) == 1


def test_strings_take_the_long_way() -> None:
    g = Graph()
    x = g.input((2,), TensorType.STRING)
    content = write(model(g.build(x), signatures=[Signature("s", {"x": x}, {"y": x})]))
    runner = Interpreter(content).get_signature_runner()
    for text in ("a", "bc", "a"):
        assert runner(x=np.array([text, "d"], object))["y"].tolist() == [text.encode(), b"d"]


@_NATIVE
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_that_share_an_interpreter(threads: int) -> None:
    """A call gives its own results, or says that another one is under way: never those of another thread's arrays."""
    g = Graph()
    total = g.input((64, 64))
    weights = g.const(randn(RNG, 64, 64, scale=0.1))
    for _ in range(4):
        total = g.op(FULLY_CONNECTED, [total, weights, None], FullyConnectedOptions())
    total = g.op(ADD, [total, total], AddOptions())
    content = write(model(g.build(total), signatures=[Signature("only", {"x": 0}, {"y": total}, 0)]))
    delegates = [CLDelegate(device="native", num_threads=threads)]
    shared, values = Interpreter(content, delegates=delegates), [randn(RNG, 64, 64) for _ in range(3)]
    alone = Interpreter(content, delegates=delegates).get_signature_runner()
    wanted = [alone(x=x)["y"] for x in values]
    wrong, started = [], threading.Barrier(3)

    def call(i: int) -> None:
        runner = shared.get_signature_runner()
        started.wait()
        for _ in range(300):
            try:
                got = runner(x=values[i])["y"]
            except ModelError as error:
                assert "already running" in str(error)
            else:
                if not np.allclose(got, wanted[i], rtol=1e-4, atol=1e-5):
                    wrong.append(i)

    workers = [threading.Thread(target=call, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    np.testing.assert_allclose(shared.get_signature_runner()(x=values[0])["y"], wanted[0], rtol=1e-4, atol=1e-5)


def test_a_call_within_a_call() -> None:
    """A listener's call would change what the first one reads."""
    raised = []

    class Caller:
        def ran(self, *given: Any) -> None:
            with pytest.raises(ModelError) as caught:
                runner(**_values())
            raised.append(str(caught.value))

    interpreter = Interpreter(_content(), listeners=[Caller()])
    runner = interpreter.get_signature_runner("first")
    values = _values()
    _check(runner(**values), **values)
    assert raised and all("already running" in text for text in raised)
