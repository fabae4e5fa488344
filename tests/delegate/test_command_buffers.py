"""Launches recorded in a command buffer: the same results, by the driver's extension and by one that is emulated."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.opencl.devices import device
from litecl.delegate.opencl.runs import execution
from litecl.delegate.opencl.runs.recordings import command_buffer, recorder
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, ModelError
from litecl.interpreter.graph import Array, Model
from support import devices
from support.build import randn
from support.command_buffers import Emulated, emulated
from support.loop_models import outputs, prepared
from support.queued_models import branches, counted, deep, limited, nested, sums, twice
from tools.fault_models import Session, expected, subjects

RNG = np.random.default_rng(6)
SUBJECTS = {subject.name: subject for subject in subjects()}
AT_ONCE = "queued at once (the device is not a CPU)"
AHEAD = "queued under a flag on the device, up to 16 iterations ahead, each at once"
NOT_A_GPU = device.target_of
RECORDING = ("clCreateCommandBufferKHR", "clCommandNDRangeKernelKHR", "clFinalizeCommandBufferKHR")


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates that take the first device for a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        yield devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))


@pytest.fixture(params=["emulated", "driver"])
def extension(request: pytest.FixtureRequest) -> Iterator[Emulated | None]:
    """The emulated extension, or None with the driver's."""
    if request.param == "driver" and not command_buffer.is_listed(devices.tested()[0]):
        pytest.skip(f"{devices.tested()[0].name} has no {command_buffer.EXTENSION}")
    with emulated() if request.param == "emulated" else nullcontext() as made:
        yield made


def manner(interpreter: Interpreter) -> str:
    return str(interpreter.delegation_report().partitions[0].manner)


def runs(
    model_: Model, feeds: Sequence[Sequence[Array]], delegate: CLDelegate
) -> tuple[list[Array], str, DelegationReport]:
    """Return the outputs of several invokes, how the first region ran, and the report."""
    interpreter, found = prepared(model_, feeds[0], [delegate]), []
    for each in feeds:
        for detail, value in zip(interpreter.get_input_details(), each, strict=True):
            interpreter.set_tensor(detail["index"], value)
        found += [output.copy() for output in outputs(interpreter)]
    return found, manner(interpreter), interpreter.delegation_report()


