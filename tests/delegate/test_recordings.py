"""Launches recorded as Qualcomm's drivers do it: the same results, by an extension that is emulated."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.opencl.runs import execution
from litecl.delegate.opencl.runs.recordings import qualcomm
from litecl.delegate.opencl.runs.recordings.qualcomm import FUNCTIONS, LAUNCH
from litecl.interpreter.errors import DelegateError
from support import devices
from support.build import randn
from support.command_buffers import emulated
from support.loop_models import outputs, prepared
from support.queued_models import limited, sums
from support.recordings import recordable
from tools.fault_models import Session, expected, subjects

RNG = np.random.default_rng(7)
SUBJECTS = {subject.name: subject for subject in subjects()}
LAUNCHES = 12  # of a chain of six


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates that take the first device for a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        yield devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))


def manner(interpreter: Any) -> str:
    return str(interpreter.delegation_report().partitions[0].manner)


@pytest.mark.parametrize("name", [*SUBJECTS][:-1])  # the integer LSTM compiles for too long
def test_what_is_recorded_computes_the_same(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit, in recordings of three kernels at most, over invokes in which states take turns."""
    if "loop" in name:
        devices.needs_groups()
    subject, found = SUBJECTS[name], []
    with recordable(most=3) as made:
        for recorder in (execution.recorder_of, lambda opened: None):
            monkeypatch.setattr(execution, "recorder_of", recorder)
            session = Session(subject, [CLDelegate(**options, **subject.options, strict=True)])
            results = [step() for step in session.steps()]
            found.append((results, session.interpreter.delegation_report().counters))
            found[-1] += ({row.manner.runs for row in session.interpreter.delegation_report().partitions},)
    (recorded, counters, how), (plain, plain_counters, plain_how) = found
    assert (how, plain_how) == ({"queued at once"}, {"queued"}) and made.queued
    assert counters == plain_counters
    for step, others, wanted in zip(recorded, plain, expected(name), strict=True):
        for got, other, right in zip(step, others, wanted, strict=True):
            np.testing.assert_array_equal(got, other)
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


def test_as_many_calls_as_recordings(options: dict[str, Any]) -> None:
    for most, calls in ((LAUNCHES, 1), (LAUNCHES - 1, 2), (5, 3)):
        with recordable(most=most) as made:
            interpreter = prepared(sums(), [randn(RNG, 3, 40)], [CLDelegate(**options, strict=True)])
            before = made.queued
            interpreter.invoke()
            assert made.queued == before + calls
            counters = interpreter.delegation_report().counters
            assert (counters.kernel_launches, counters.host_syncs, len(made.live)) == (LAUNCHES, 1, calls)
            del interpreter
            gc.collect()
            assert not made.live


def test_few_launches_are_not_worth_it(options: dict[str, Any]) -> None:
    for least, runs in ((LAUNCHES + 1, "queued (the device"), (LAUNCHES, "queued at once (")):
        with recordable(least=least):
            interpreter = prepared(sums(), [randn(RNG, 3, 40)], [CLDelegate(**options, strict=True)])
            assert manner(interpreter).startswith(runs)


def test_iterations_are_not_recorded(options: dict[str, Any]) -> None:
    """Nothing says that a recording may be queued again before it has ended."""
    with recordable() as made:
        delegate = CLDelegate(**options, strict=True, queue_loops=True)
        interpreter = prepared(limited(), [randn(RNG, 9)], [delegate])
        tried = made.queued
        assert np.isfinite(outputs(interpreter)[0]).all()
        assert made.queued == tried and "at once" not in interpreter.delegation_report().partitions[0].loops[0]


@pytest.mark.parametrize("refused", ["clNewRecordingQCOM", LAUNCH, "clEndRecordingQCOM"])
def test_what_a_driver_refuses_is_told(refused: str, options: dict[str, Any]) -> None:
    x = randn(RNG, 3, 40)
    with recordable() as made:
        prepared(sums(), [x], [CLDelegate(**options, strict=True)])  # the trial of the extension is long over
        made.refused = refused
        interpreter = prepared(sums(), [x], [CLDelegate(**options)])
        got = outputs(interpreter)
        assert manner(interpreter).startswith("queued, because it could not be recorded: recording launches: ")
        assert refused in interpreter.delegation_report().warnings[0]
        with pytest.raises(DelegateError, match=refused):
            prepared(sums(), [x], [CLDelegate(**options, strict=True)])
    np.testing.assert_allclose(got, outputs(prepared(sums(), [x], [])), rtol=1e-5)


def test_a_recording_that_cannot_be_queued_falls_back(options: dict[str, Any]) -> None:
    x = randn(RNG, 3, 40)
    with recordable() as made:
        interpreter = prepared(sums(), [x], [CLDelegate(**options)])
        made.refused = "clEnqueueRecordingQCOM"
        got = outputs(interpreter)
        assert "clEnqueueRecordingQCOM" in interpreter.delegation_report().failures[0]
    np.testing.assert_allclose(got, outputs(prepared(sums(), [x], [])), rtol=1e-5)


def test_a_recording_that_is_not_right_is_not_used(options: dict[str, Any]) -> None:
    x = randn(RNG, 3, 40)
    with recordable(order=lambda commands: [*reversed(commands)]):
        interpreter = prepared(sums(), [x], [CLDelegate(**options, strict=True)])
        assert "does not run a recording as it was recorded" in manner(interpreter)
        np.testing.assert_allclose(outputs(interpreter), outputs(prepared(sums(), [x], [])), rtol=1e-5)


def test_a_driver_that_has_both_records_command_buffers(options: dict[str, Any]) -> None:
    with recordable() as made, emulated() as standard:
        interpreter = prepared(sums(), [randn(RNG, 3, 40)], [CLDelegate(**options, strict=True)])
        interpreter.invoke()
        assert standard.queued and not made.queued


def test_devices_without_it() -> None:
    """Nothing is asked of them, and what they do not know is no error."""
    found = devices.tested()[0]
    assert qualcomm.recorder(found) is None and qualcomm.most_launches(found) == 0
    assert qualcomm.functions_of(found) is None and len(FUNCTIONS) == 4
