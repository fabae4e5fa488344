"""Threads of a second device that help the thread that runs a region (delegate/opencl/crew.py)."""

import gc
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate import devices as open_devices
from litecl.delegate.opencl import device
from litecl.delegate.opencl.crew import Helpers
from litecl.delegate.opencl.device import devices as listed
from litecl.delegate.opencl.device import needs_threads
from litecl.delegate.plan.region_tables import Door
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import ActivationFunctionType
from support import devices
from support.build import Graph, model, randn

pytestmark = pytest.mark.skipif(
    all(map(needs_threads, listed())) or devices.several_threads().max_compute_units == 1,
    reason="no device runs kernels in the calling thread, or there is but one core",
)


def layers() -> Any:
    """Dense layers one after another, each for all threads, and each reading what all wrote before."""
    g, rng = Graph(), np.random.default_rng(9)
    x = g.input((64, 96))
    relu = FullyConnectedOptions(fused_activation_function=ActivationFunctionType.RELU)
    for _ in range(8):
        x = g.op(FULLY_CONNECTED, [x, g.const(randn(rng, 96, 96, scale=0.15)), g.const(randn(rng, 96))], relu)
    return model(g.build(x))


LAYERS = layers()


def opened(**options: Any) -> tuple[Interpreter, Callable[[int], Array]]:
    """Return an interpreter and a function that runs it on the inputs of a seed."""
    interpreter = Interpreter(LAYERS, delegates=[CLDelegate(strict=True, **options)])
    interpreter.allocate_tensors()

    def run(seed: int) -> Array:
        rng = np.random.default_rng(seed)
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], rng.standard_normal(detail["shape"]).astype(np.float32))
        interpreter.invoke()
        return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))

    return interpreter, run


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch) -> list[Helpers]:
    """Return the helpers of all regions that are prepared from now on."""
    made: list[Helpers] = []
    init = Helpers.__init__

    def noted(self: Helpers, *arguments: Any) -> None:
        init(self, *arguments)
        made.append(self)

    monkeypatch.setattr(Helpers, "__init__", noted)
    return made


def is_same(a: Array, b: Array) -> bool:
    return np.allclose(a, b, rtol=1e-4, atol=1e-4)  # sums may be shared out in another way


def assert_same(a: Array, b: Array) -> None:
    assert is_same(a, b)


def wait_until(holds: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + 20
    while not holds():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.01)
    return True


def test_several_threads_are_one_with_helpers(doors: list[Helpers]) -> None:
    interpreter, run = opened(num_threads=2)
    assert len(doors) == 1
    assert interpreter.delegation_report().device.startswith(devices.several_threads().name)
    _, alone = opened(num_threads=1)
    for seed in range(20):
        assert_same(run(seed), alone(seed))
    assert len(doors) == 1  # a single thread has none
    assert interpreter.delegation_report().counters.kernel_launches == 1


@pytest.mark.parametrize("addresses", [True, False])
def test_helpers_take_part(addresses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By functions of the region's program, or, if a compiler cannot call these, by a program of their own."""
    real = device.capabilities
    if addresses and not real(devices.several_threads()).addresses:
        pytest.skip("this compiler calls no functions of other programs")
    monkeypatch.setattr(device, "capabilities", lambda *of: replace(real(*of), addresses=addresses))
    monkeypatch.setattr(open_devices, "_DEVICES", {})
    interpreter, run = opened(num_threads=2, profile=True)
    _, alone = opened(num_threads=1)
    (program,) = interpreter._delegations[0]._programs.values()  # type: ignore[attr-defined]
    times = program._execution._launches._step_times

    def helped() -> bool:
        assert_same(run(3), alone(3))
        times.read()
        stamps = times.seen[times.times_bytes // times.seen.itemsize :]
        return bool(stamps.reshape(2, -1)[1].any())

    assert wait_until(helped)


def test_helpers_leave_and_come_back(doors: list[Helpers]) -> None:
    _, run = opened(num_threads=2)
    lines = doors[0]._lines
    for _ in range(3):
        run(0)
        assert wait_until(lambda: not lines[Door.HELPERS])
    assert lines[Door.RUN] == 6 and not lines[Door.INSIDE]


def test_a_region_needs_no_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Helpers, "come", lambda self: None)
    _, run = opened(num_threads=2)
    _, alone = opened(num_threads=1)
    assert_same(run(1), alone(1))


def test_helpers_that_cannot_be_queued_are_done_without(
    doors: list[Helpers], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, run = opened(num_threads=2)
    _, alone = opened(num_threads=1)

    def fails() -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(doors[0]._kernel, "enqueue", fails)
    monkeypatch.setattr("litecl.delegate.report._said", set())
    assert_same(run(1), alone(1))
    assert "no threads help" in caplog.text and "no room" in caplog.text
    assert not doors[0]._lines[Door.HELPERS]


def test_regions_in_turn_and_side_by_side(doors: list[Helpers]) -> None:
    """The threads go from region to region, and whichever they are not with runs alone."""
    _, alone = opened(num_threads=1)
    wanted = [alone(seed) for seed in range(40)]
    runs = [opened(num_threads=2)[1] for _ in range(3)]
    wrong: list[int] = []

    def repeat(run: Callable[[int], Array]) -> None:
        wrong.extend(seed for seed in range(40) if not is_same(run(seed), wanted[seed]))

    for seed in range(40):
        wrong.extend(seed for run in runs if not is_same(run(seed), wanted[seed]))
    threads = [threading.Thread(target=repeat, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_an_interpreter_is_dropped_while_helpers_wait(doors: list[Helpers]) -> None:
    _, alone = opened(num_threads=1)
    wanted = alone(3)
    for _ in range(10):
        interpreter, run = opened(num_threads=2)
        assert_same(run(3), wanted)
        doors.clear()
        del interpreter, run
        gc.collect()


def test_a_region_without_launches(doors: list[Helpers]) -> None:
    g = Graph()
    x = g.input((2, 6))
    content = model(g.build(g.op(RESHAPE, [x, g.const(np.array([3, 4], np.int32))], ReshapeOptions())))
    interpreter = Interpreter(content, delegates=[CLDelegate(strict=True, num_threads=2)])
    interpreter.allocate_tensors()
    value = randn(np.random.default_rng(1), 2, 6)
    interpreter.set_tensor(x, value)
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    np.testing.assert_array_equal(interpreter.get_tensor(output["index"]), value.reshape(3, 4))
    assert not doors


def test_a_named_device_has_no_helpers(doors: list[Helpers]) -> None:
    _, run = opened(device=devices.several_threads())
    run(0)
    assert not doors
