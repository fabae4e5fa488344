"""Which device a model gets, of whatever back end, tested with one in numpy."""

import pytest

from litecl.delegate import CLDelegate, devices
from litecl.delegate.backend.errors import NoRuntime
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, KernelBuildError
from litecl.perf.devices import device_rows
from support.fake_backend import FakeBackend, FakeDevice
from tools.fault_models import assert_right, raises, small


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
