"""Preparing in the background: the CPU runs a model until the device takes over (delegate/warm_up.py)."""

import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.delegation import CLDelegation
from litecl.delegate.native.library import Libraries
from litecl.delegate.progress import tell
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, DeviceNotFound, KernelBuildError
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.random import RANDOM_UNIFORM
from support import devices
from support.build import Graph, model
from support.small_models import chain, lstm, prepared, reference
from support.variable_models import looped

MODES = ({"num_threads": 1}, {"num_threads": 2}, {"num_threads": 1, "queue_loops": True})
GAP_S = 0.005


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Nothing is prepared before this event."""
    opened, prepare = threading.Event(), CLDelegation.prepare

    def waited(delegation: CLDelegation) -> None:
        opened.wait(60)
        prepare(delegation)

    monkeypatch.setattr(CLDelegation, "prepare", waited)
    yield opened
    opened.set()
    _join()


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "litecl warm-up"]


def _join() -> None:
    for thread in _threads():
        thread.join(60)
        assert not thread.is_alive()


def warming(model_: Model, **options: Any) -> Interpreter:
    return prepared(model_, warm_up="background", **options)


def step(interpreter: Interpreter, seed: int) -> list[Array]:
    """One invoke on the inputs of a seed."""
    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], rng.standard_normal(detail["shape"]).astype(detail["dtype"]))
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def assert_same(got: list[Array], wanted: list[Array]) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def report(interpreter: Interpreter) -> DelegationReport:
    return DelegationReport.of(interpreter)


def takes_over(model_: Callable[[], Model], gate: threading.Event, **options: Any) -> DelegationReport:
    """Run a model on the CPU, then on the device, beside another on the CPU alone."""
    content = model_()
    ours, other = warming(content, strict=True, **options), reference(content)
    for seed in range(3):
        assert_same(step(ours, seed), step(other, seed))
    before = report(ours)
    assert before.claimed == 0
    assert before.warm_up is not None
    assert not before.warm_up.ready
    assert before.warm_up.cpu_invokes == 2  # as known at the last one's begin
    assert "warming up: 0 of 0 files" in str(before)
    gate.set()
    _join()
    for seed in range(3, 7):
        assert_same(step(ours, seed), step(other, seed))
    return report(ours)


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("model_", [chain, lstm, lambda: looped(through=True)], ids=["chain", "lstm", "variables"])
def test_the_device_takes_over(model_: Callable[[], Model], options: dict[str, Any], gate: threading.Event) -> None:
    """States and resource variables continue where they were, in a loop too."""
    after = takes_over(model_, gate, **options)
    assert after.claimed == len(after.nodes)
    assert after.warm_up is not None
    assert after.warm_up.ready
    assert after.warm_up.cpu_invokes == 3
    assert "the device runs the model since invoke 4" in str(after)
    assert json.loads(after.to_json())["warm_up"]["cpu_invokes"] == 3


def test_as_on_a_gpu(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    options = devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "warm_up")
    assert takes_over(chain, gate, **options).claimed == 4


def test_states_go_back_to_the_cpu(gate: threading.Event) -> None:
    """Other shapes are prepared anew, with variables as the interpreter would have them without a delegate."""
    content = lstm()
    ours, other = warming(content), reference(content)
    gate.set()
    _join()
    for seed in range(3):
        assert_same(step(ours, seed), step(other, seed))
    assert report(ours).claimed == 1
    for interpreter in (ours, other):
        interpreter.reset_all_variables()
    assert_same(step(ours, 5), step(other, 5))


def test_other_shapes_meanwhile(gate: threading.Event) -> None:
    """Each set of shapes warms up separately, and a ready one is not lost."""
    content = chain()
    ours, other = warming(content), reference(content)
    for rows in (3, 2, 3):
        for interpreter in (ours, other):
            interpreter.resize_tensor_input(0, (rows, 5))
            interpreter.allocate_tensors()
        assert_same(step(ours, rows), step(other, rows))
        assert report(ours).claimed == (4 if gate.is_set() else 0)
        gate.set()
        _join()
    ours.allocate_tensors()
    assert report(ours).claimed == 4


def test_an_input_that_a_caller_writes_into_stays_where_it_is(gate: threading.Event) -> None:
    """TFLite's ``tensor()``, called once."""
    content = chain()
    ours, other = warming(content), reference(content)
    views = [interpreter.tensor(0)() for interpreter in (ours, other)]
    for seed in range(4):
        for interpreter, view in zip((ours, other), views, strict=True):
            view[...] = np.random.default_rng(seed).standard_normal(view.shape)
            interpreter.invoke()
        output = ours.get_output_details()[0]["index"]
        assert_same([ours.get_tensor(output)], [other.get_tensor(output)])
        if seed == 1:
            gate.set()
            _join()
    assert report(ours).claimed == 4


