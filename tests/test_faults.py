"""Devices, files and users that fail at the worst moment: a right answer or a typed error, told to whoever looks.

``PYTHONPATH=tests python -m tools.fault_injection`` fails every OpenCL call of every model and mode, which takes long.
"""

import errno
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from build import Graph, model, randn
from devices import as_on_a_gpu
from litecl.delegate import CLDelegate, capabilities, device, disk, opening, programs, report
from litecl.delegate.device import devices
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, KernelBuildError, LiteclError, OutOfDeviceMemory
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.writer import write_file
from tools import opencl_seam
from tools.fault_injection import MODES, Place, Session, expected, judge, places
from tools.fault_models import Subject, subjects
from tools.opencl_seam import Seam, installed

RNG = np.random.default_rng(3)
SUBJECTS = {subject.name: subject for subject in subjects()}


def small() -> Model:
    """EXP and ADD: a region of one launch."""
    g = Graph()
    x = g.input((2, 5))
    return model(g.build(g.op(ADD, [g.op(EXP, [x], NoOptions()), x], AddOptions())))


def run(interpreter: Interpreter, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def prepared(model_: Model, **options: Any) -> Interpreter:
    interpreter = Interpreter(model_, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    return interpreter


def assert_right(interpreter: Interpreter) -> None:
    x = randn(RNG, 2, 5)
    np.testing.assert_allclose(run(interpreter, x), np.exp(x) + x, rtol=1e-5)


# OpenCL calls


_KINDS = 4  # of calls that are tried in a combination, others in others


def sample(subject: Subject, mode: str, strict: bool) -> list[Place]:
    """The last call of each of a few names."""
    by_name = {place.name: place for place in places(subject, mode, strict)}
    start = [*product(SUBJECTS, MODES)].index((subject.name, mode)) + strict
    return [*by_name.values()][start % 7 :: 7][:_KINDS]


_COMBINATIONS = [
    *(("image", "threads", False), ("lstm", "gpu", True), ("two LSTMs", "profile", False)),
    *(("limited loop", "one thread", False), ("loop", "queued", True)),
    *(("quantized", "threads", True), ("integer LSTM", "one thread", False)),
]


@pytest.mark.parametrize(("name", "mode", "strict"), _COMBINATIONS)
def test_a_call_that_fails(name: str, mode: str, strict: bool) -> None:
    wrong = {str(place): text for place in sample(SUBJECTS[name], mode, strict) if (text := judge(place))}
    assert not wrong


def test_states_change_all_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the host does not see device memory, states are copied by commands, each of which may fail."""
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
        broken.setattr(cl, "enqueue_copy", _raise(opencl_seam.error(1, "enqueue_copy")))
        with pytest.raises(OutOfDeviceMemory, match="reading variable"):
            steps[-1]()
    for got, right in zip(steps[-1](), wanted[-1], strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


def _raise(error: BaseException) -> Callable[..., Any]:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fails


def _fails_on_purpose(*args: Any, **kwargs: Any) -> Any:
    raise opencl_seam.error(2, "a call")


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


def test_a_device_that_failed_is_tried_again_for_other_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = prepared(small())
    with monkeypatch.context() as broken:
        broken.setattr(cl, "enqueue_nd_range_kernel", _fails_on_purpose)
        assert_right(interpreter)
    assert_right(interpreter)
    assert not interpreter.delegation_report().claimed
    assert opening._DEVICES == {} or not interpreter.delegation_report().partitions
    interpreter.resize_tensor_input(0, (3, 5))
    interpreter.allocate_tensors()
    x = randn(RNG, 3, 5)
    np.testing.assert_allclose(run(interpreter, x), np.exp(x) + x, rtol=1e-5)
    assert interpreter.delegation_report().claimed == 2


# What is told


def test_the_report_begins_with_what_went_wrong(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(report, "_said", set())
    broken = RuntimeError("[/bold] a[3]: 7 errors\nx.cl:1: error: [unknown] type")
    monkeypatch.setattr(programs.Programs, "kernel", _raise(KernelBuildError(str(broken))))
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
    monkeypatch.setattr(report, "_said", set())
    subject = SUBJECTS["lstm"]
    row = prepared(subject.model).delegation_report().partitions[0]
    assert (row.manner.runs, row.manner.fault) == ("one kernel", "")
    monkeypatch.setattr(programs.Programs, "region_kernel", _raise(KernelBuildError("no linker")))
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
        (lstm, {"profile": True}, "queued (profile=True)"),
        (lstm, {"queue_loops": True}, "queued (queue_loops=True)"),
        (small(), {}, "queued (fewer than 4 launches)"),
    ):
        told = prepared(model_, **options).delegation_report()
        if device.target_of(devices()[0]).kind == "cpu":
            assert str(told.partitions[0].manner) == manner
            assert f"1 region {manner}" in str(told)


def test_a_device_that_builds_nothing_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(devices()) < 2:
        pytest.skip("needs two devices")
    first = device.choose(None, 1, 0.0)
    real = capabilities.capabilities
    monkeypatch.setattr(opening, "_DEVICES", {})
    monkeypatch.setattr(
        device, "capabilities",
        lambda opened, *rest: _raise(KernelBuildError("nothing builds"))() if opened == first else real(opened, *rest),
    )
    interpreter = prepared(small(), num_threads=1)
    told = interpreter.delegation_report()
    assert told.device != first.name
    assert told.claimed == 2
    assert told.warnings == (f"device passed over: {first.name}: nothing builds",)
    assert_right(interpreter)
    for options in ({"strict": True}, {"strict": True, "device": first}):
        with pytest.raises(KernelBuildError, match="nothing builds"):
            prepared(small(), num_threads=1, **options)


# Files


def _flipped(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 4]) + content[-8:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"", lambda c: c[:50], lambda c: c[: len(c) // 2], _flipped,
        lambda c: RNG.bytes(len(c)), lambda c: c[41:],
    ],
    ids=["empty", "a header", "half", "one bit", "random", "unsealed"],
)
def test_a_damaged_binary_is_built_again(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    assert_right(prepared(small(), cache_dir=tmp_path))
    kept = {path: path.read_bytes() for path in tmp_path.glob("*.bin")}
    for path, content in kept.items():
        path.write_bytes(damage(content))
    for path in tmp_path.glob("*.json"):
        path.write_bytes(damage(path.read_bytes()))
    opening._DEVICES.clear()
    capabilities._known.clear()
    interpreter = prepared(small(), cache_dir=tmp_path)
    assert_right(interpreter)
    told = interpreter.delegation_report()
    assert (told.claimed, told.cache_hits, told.warnings) == (2, 0, ())
    assert {path: disk.read_sealed(path) is not None for path in kept} == dict.fromkeys(kept, True)


def test_a_binary_under_another_name_is_not_taken(tmp_path: Path) -> None:
    disk.write_sealed(tmp_path / "a.bin", b"for one device")
    assert disk.read_sealed(tmp_path / "a.bin") == b"for one device"
    (tmp_path / "a.bin").rename(tmp_path / "b.bin")
    assert disk.read_sealed(tmp_path / "b.bin") is None


def test_a_folder_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", _raise(PermissionError(errno.EACCES, "not yours")))
    interpreter = prepared(small(), cache_dir=tmp_path)
    assert_right(interpreter)
    assert not interpreter.delegation_report().warnings


def test_a_disk_that_is_full_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """A file that takes nothing."""

        def __init__(self, *, dir: Path, delete: bool) -> None:
            self._path = dir / "temporary"
            self.name = str(self._path)
            self._path.write_bytes(b"half")

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *raised: object) -> None: ...

        def write(self, content: bytes) -> None:
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", Full)
    assert_right(prepared(small(), cache_dir=tmp_path))
    assert not list(tmp_path.iterdir())


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", _raise(RuntimeError("Could not determine home directory.")))
    assert disk.folder("auto") is None
    assert_right(prepared(small()))
    with pytest.raises(DelegateError, match="home"):
        disk.default_folder()


_SCRIPT = """
import resource, sys
how, cache_dir = sys.argv[1:]
if how == "limited": resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
import numpy as np
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
interpreter = Interpreter("model.tflite", delegates=[CLDelegate(num_threads=1, cache_dir=cache_dir)])
if how == "cut": open("model.tflite", "r+b").truncate(100)
interpreter.allocate_tensors()
interpreter.set_tensor(0, np.ones((2, 5), np.float32))
interpreter.invoke()
(output,) = interpreter.get_output_details()
np.testing.assert_allclose(interpreter.get_tensor(output["index"]), np.float32(np.e + 1), rtol=1e-5)
alone = Interpreter("other.tflite")
if how == "cut": open("other.tflite", "r+b").truncate(100)
alone.allocate_tensors()
alone.invoke()
print(interpreter.delegation_report().claimed)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of processes")
@pytest.mark.parametrize(("how", "claimed"), [("no home", 2), ("limited", 0), ("cut", 2)], ids=lambda value: value)
def test_a_process_of_its_own(how: str, claimed: int, tmp_path: Path) -> None:
    """No home that can be written, a limit on files that PoCL's compiler would not survive, models cut off in use."""
    write_file(small(), tmp_path / "model.tflite")
    g = Graph()
    weights = randn(RNG, 20_000)
    write_file(model(g.build(g.op(ADD, [g.input((1,)), g.const(weights)], AddOptions()))), tmp_path / "other.tflite")
    kept = disk.default_folder()
    assert_right(prepared(small(), num_threads=1, cache_dir=kept))
    environment = {key: value for key, value in os.environ.items() if key not in ("XDG_CACHE_HOME", "POCL_CACHE_DIR")}
    if how == "no home":
        environment["HOME"] = "/proc/nowhere"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, how, str(kept)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == claimed
    assert ("fell back" in done.stderr or "its device failed" in done.stderr) == (claimed == 0)


def test_every_error_is_typed() -> None:
    """What the seam raises is what pyopencl raises: no error of Python's own passes for one of a device."""
    for kind in range(4):
        assert isinstance(opencl_seam.error(kind, "routine"), cl.Error)
    assert not issubclass(cl.Error, LiteclError)
