"""Which device a model gets, of whatever back end, and one that fails; tested with a back end in numpy."""

import pytest

from litecl.delegate import CLDelegate, devices, progress
from litecl.delegate.backend.errors import NoRuntime
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, KernelBuildError
from litecl.perf.devices import device_rows
from support.fake_backend import FakeBackend, FakeDevice
from support.fault_models import assert_right, raises, small


def _fails(number: int, name: str) -> None:
    raise KernelBuildError("nothing builds")


def test_devices_that_cannot_be_used_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    model_ = small()
    broken = FakeDevice(model_, fail=_fails, name="broken")
    backend = FakeBackend([broken, FakeDevice(model_)])
    monkeypatch.setattr(devices, "BACKENDS", (lambda: backend,))
    interpreter = Interpreter(model_, delegates=[CLDelegate()])
    interpreter.allocate_tensors()
    assert_right(interpreter)
    told = interpreter.delegation_report()
    assert (told.device, told.claimed) == ("fake", 2)
    assert told.warnings == ("device passed over: broken: nothing builds",)
    for options in ({"strict": True}, {"strict": True, "device": "brok"}, {"strict": True, "device": 0}):
        with pytest.raises(KernelBuildError, match="nothing builds"):
            Interpreter(model_, delegates=[CLDelegate(**options)]).allocate_tensors()
    assert [found.name for found in devices.devices()] == ["broken", "fake"]
    assert [(row.index, row.name, row.problem, row.default_for) for row in device_rows()] == [
        (0, "broken", None, ("small models", "large models")),
        (1, "fake", None, ()),
    ]
    monkeypatch.setattr(backend, "found", [])
    with pytest.raises(DelegateError, match="no device"):
        Interpreter(model_, delegates=[CLDelegate(strict=True)]).allocate_tensors()


def test_a_back_end_that_is_missing_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    model_ = small()
    missing = raises(NoRuntime("its library is missing"))
    monkeypatch.setattr(devices, "BACKENDS", (missing, lambda: FakeBackend([FakeDevice(model_)])))
    assert [found.name for found in devices.devices()] == ["fake"]
    interpreter = Interpreter(model_, delegates=[CLDelegate(strict=True)])
    interpreter.allocate_tensors()
    assert_right(interpreter)
    monkeypatch.setattr(devices, "BACKENDS", (missing,))
    for ask in (devices.devices, devices.choose):
        with pytest.raises(DelegateError, match="its library is missing"):
            ask()


def test_models_share_an_open_device() -> None:
    model_ = small()
    device = FakeDevice(model_)
    for _ in range(2):
        Interpreter(model_, delegates=[CLDelegate(device)]).allocate_tensors()
    assert device.calls == ["open", "bind", "allocate", "bind", "allocate"]


def test_other_interpreters_go_on_with_a_device_that_failed() -> None:
    """The one in whose run it failed does not, and the next one opens it anew."""
    model_ = small()
    device = FakeDevice(model_)
    first, second, third = (Interpreter(model_, delegates=[CLDelegate(device)]) for _ in range(3))
    for interpreter in (first, second):
        interpreter.allocate_tensors()
    device.fail = lambda number, name: raises(DelegateError("on purpose"))() if name == "run" else None
    assert_right(first)
    device.fail = lambda number, name: None
    assert_right(second)
    assert [each.delegation_report().claimed for each in (first, second)] == [0, 2]
    assert device.calls.count("open") == 1
    third.allocate_tensors()
    assert device.calls.count("open") == 2


def test_times_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(progress, "_said", set())
    model_ = small()
    device = FakeDevice(
        model_, fail=lambda number, name: raises(DelegateError("too early"))() if name == "times" else None
    )
    for strict in (False, True):
        interpreter = Interpreter(model_, delegates=[CLDelegate(device, profile=True, strict=strict)])
        interpreter.allocate_tensors()
        assert_right(interpreter)
        if strict:
            with pytest.raises(DelegateError, match="too early"):
                interpreter.delegation_report()
        else:
            told = interpreter.delegation_report()
            assert (told.claimed, told.kernels, told.warnings) == (2, (), ())
            assert "region 0 has no times: too early" in caplog.text