def test_random_numbers_go_on(gate: threading.Event) -> None:
    """Nodes that stay on the CPU don't start over."""
    g = Graph()
    x = g.input((3,))
    numbers = g.op(RANDOM_UNIFORM, [g.const(np.array([3], np.int32))], RANDOM_UNIFORM.options(seed=3, seed2=4))
    content = model(g.build(g.op(ADD, [g.op(ADD, [x, x], AddOptions()), numbers], AddOptions())))
    ours, other = warming(content), reference(content)
    for seed in range(4):
        assert_same(step(ours, seed), step(other, seed))
        if seed == 1:
            gate.set()
            _join()
    assert report(ours).claimed == 2


@pytest.mark.parametrize("strict", [False, True])
def test_a_build_that_fails(strict: bool, gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported and the CPU continues, or the next invoke raises it."""

    def fails(*_: Any, **__: Any) -> Any:
        raise KernelBuildError("on purpose")

    monkeypatch.setattr(Libraries, "region", fails)
    content = chain()
    ours, other = warming(content, strict=strict), reference(content)
    gate.set()
    _join()
    if strict:
        with pytest.raises(KernelBuildError, match="on purpose"):
            step(ours, 0)
        assert "on purpose" in str(report(ours))
        return
    assert_same(step(ours, 0), step(other, 0))
    assert any("on purpose" in warning for warning in report(ours).warnings)


def test_two_interpreters_build_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, built = chain(), []
    content_of = Libraries._content

    def counted(self: Any, units: Any, keys: Any, name: str) -> bytes:
        built.append(name)
        return content_of(self, units, keys, name)

    monkeypatch.setattr(Libraries, "_content", counted)
    pair = [warming(content, num_threads=1, cache_dir=tmp_path) for _ in range(2)]
    _join()
    for interpreter in pair:
        interpreter.allocate_tensors()
        assert report(interpreter).claimed == 4
    assert len(built) == len({*built}) > 0


def test_nothing_is_built_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread ends where its interpreter is gone."""
    begun, gone, ended = threading.Event(), threading.Event(), []

    def prepare(delegation: CLDelegation) -> None:
        begun.set()
        gone.wait(60)
        tell("a file", 0, 2)
        ended.append(delegation)

    monkeypatch.setattr(CLDelegation, "prepare", prepare)
    interpreter = warming(chain())
    assert begun.wait(60)
    interpreter.close()
    gc.collect()
    gone.set()
    _join()
    assert ended == []


def test_a_device_that_is_not_there_raises_at_once() -> None:
    with pytest.raises(DeviceNotFound):
        warming(chain(), device="no such device")


def test_limits_wait() -> None:
    """Preparation counts towards limits, so it happens at once."""
    interpreter = Interpreter(chain(), delegates=[CLDelegate(warm_up="background")], memory_limit=1 << 24)
    interpreter.allocate_tensors()
    assert report(interpreter).warm_up is None
    assert report(interpreter).claimed == 4


def test_the_option_is_checked() -> None:
    with pytest.raises(DelegateError, match="warm_up: expected 'block' or 'background', got 'later'"):
        CLDelegate(warm_up="later")  # type: ignore[arg-type]
    assert CLDelegate.from_strings({"warm_up": "background"}).warm_up == "background"


def test_progress_is_told(tmp_path: Path) -> None:
    """The listener is called in the thread."""
    steps: list[Any] = []
    interpreter = warming(chain(), num_threads=1, cache_dir=tmp_path, progress=lambda done: steps.append(done))
    end_s = time.monotonic() + 60
    while not (told := report(interpreter).warm_up) or not told.ready:
        assert time.monotonic() < end_s
        time.sleep(GAP_S)
        interpreter.allocate_tensors()
    assert steps[-1].done == steps[-1].total == told.files == told.compiled
