"""What stands above back ends, tested with one in numpy: regions, states, faults, reports, resizes; without OpenCL."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.backend import fork
from litecl.delegate.backend.protocols import FoundDevice
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, OutOfDeviceMemory
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import EXP
from support.build import Graph, model, randn
from support.fake_backend import FakeDevice
from support.fault_models import RNG, Session, Subject, assert_right, expected, raises, run, small, subjects
from support.interrupts import interrupted, no_hang

SUBJECTS = {subject.name: subject for subject in subjects()}
SHARED = pytest.mark.parametrize("shared", [False, True], ids=["apart", "shared"])


def delegated(subject: Subject, device: FakeDevice, **options: Any) -> Session:
    return Session(subject, [CLDelegate(device, cache_dir=None, **subject.options, **options)])


def assert_steps(session: Session, name: str, first: int = 0) -> None:
    """Do everything that is done with a model and compare it with the interpreter alone."""
    for step, arrays in [*zip(session.steps(), expected(name), strict=True)][first:]:
        for got, wanted in zip(step(), arrays, strict=True):
            np.testing.assert_array_equal(got, wanted)


def failing(numbers: range, error: Callable[[], BaseException]) -> Callable[[int, str], None]:
    """Return what fails some calls of a device."""

    def fail(number: int, name: str) -> None:
        if number in numbers:
            raise error()

    return fail


def test_the_fake_is_a_device() -> None:
    assert isinstance(FakeDevice(small()), FoundDevice)


@SHARED
@pytest.mark.parametrize("gpu", [False, True], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_what_runs_on_a_device(name: str, gpu: bool, shared: bool) -> None:
    """Outputs and variables are the interpreter's, and the report says what the device did."""
    subject = SUBJECTS[name]
    device = FakeDevice(subject.model, shared=shared, gpu=gpu)
    session = delegated(subject, device, strict=True, profile=True)
    assert_steps(session, name)
    told = session.interpreter.delegation_report()
    assert told.device == "fake"
    assert told.claimed >= len(told.nodes) - 1
    assert not told.warnings
    assert told.counters.kernel_launches == sum(row.launches for row in told.partitions) == len(told.kernels)
    assert told.counters.host_syncs == len(told.partitions)
    assert {row.duration_ms for row in told.kernels} <= {1.0}
    assert device.calls.count("bind") == device.calls.count("save") == device.calls.count("check")
    assert ("upload" in device.calls) == ("download" in device.calls) == bool(told.partitions and not shared)


def test_the_calls_of_an_invoke() -> None:
    """Inputs, launches, outputs, one wait; states stay on the device."""
    subject = SUBJECTS["lstm"]
    device = FakeDevice(subject.model)
    session = delegated(subject, device)
    session.interpreter.allocate_tensors()
    assert device.calls == ["open", "bind", "allocate"]
    told = []
    for k in range(2):
        device.calls.clear()
        session.invoke(k)
        told.append(list(device.calls))
    assert told[0] == ["check", "upload", "upload", "upload", "run", "download", "finish", "save"]
    assert told[1] == ["upload", "run", "download", "finish"]
    device.calls.clear()
    session.variables()
    session.variables()
    assert device.calls == ["download", "finish"] * 2  # read once


@SHARED
@pytest.mark.parametrize("name", ["lstm", "two LSTMs"])
def test_variables_that_the_host_sets_and_resets(name: str, shared: bool) -> None:
    subject = SUBJECTS[name]
    session, alone = delegated(subject, FakeDevice(subject.model, shared=shared)), Session(subject, [])
    for each in (session, alone):
        each.interpreter.allocate_tensors()
    for k, change in product(range(3), ("none", "set", "reset")):
        for each in (session, alone):
            if change == "set":
                value = np.full_like(each.interpreter.get_tensor(each._variables[0]), 0.25)
                each.interpreter.set_tensor(each._variables[0], value)
            elif change == "reset":
                each.interpreter.reset_all_variables()
        for got, wanted in zip(session.invoke(k), alone.invoke(k), strict=True):
            np.testing.assert_array_equal(got, wanted)
    for got, wanted in zip(session.variables(), alone.variables(), strict=True):
        np.testing.assert_array_equal(got, wanted)


_ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: DelegateError("on purpose"),
    lambda: OutOfDeviceMemory("on purpose"),
    MemoryError,
)


@SHARED
@pytest.mark.parametrize("name", ["image", "two LSTMs", "loop"])
def test_any_call_that_fails(name: str, shared: bool) -> None:
    """The CPU continues where the device stopped, with variables as they were, and the report says so."""
    subject = SUBJECTS[name]
    sound = FakeDevice(subject.model, shared=shared)
    assert_steps(delegated(subject, sound), name)
    for number, name_ in enumerate(sound.calls):
        if name_ == "save":
            continue
        error = _ERRORS[number % len(_ERRORS)]
        device = FakeDevice(subject.model, shared, failing(range(number, number + 1), error))
        session = delegated(subject, device)
        assert_steps(session, name)
        told = session.interpreter.delegation_report()
        read_again = name_ in ("download", "finish") and not {"run", "save"} & {*sound.calls[number:]}
        assert told.warnings or read_again, (number, name_)
        assert str(told).startswith("WARNING") == bool(told.warnings)


@SHARED
def test_any_call_that_is_interrupted_or_strict(shared: bool) -> None:
    """Callers that catch the error find variables as they were, and can repeat the call."""
    subject = SUBJECTS["lstm"]
    sound = FakeDevice(subject.model, shared=shared)
    assert_steps(delegated(subject, sound), "lstm")
    errors: tuple[type[BaseException], ...] = (KeyboardInterrupt, DelegateError)
    for number, error in product(range(len(sound.calls)), errors):
        if sound.calls[number] == "save":
            continue
        device = FakeDevice(subject.model, shared, failing(range(number, number + 1), error))
        session = delegated(subject, device, strict=True)
        heard = 0
        for step, arrays in zip(session.steps(), expected("lstm"), strict=True):
            try:
                got = step()
            except error:
                heard += 1
                assert device.calls[number] == "finish" or not any(device.queues)  # memory is about to be used again
                got = step()
            for value, wanted in zip(got, arrays, strict=True):
                np.testing.assert_array_equal(value, wanted)
        assert heard <= 1


def test_a_state_that_cannot_be_read_is_still_there() -> None:
    subject, wanted = SUBJECTS["lstm"], expected("lstm")
    device = FakeDevice(subject.model)
    session = delegated(subject, device)
    *steps, last = session.steps()
    for step in steps:
        step()
    device.fail = failing(range(10**9), lambda: OutOfDeviceMemory("on purpose"))
    with pytest.raises(OutOfDeviceMemory, match=r"reading variable .*on purpose"):
        last()
    device.fail = failing(range(0), DelegateError)
    for got, right in zip(last(), wanted[-1], strict=True):
        np.testing.assert_array_equal(got, right)


def test_other_shapes_get_the_device_again() -> None:
    """A device that failed while it ran is opened anew, unless memory was all that it lacked."""
    for error, opened in ((DelegateError, 2), (OutOfDeviceMemory, 1)):
        model_ = small()
        device = FakeDevice(model_)
        interpreter = Interpreter(model_, delegates=[CLDelegate(device)])
        interpreter.allocate_tensors()
        device.fail = lambda number, name, error=error: raises(error("on purpose"))() if name == "run" else None
        assert_right(interpreter)
        told = interpreter.delegation_report()
        assert told.failures == ("on purpose",)
        assert not told.claimed
        assert {row.reason for row in told.nodes} == {"device failure: on purpose"}
        device.fail = failing(range(0), DelegateError)
        interpreter.resize_tensor_input(0, (3, 5))
        interpreter.allocate_tensors()
        x = randn(RNG, 3, 5)
        np.testing.assert_allclose(run(interpreter, x), np.exp(x) + x, rtol=1e-6)
        assert interpreter.delegation_report().claimed == 2
        assert device.calls.count("open") == opened


def test_shared_memory_is_lent_and_never_overwritten_while_it_is_read() -> None:
    model_ = small()
    interpreter = Interpreter(model_, delegates=[CLDelegate(FakeDevice(model_, shared=True))])
    interpreter.allocate_tensors()
    feeds = [randn(RNG, 2, 5) for _ in range(3)]
    results = [run(interpreter, x) for x in feeds]
    for x, result in zip(feeds, results, strict=True):
        np.testing.assert_allclose(result, np.exp(x) + x, rtol=1e-6)
    counters = interpreter.delegation_report().counters
    assert (counters.bytes_to_device, counters.bytes_to_host) == (0, 0)


