"""A signal handler that uses litecl while the main thread is within any section that only one thread may enter."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.compiled.exchange import Exchange
from litecl.compiled_model import CompiledModel
from litecl.delegate import CLDelegate, devices
from litecl.delegate.native import backend, compiler, library, workers
from litecl.delegate.opencl.devices import programs
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write, write_file
from litecl.interpreter.run import threads
from support import compare, small_models
from support import devices as opencl
from support.interrupts import no_hang

X = np.random.default_rng(5).standard_normal((2, 5)).astype(np.float32)
CHAIN = small_models.chain()
_NATIVE: dict[str, Any] = {"device": "native", "num_threads": 2, "strict": True, "cache_dir": None}
_OPENCL: dict[str, Any] = {"device": opencl.tested()[0], "queue_loops": True, "strict": True, "cache_dir": None}

_SECTIONS: dict[str, tuple[Any, str, dict[str, Any] | None]] = {
    "opening a device": (backend.NativeFound, "open", _NATIVE),
    "hiring helpers": (library.Libraries, "crew", _NATIVE),
    "building a program": (programs.Programs, "_program", _OPENCL),
    "threads of BLAS": (threads._Blas, "_set", None),
}


@pytest.fixture
def _no_hang() -> Iterator[None]:
    with no_hang(60):  # a compiler takes seconds on a busy machine
        yield


@pytest.mark.skipif(not hasattr(signal, "SIGWINCH"), reason="no such signals here")
@pytest.mark.parametrize("section", _SECTIONS)
def test_a_handler_uses_what_it_has_interrupted(section: str, monkeypatch: pytest.MonkeyPatch, _no_hang: None) -> None:
    owner, name, options = _SECTIONS[section]
    if options is _NATIVE and compiler.found() is None:
        pytest.skip("no compiler for the processor: pip install ziglang")
    monkeypatch.setattr(devices, "_DEVICES", {})
    monkeypatch.setattr(workers, "_crew", None)
    heard = list[np.ndarray]()
    real: Callable[..., Any] = getattr(owner, name)

    def made() -> np.ndarray:
        delegates = [] if options is None else [CLDelegate(**options)]
        interpreter = Interpreter(CHAIN, delegates=delegates)
        interpreter.allocate_tensors()
        return small_models.run(interpreter, X)

    def handle(number: int, frame: object) -> None:
        heard.append(made())

    def interrupted(*arguments: Any, **keywords: Any) -> Any:
        if not heard:
            heard.append(X)
            signal.raise_signal(signal.SIGWINCH)
        return real(*arguments, **keywords)

    monkeypatch.setattr(owner, name, interrupted)
    before = signal.signal(signal.SIGWINCH, handle)
    try:
        results = [made(), *heard[1:]]
    finally:
        signal.signal(signal.SIGWINCH, before)
    assert len(results) == 2
    for result in results:
        compare.assert_close(result, small_models.run(small_models.reference(CHAIN), X), compare.DEVICE["float32"])


@pytest.mark.skipif(not hasattr(signal, "SIGWINCH"), reason="no such signals here")
def test_a_handler_runs_the_compiled_model_that_it_has_interrupted(
    monkeypatch: pytest.MonkeyPatch, _no_hang: None
) -> None:
    """An error says that it is running; the run continues, on its own inputs."""
    compiled = CompiledModel.from_buffer(write(CHAIN))
    inputs, outputs = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    others = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    inputs[0].write(X)
    said, real = list[str](), Exchange._collect

    def handle(number: int, frame: object) -> None:
        try:
            compiled.run_by_index(0, *others)
        except ModelError as error:
            said.append(str(error))

    def interrupted(*arguments: Any) -> None:
        signal.raise_signal(signal.SIGWINCH)
        real(*arguments)

    monkeypatch.setattr(Exchange, "_collect", interrupted)
    before = signal.signal(signal.SIGWINCH, handle)
    try:
        compiled.run_by_index(0, inputs, outputs)
    finally:
        signal.signal(signal.SIGWINCH, before)
    assert "already running" in said[0]
    got = outputs[0].read(14, np.float32).reshape(2, 7)
    compare.assert_close(got, small_models.run(small_models.reference(CHAIN), X), compare.INTERPRETER["float32"])


_PREDICTOR = """
    import signal, sys
    import numpy as np
    import litecl.predictor
    from litecl.background import Task
    from litecl.interpreter import Interpreter

    options, where, way = eval(sys.argv[1]), sys.argv[2], sys.argv[3]
    x, other = np.load("x.npy"), 2 * np.load("x.npy")
    predictor = litecl.predictor.Predictor("chain.tflite", **options)
    (name,), (output,) = predictor.inputs, predictor.outputs
    heard = []

    def asked(value):
        batch = {name: value}
        return (predictor(batch) if way == "call" else predictor.submit(batch).result(20))[output]

    def handle(number, frame):
        heard.append(None)
        heard.append(asked(other))

    owner, function = {
        "while a lane is taken": (litecl.lane.Lane, "run"),
        "while a thread is given work": (Task, "__init__"),
    }[where]
    real = getattr(owner, function)

    def interrupted(*arguments):
        if not heard:
            signal.raise_signal(signal.SIGWINCH)
        return real(*arguments)

    signal.signal(signal.SIGWINCH, handle)
    setattr(owner, function, interrupted)
    submits = owner is Task
    result = predictor.submit({name: x}).result(20)[output] if submits else predictor({name: x})[output]
    np.savez("results.npz", first=result, heard=heard[1], then=asked(other))
    predictor.close()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGWINCH"), reason="no such signals here")
@pytest.mark.parametrize("way", ["call", "submit"])
@pytest.mark.parametrize("where", ["while a lane is taken", "while a thread is given work"])
@pytest.mark.long
def test_a_handler_calls_the_predictor_that_it_has_interrupted(where: str, way: str, tmp_path: Path) -> None:
    """In a process with a limit on its time, as a lock may be waited for where no signal is heard."""
    write_file(CHAIN, tmp_path / "chain.tflite")
    np.save(tmp_path / "x.npy", X)
    options = {"cpu": True} if way == "submit" or compiler.found() is None else {"device": "native"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_PREDICTOR), repr(options), where, way],
        cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = np.load(tmp_path / "results.npz")
    for result, value in (("first", X), ("heard", 2 * X), ("then", 2 * X)):
        wanted = small_models.run(small_models.reference(CHAIN), value)
        compare.assert_close(results[result], wanted, compare.DEVICE["float32"])
