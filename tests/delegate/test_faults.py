"""Devices, files and users that fail at the worst moment: the answer is right, or a typed error is reported.

``PYTHONPATH=tests python -m tools.faults opencl`` fails every OpenCL call of every model and mode, which takes long.
"""

import json
import logging
import signal
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate, progress
from litecl.delegate import devices as open_devices
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.opencl import errors
from litecl.delegate.opencl.devices import device, programs
from litecl.delegate.opencl.devices.device import devices
from litecl.delegate.opencl.probes import capabilities
from litecl.interpreter.errors import DelegateError, KernelBuildError, LiteclError, OutOfDeviceMemory
from support import opencl_seam
from support.build import randn
from support.devices import as_on_a_gpu
from support.fault_models import RNG, Session, Subject, assert_right, expected, prepared, raises, run, small, subjects
from support.fault_places import HOW, Place
from support.opencl_faults import MODES, judge, places
from support.opencl_seam import Seam, installed

pytestmark = pytest.mark.opencl
SUBJECTS = {subject.name: subject for subject in subjects()}


# OpenCL calls


_KINDS = 4  # of calls that are tried in a combination, others in others


def sample(subject: Subject, mode: str, how: str) -> list[Place]:
    """The last call of each of a few names."""
    by_name = {place.name: place for place in places(subject, mode, how)}
    start = [*product(SUBJECTS, MODES)].index((subject.name, mode)) + HOW.index(how)
    return [*by_name.values()][start % 7 :: 7][:_KINDS]


_COMBINATIONS = [
    *(("image", "threads", "fallback"), ("lstm", "gpu", "strict"), ("two LSTMs", "profile", "fallback")),
    *(("limited loop", "one thread", "fallback"), ("loop", "queued", "strict"), ("lstm", "threads", "interrupt")),
    *(("quantized", "threads", "interrupt"), ("integer LSTM", "one thread", "fallback")),
    *(("loop", "workers", "fallback"), ("lstm", "mapped", "fallback"), ("image", "integrated", "strict")),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "mode", "how"), _COMBINATIONS)
def test_a_call_that_fails(name: str, mode: str, how: str) -> None:
    wrong = {str(place): text for place in sample(SUBJECTS[name], mode, how) if (text := judge(place))}
    assert not wrong


def test_states_change_all_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the host can't see device memory, commands copy states, and each may fail."""
    subject, wanted = SUBJECTS["lstm"], expected("lstm")
    options = as_on_a_gpu(monkeypatch, tmp_path)
    with installed(Seam()) as seam:
        session = Session(subject, [CLDelegate(**options)])
        counts = [len(seam.calls) for step in session.steps()[:3] if step() is not None]
    for number in range(counts[1], counts[2]):
        with installed(Seam(number, lambda routine: opencl_seam.error(2, routine))):
            session = Session(subject, [CLDelegate(**options)])
            for step, arrays in zip(session.steps(), wanted, strict=True):
                for got, right in zip(step(), arrays, strict=True):
                    np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


def test_a_state_that_cannot_be_read_is_still_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    subject, wanted = SUBJECTS["lstm"], expected("lstm")
    session = Session(subject, [CLDelegate(**as_on_a_gpu(monkeypatch, tmp_path))])
    steps = session.steps()
    for step in steps[:-1]:
        step()
    with monkeypatch.context() as broken:
        broken.setattr(cl, "enqueue_copy", raises(opencl_seam.error(1, "enqueue_copy")))
        with pytest.raises(OutOfDeviceMemory, match="reading variable"):
            steps[-1]()
    for got, right in zip(steps[-1](), wanted[-1], strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


def test_an_interrupt_at_any_call_changes_no_state() -> None:
    subject, wanted = SUBJECTS["lstm"], expected("lstm")
    with installed(Seam()) as seam:
        session = Session(subject, [CLDelegate(num_threads=1)])
        counts = [len(seam.calls) for step in session.steps()[:3] if step() is not None]
    for number in range(counts[0], counts[2]):
        seam = Seam(number, lambda routine: KeyboardInterrupt())
        with installed(seam):
            session = Session(subject, [CLDelegate(num_threads=1)])
            heard = 0
            for step, arrays in zip(session.steps(), wanted, strict=True):
                try:
                    got = step()
                except KeyboardInterrupt:
                    heard += 1
                    got = step()
                for value, right in zip(got, arrays, strict=True):
                    np.testing.assert_allclose(value, right, rtol=1e-4, atol=1e-5)
        assert heard == (number < len(seam.calls))
        assert session.interpreter.delegation_report().claimed


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_an_interrupt_at_any_time_finds_states_that_belong_together() -> None:
    subject = SUBJECTS["lstm"]
    session = Session(subject, [CLDelegate(num_threads=2, strict=True)])
    reference = Session(subject, [])
    for each in (session, reference):
        each.interpreter.allocate_tensors()
    session.invoke(0), reference.invoke(0)
    kept = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for k in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5 * (k + 1))
                session.interpreter.invoke()
                signal.setitimer(signal.ITIMER_REAL, 0)
                time.sleep(0)  # what has come is heard here
            except KeyboardInterrupt:
                pass
            before = reference.variables()
            reference.interpreter.invoke()
            after = reference.variables()
            found = session.variables()
            moved = [np.allclose(value, new, atol=1e-5) for value, new in zip(found, after, strict=True)]
            if not all(moved):
                for value, old in zip(found, before, strict=True):
                    np.testing.assert_allclose(value, old, rtol=1e-4, atol=1e-5)
            for tensor, value in zip(session._variables, found, strict=True):
                reference.interpreter.set_tensor(tensor, value)
    finally:
        signal.signal(signal.SIGALRM, kept)