def test_an_output_that_is_an_input_stays_while_the_next_input_is_set() -> None:
    g = Graph()
    x = g.input((2, 5))
    turned = g.op(RESHAPE, [x, g.const(np.array([5, 2], np.int32))], ReshapeOptions((5, 2)))
    model_ = model(g.build(g.op(EXP, [x], NoOptions()), turned))
    interpreter = Interpreter(model_, delegates=[CLDelegate(FakeDevice(model_, shared=True))])
    interpreter.allocate_tensors()
    first, second = randn(RNG, 2, 5), randn(RNG, 2, 5)
    run(interpreter, first)
    interpreter.set_tensor(x, second)
    np.testing.assert_array_equal(interpreter.get_tensor(turned), first.reshape(5, 2))


def test_a_fork_that_a_signal_interrupts_leaves_no_lock_behind() -> None:
    """Python ignores an error in the first step of a fork, and continues with the last."""

    class Interrupting:
        def acquire(self, *, blocking: bool) -> bool:
            raise KeyboardInterrupt

    process = fork._Process()
    users = [SimpleNamespace(lock=threading.Lock(), needs_runtime=False, needs_threads=False) for _ in range(9)]
    users[4].lock = Interrupting()
    process.users = users  # type: ignore[assignment]  # in this order
    with pytest.raises(KeyboardInterrupt):
        process.before()
    process.in_parent()
    assert not any(user.lock.locked() for user in users if isinstance(user.lock, type(threading.Lock())))
    assert not process.lock._is_owned()  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_ctrl_c_anywhere_in_a_fork_leaves_no_lock_behind() -> None:
    section, parent = fork.Section(), os.getpid()
    section.lock = threading.Lock()

    def forked() -> None:
        if child := os.fork():
            os.waitpid(child, 0)
        else:
            os._exit(0)

    with no_hang(60):
        for number in count():
            outcome = interrupted(forked, number)
            if os.getpid() != parent:
                os._exit(0)
            assert not section.lock.locked() and not fork._process.lock._is_owned()  # type: ignore[attr-defined]
            if outcome == "returned":
                break
    assert number > 10


def test_what_a_child_of_fork_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """States in memory that the host can't see are lost with the device; devices without threads keep working."""
    subject = SUBJECTS["lstm"]
    for needs_threads in (False, True):
        device = FakeDevice(subject.model, needs_threads=needs_threads)
        session = delegated(subject, device)
        session.interpreter.allocate_tensors()
        session.invoke(0)
        with monkeypatch.context() as child:
            child.setattr(fork._process, "forked", True)
            if not needs_threads:
                assert session.variables()
                continue
            with pytest.raises(DelegateError, match="forked"):
                session.variables()
            interpreter = delegated(subject, device).interpreter
            interpreter.allocate_tensors()
            assert "forked" in interpreter.delegation_report().failures[0]


@pytest.mark.long
def test_all_of_this_needs_no_opencl() -> None:
    """Where pyopencl cannot be imported regions still run on another back end, and a user's model on the processor's
    own, or without a compiler on the CPU.
    """
    program = (
        "import sys; sys.modules['pyopencl'] = None\n"
        "import pytest\n"
        "some = ['-k', 'calls_of_an_invoke or other_shapes']\n"
        f"code = pytest.main(['-q', '-p', 'no:cacheprovider', {__file__!r}, *some])\n"
        "from litecl.delegate.native import compiler\n"
        "from support.fault_models import assert_right, prepared, small\n"
        "if compiler.found() is not None:\n"
        "    assert_right(interpreter := prepared(small()))\n"
        "    assert interpreter.delegation_report().device == 'native'\n"
        "compiler.found = lambda directory=None: None\n"
        "assert_right(interpreter := prepared(small()))\n"
        "assert 'OpenCL cannot be used' in interpreter.delegation_report().failures[0]\n"
        "sys.exit(code)\n"
    )
    tests = Path(__file__).parents[1]
    path = os.pathsep.join(filter(None, (str(tests), os.environ.get("PYTHONPATH"))))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=tests.parent, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