@pytest.mark.parametrize("name", [*SUBJECTS][:-1])  # the integer LSTM compiles for too long
def test_what_is_recorded_computes_the_same(
    name: str, options: dict[str, Any], extension: Emulated | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit, over invokes in which states take turns, and in what the report counts."""
    if "loop" in name:
        devices.needs_groups()
    subject, found = SUBJECTS[name], []
    for recorder_of in (recorder.recorder_of, lambda opened: None):
        monkeypatch.setattr(execution, "recorder_of", recorder_of)
        session = Session(subject, [CLDelegate(**options, **subject.options, strict=True)])
        results = [step() for step in session.steps()]
        told = session.interpreter.delegation_report()
        found.append((results, told.counters, {row.manner.runs for row in told.partitions}))
    (recorded, counters, how), (plain, plain_counters, plain_how) = found
    assert (how, plain_how) == ({"queued at once"}, {"queued"})
    assert counters == plain_counters
    for step, others, wanted in zip(recorded, plain, expected(name), strict=True):
        for got, other, right in zip(step, others, wanted, strict=True):
            np.testing.assert_array_equal(got, other)
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "feeds", "wanted"),
    [
        (lambda: counted(7), [[randn(RNG, 5)], [randn(RNG, 5)]], "queued at once"),
        (branches, [[sign * np.abs(randn(RNG, 400, 40))] for sign in (1, -1, 1)], "queued at once"),
        (lambda: counted(65), [[randn(RNG, 5)]], "queued, exactly 65 iterations, each at once"),
        (limited, [[randn(RNG, 9)], [randn(RNG, 9, scale=1e8)]], AHEAD),
        (twice, [[randn(RNG, 9)], [randn(RNG, 9, scale=1e3)]], AHEAD),
        (nested, [[randn(RNG, 9)], [randn(RNG, 9, scale=1e3)]], AHEAD),
        (deep, [[randn(RNG, 9)], [randn(RNG, 9, scale=1e3)]], AHEAD),
    ],
    ids=["counted", "branches", "counted long", "unknown", "two", "nested", "deep"],
)
def test_loops_and_branches_launch_by_launch(
    make: Callable[[], Model],
    feeds: list[list[Array]],
    wanted: str,
    options: dict[str, Any],
    extension: Emulated | None,
) -> None:
    """What the host decides nothing of is recorded: whole regions, or else the iterations of loops."""
    model_ = make()
    got, how, told = runs(model_, feeds, CLDelegate(**options, strict=True, queue_loops=True))
    right = [output for each in feeds for output in outputs(prepared(model_, each, []))]
    assert how.startswith(wanted) or (
        how.startswith("queued (") and any(line.endswith(wanted) for line in told.partitions[0].loops)
    )
    for a, b in zip(got, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "recorder_of", lambda opened: None)
        plain, _, others = runs(model_, feeds, CLDelegate(**options, strict=True, queue_loops=True))
    for a, b in zip(got, plain, strict=True):
        np.testing.assert_array_equal(a, b)
    if wanted is not AHEAD:  # how far ahead is a matter of time
        assert told.counters.kernel_launches == others.counters.kernel_launches


def test_one_call_an_invoke(options: dict[str, Any]) -> None:
    with emulated() as made:
        interpreter = prepared(sums(), [randn(RNG, 3, 40)], [CLDelegate(**options, strict=True)])
        before = made.queued
        for count in (1, 2, 3):
            interpreter.invoke()
            assert made.queued == before + count
        counters = interpreter.delegation_report().counters
        assert (counters.kernel_launches, counters.host_syncs) == (12, 1)
        assert len(made.live) == 1
        del interpreter
        gc.collect()
        assert not made.live


def test_too_many_iterations(options: dict[str, Any]) -> None:
    """A loop that is too long is an error of the run, not of what is prepared for it."""
    with emulated():
        delegate = CLDelegate(**options, strict=True, queue_loops=True, max_loop_iterations=5)
        interpreter = prepared(counted(9), [randn(RNG, 5)], [delegate])
        with pytest.raises(ModelError, match="5 iterations"):
            interpreter.invoke()


def test_iterations_that_must_not_overlap_are_not_recorded(options: dict[str, Any]) -> None:
    with emulated(overlaps=False) as made:
        delegate = CLDelegate(**options, strict=True, queue_loops=True)
        got, how, told = runs(limited(), [[randn(RNG, 9)]], delegate)
    assert how.startswith("queued (") and "at once" not in told.partitions[0].loops[0]
    assert all(np.isfinite(x).all() for x in got) and made.queued == 2  # in the trial


def test_an_iteration_that_is_refused_is_told(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x = randn(RNG, 9)
    right = outputs(prepared(limited(), [x], []))
    monkeypatch.setattr(recorder, "_is_right", lambda *given: True)
    with emulated(refused="clFinalizeCommandBufferKHR"):
        interpreter = prepared(limited(), [x], [CLDelegate(**options, queue_loops=True)])
        np.testing.assert_allclose(outputs(interpreter), right, rtol=1e-6)
        assert "clFinalizeCommandBufferKHR" in interpreter.delegation_report().warnings[0]
        assert "at once" not in interpreter.delegation_report().partitions[0].loops[0]


@pytest.mark.parametrize("refused", RECORDING)
def test_what_a_driver_refuses_is_told(refused: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x = randn(RNG, 3, 40)
    right = outputs(prepared(sums(), [x], []))
    with emulated() as made:
        prepared(sums(), [x], [CLDelegate(**options, strict=True)])  # the trial of the extension is long over
        made.refused = refused
        interpreter = prepared(sums(), [x], [CLDelegate(**options)])
        got, told = outputs(interpreter), interpreter.delegation_report()
        assert manner(interpreter).startswith("queued, because it could not be recorded: recording launches: ")
        assert refused in told.warnings[0]
        with pytest.raises(DelegateError, match=refused):
            prepared(sums(), [x], [CLDelegate(**options, strict=True)])
    np.testing.assert_allclose(got, right, rtol=1e-5)
    assert told.claimed and not told.failures


def test_what_cannot_be_tried_is_told_and_tried_again(options: dict[str, Any]) -> None:
    x = randn(RNG, 3, 40)
    with emulated(refused="clEnqueueCommandBufferKHR") as made:
        interpreter = prepared(sums(), [x], [CLDelegate(**options)])
        assert "clEnqueueCommandBufferKHR" in interpreter.delegation_report().warnings[0]
        made.refused = ""
        assert manner(prepared(sums(), [x], [CLDelegate(**options)])) == AT_ONCE


def test_a_recording_that_is_not_right_is_not_used(options: dict[str, Any]) -> None:
    x = randn(RNG, 3, 40)
    with emulated(order=lambda commands: [*reversed(commands)]):
        interpreter = prepared(sums(), [x], [CLDelegate(**options, strict=True)])
        got = outputs(interpreter)
        told = interpreter.delegation_report()
    assert "does not run a command buffer as it was recorded" in manner(interpreter)
    assert manner(interpreter).startswith("queued (the device is not a CPU; ") and not told.warnings
    np.testing.assert_allclose(got, outputs(prepared(sums(), [x], [])), rtol=1e-5)


def test_a_recording_that_cannot_be_queued_falls_back(options: dict[str, Any]) -> None:
    x = randn(RNG, 3, 40)
    with emulated() as made:
        interpreter = prepared(sums(), [x], [CLDelegate(**options)])
        made.refused = "clEnqueueCommandBufferKHR"
        got = outputs(interpreter)
        assert "clEnqueueCommandBufferKHR" in interpreter.delegation_report().failures[0]
    np.testing.assert_allclose(got, outputs(prepared(sums(), [x], [])), rtol=1e-5)


def test_profiles_are_of_launches(options: dict[str, Any]) -> None:
    with emulated() as made:
        interpreter = prepared(sums(), [randn(RNG, 3, 40)], [CLDelegate(**options, strict=True, profile=True)])
        interpreter.invoke()
        assert len(interpreter.delegation_report().kernels) == 12 and not made.queued


@pytest.mark.opencl
def test_a_cpu_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    if devices.tested()[0].type & cl.device_type.GPU:
        pytest.skip("needs a CPU device")
    monkeypatch.setattr(device, "target_of", NOT_A_GPU)
    with emulated() as made:
        delegate = CLDelegate(num_threads=2, queue_loops=True, strict=True)
        assert manner(prepared(sums(), [randn(RNG, 3, 40)], [delegate])) == "queued (queue_loops=True)"
    assert not made.queued


class _Untold:
    """A device of before OpenCL 3.0, which tells no versions."""

    extensions = f"cl_khr_fp64 {command_buffer.EXTENSION}"

    @property
    def extensions_with_version(self) -> Any:
        raise cl.LogicError("clGetDeviceInfo failed: INVALID_VALUE")


def test_versions_whose_functions_are_known() -> None:
    """0.9.0, 0.9.4 and 1.0.0, and where a driver does not tell; not a version 2 that nobody has seen."""
    for version, known in ((0x9000, True), (0x9004, True), (0x400000, True), (0x800000, False)):
        told = [SimpleNamespace(name=command_buffer.EXTENSION, version=version)]
        told_by = SimpleNamespace(extensions=command_buffer.EXTENSION, extensions_with_version=told)
        assert command_buffer.is_listed(told_by) is known
    assert command_buffer.is_listed(_Untold())
    assert not command_buffer.is_listed(SimpleNamespace(extensions=f"{command_buffer.EXTENSION}_multi_device"))
