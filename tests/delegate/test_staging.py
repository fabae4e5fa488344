"""Inputs, outputs and states through page-locked memory, as for a GPU with memory of its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.opencl.devices import device
from litecl.delegate.opencl.memory import staging
from litecl.interpreter import Interpreter
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import EXP
from litecl.perf.feeds import outputs_of
from support import devices, opencl_seam
from support.build import Graph, model, randn
from support.fault_models import Session, expected, raises, subjects

RNG = np.random.default_rng(14)
SUBJECTS = {subject.name: subject for subject in subjects()}
Made = list[tuple[int, int]]


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return options of delegates that take the first device for a GPU with memory of its own."""
    found = devices.as_on_a_gpu(monkeypatch, folder(tmp_path_factory))
    target = device.target_of
    monkeypatch.setattr(device, "target_of", lambda *args: replace(target(*args), gpu=Gpu()))
    return found


def folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the programs of all of these tests."""
    found = factory.getbasetemp() / "staged"
    found.mkdir(exist_ok=True)
    return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """The flags and sizes of all buffers that are mapped."""
    found: Made = []
    real = cl.enqueue_map_buffer

    def mapped(queue: Any, buffer: Any, *rest: Any) -> Any:
        found.append((buffer.flags, buffer.size))
        return real(queue, buffer, *rest)

    monkeypatch.setattr(cl, "enqueue_map_buffer", mapped)
    yield found


def net() -> tuple[Interpreter, Any]:
    """Return a model with two inputs and three outputs, one of which shares an input's memory."""
    g = Graph()
    x, y = g.input((3, 4)), g.input((3, 4))
    total = g.op(ADD, [g.op(EXP, [x], NoOptions()), y], AddOptions())
    flat = g.op(RESHAPE, [x, g.const(np.array([12], np.int32))], ReshapeOptions())
    return model(g.build(total, flat, x)), [x, y]


@pytest.mark.parametrize("name", [*SUBJECTS][:-1])  # the integer LSTM compiles for too long
def test_staged_results(name: str, options: dict[str, Any], made: Made) -> None:
    """Over invokes, with states that are reset and read back."""
    if "loop" in name:
        devices.needs_groups()
    session = Session(SUBJECTS[name], [CLDelegate(**options, **SUBJECTS[name].options, strict=True)])
    for step, wanted in zip(session.steps(), expected(name), strict=True):
        for got, right in zip(step(), wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
    assert len(made) == len(session.interpreter.delegation_report().partitions)
    assert all(flags & cl.mem_flags.ALLOC_HOST_PTR for flags, _ in made)


def test_outputs_are_not_the_staged_memory(options: dict[str, Any], made: Made) -> None:
    content, inputs = net()
    interpreter = Interpreter(content, delegates=[CLDelegate(**options, strict=True)])
    interpreter.allocate_tensors()
    seen = []
    for _ in range(2):
        values = [randn(RNG, 3, 4) for _ in inputs]
        for tensor, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(tensor, value)
        interpreter.invoke()
        results = outputs_of(interpreter)
        seen.append((results, values))
    for results, (x, y) in seen:
        for got, right in zip(results, (np.exp(x) + y, x.reshape(12), x), strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-6)
    assert len(made) == 1


def test_what_is_large_is_left_to_the_driver(
    options: dict[str, Any], made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_LARGE", 47)
    content, inputs = net()
    interpreter = Interpreter(content, delegates=[CLDelegate(**options, strict=True)])
    interpreter.allocate_tensors()
    x = randn(RNG, 3, 4)
    for tensor in inputs:
        interpreter.set_tensor(tensor, x)
    interpreter.invoke()
    np.testing.assert_allclose(
        interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), np.exp(x) + x, rtol=1e-6
    )
    assert not made


def test_without_such_memory_all_is_copied(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There is one warning; nothing else differs."""
    monkeypatch.setattr(cl, "enqueue_map_buffer", raises(opencl_seam.error(0, "enqueue_map_buffer")))
    session = Session(SUBJECTS["lstm"], [CLDelegate(**options, strict=True)])
    for step, wanted in zip(session.steps(), expected("lstm"), strict=True):
        for got, right in zip(step(), wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
    assert "inputs and outputs are not staged" in caplog.text


@pytest.mark.parametrize("integrated", [False, True], ids=["a CPU", "an integrated GPU"])
def test_others_have_nothing_to_stage(
    integrated: bool, options: dict[str, Any], made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An integrated GPU's driver copies within the memory that both have."""
    target, cpu = device.target_of, CpuTarget(vector_width=4, compute_units=2)
    gpu = Gpu(integrated=True)
    monkeypatch.setattr(device, "target_of", lambda *args: replace(target(*args), gpu=gpu) if integrated else cpu)
    session = Session(SUBJECTS["lstm"], [CLDelegate(**{**options, "cache_dir": tmp_path}, strict=True)])
    session.steps()[0]()
    assert not made