def test_a_device_that_failed_is_tried_again_for_other_shapes() -> None:
    interpreter = prepared(small())
    assert interpreter.delegation_report().claimed == 2
    with installed(Seam(0, lambda routine: opencl_seam.error(2, routine))):
        assert_right(interpreter)
    assert_right(interpreter)
    report = interpreter.delegation_report()
    assert not report.claimed and not any(row.kernels for row in report.nodes)
    interpreter.resize_tensor_input(0, (3, 5))
    interpreter.allocate_tensors()
    x = randn(RNG, 3, 5)
    np.testing.assert_allclose(run(interpreter, x), np.exp(x) + x, rtol=1e-5)
    assert interpreter.delegation_report().claimed == 2


@pytest.mark.parametrize("how", ["build", "compile"])
def test_a_program_that_another_process_is_writing_is_built_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    """PoCL's folder is without a file for a moment where processes build the same program."""
    real, calls = getattr(cl.Program, how), []

    def missing(*arguments: Any, **options: Any) -> Any:
        calls.append(how)
        if len(calls) % 3:
            raise cl.RuntimeError("no file")
        return real(*arguments, **options)

    monkeypatch.setattr(cl.Program, how, missing)
    monkeypatch.setattr(progress, "_said", set())
    interpreter = prepared(small() if how == "build" else SUBJECTS["lstm"].model, cache_dir=tmp_path, strict=True)
    assert calls
    assert not interpreter.delegation_report().failures


# What is told


def test_the_report_begins_with_what_went_wrong(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "_said", set())
    broken = RuntimeError("[/bold] a[3]: 7 errors\nx.cl:1: error: [unknown] type")
    for made in ("kernel", "region_kernel"):
        monkeypatch.setattr(programs.Programs, made, raises(KernelBuildError(str(broken))))
    with caplog.at_level(logging.WARNING, logger="litecl"):
        for _ in range(2):
            interpreter = prepared(small())
    cause = "[/bold] a[3]: 7 errors x.cl:1: error: [unknown] type"
    told = interpreter.delegation_report()
    assert str(told).startswith(f"WARNING: 1 region fell back to the CPU: {cause}\n")
    assert json.loads(told.to_json())["warnings"] == list(told.warnings)
    assert [record.getMessage().endswith(cause) for record in caplog.records] == [True]
    assert_right(interpreter)


def test_a_region_that_cannot_be_linked_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "_said", set())
    subject = SUBJECTS["lstm"]
    row = prepared(subject.model).delegation_report().partitions[0]
    assert (row.manner.runs, row.manner.fault) == ("one kernel", "")
    monkeypatch.setattr(programs.Programs, "region_kernel", raises(KernelBuildError("no linker")))
    told = prepared(subject.model).delegation_report()
    assert str(told).startswith("WARNING: region 0 is queued, because it could not be linked: no linker\n")
    assert json.loads(told.to_json())["partitions"][0]["manner"]["fault"] == "no linker"
    assert "could not be linked" in caplog.text
    with pytest.raises(KernelBuildError, match="no linker"):
        prepared(subject.model, strict=True)


def test_how_a_region_runs_and_why() -> None:
    lstm = SUBJECTS["lstm"].model
    for model_, options, manner in (
        (lstm, {}, "one kernel"),
        (lstm, {"profile": True}, "queued (profile=True, and launches have times of their own)"),
        (lstm, {"queue_loops": True}, "queued (queue_loops=True)"),
        (small(), {}, "queued (fewer than 4 launches)"),
    ):
        told = prepared(model_, **options).delegation_report()
        if isinstance(device.target_of(devices()[0]), CpuTarget):
            assert str(told.partitions[0].manner) == manner
            assert f"1 region: {manner}" in str(told)


def test_a_device_that_builds_nothing_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(devices()) < 2:
        pytest.skip("needs two devices")
    first = open_devices.choose(num_threads=1)
    real = capabilities.capabilities

    def broken(opened: cl.Device, *rest: Any) -> Any:
        return raises(KernelBuildError("nothing builds"))() if opened == first.device else real(opened, *rest)

    monkeypatch.setattr(open_devices, "_DEVICES", {})
    monkeypatch.setattr(device, "capabilities", broken)
    interpreter = prepared(small(), num_threads=1)
    told = interpreter.delegation_report()
    assert told.device != first.name
    assert told.claimed == 2
    assert told.warnings == (f"device passed over: {first.name}: nothing builds",)
    assert_right(interpreter)
    for options in ({"strict": True}, {"strict": True, "device": first}):
        with pytest.raises(KernelBuildError, match="nothing builds"):
            prepared(small(), num_threads=1, **options)


def test_every_error_is_typed() -> None:
    """The seam raises the errors of pyopencl, so Python's own errors are never taken for a device's. A lack of memory
    differs from a failed build and from other errors.
    """
    for kind in range(4):
        raised = opencl_seam.error(kind, "routine")
        assert isinstance(raised, cl.Error)
        lacking = raised.code in (cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, cl.status_code.OUT_OF_RESOURCES)
        for wanted in (DelegateError, KernelBuildError):
            found = errors.typed(raised, "doing", wanted)
            assert type(found) is (OutOfDeviceMemory if lacking else wanted)
            assert str(found).startswith("doing: routine")
    assert type(errors.typed(MemoryError(), "doing")) is OutOfDeviceMemory
    assert not issubclass(cl.Error, LiteclError)
