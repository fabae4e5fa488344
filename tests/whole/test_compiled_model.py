"""LiteRT's CompiledModel: compared with the original on the same files, and its use of memory."""

import logging
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ai_edge_litert.compiled_model as theirs
import numpy as np
import pytest

import litecl.compiled_model as ours
from litecl.compiled import accelerators
from litecl.delegate import CLDelegate, devices
from litecl.interpreter.errors import DelegateError, DeviceNotFound, LiteclError, ModelError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.unary import TANH
from support.build import Graph, model, randn
from support.compiled import CONTENT, LIBRARIES, RNG, A, X, buffers, compiled, expected, run
from support.fake_backend import FakeBackend, FakeDevice
from support.pattern_models import denoiser, quantized_classifier

DESCRIBED: dict[str, Callable[[Any], Any]] = {
    "signature list": lambda m: m.get_signature_list(),
    "signature": lambda m: m.get_signature_by_index(0),
    "number": lambda m: m.get_num_signatures(),
    "index": lambda m: (m.get_signature_index("main"), m.get_signature_index("nothing")),
    "inputs": lambda m: m.get_input_tensor_details("main"),
    "outputs": lambda m: m.get_output_tensor_details("main"),
    "requirements": lambda m: (m.get_input_buffer_requirements(1), m.get_output_buffer_requirements(1, 0)),
    "accelerated": lambda m: m.is_fully_accelerated(),
    "buffer": lambda m: [b.get_tensor_details() for made in buffers(m) for b in made],
    "buffer by name": lambda m: m.create_input_buffer_by_name("main", "a").get_tensor_details(),
    "resized": lambda m: (m.resize_input_tensor(0, [3, 4]), m.get_output_tensor_details("main")),
    "resized by name": lambda m: (
        m.resize_input_tensor_by_name("main", "x", [2, 4]),
        m.get_input_tensor_details("main"),
    ),
    "resized freely": lambda m: m.resize_input_tensor(1, [1, 4], strict=False),
    "short read": lambda m: m.create_input_buffers(0)[0].read(2, np.float32).shape,
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "details of no signature": lambda m: m.get_input_tensor_details("nothing"),
    "buffers of no signature": lambda m: m.create_input_buffers(5),
    "buffer of no name": lambda m: m.create_input_buffer_by_name("main", "q"),
    "buffer of no signature": lambda m: m.create_output_buffer_by_name("nothing", "y"),
    "requirements of no input": lambda m: m.get_input_buffer_requirements(7),
    "resize strictly": lambda m: m.resize_input_tensor(1, [3]),
    "resize to no rank": lambda m: m.resize_input_tensor(0, [3]),
    "resize to fixed": lambda m: m.resize_input_tensor(0, [3, 5]),
    "resize negative": lambda m: m.resize_input_tensor(0, [-1, 4]),
    "resize no input": lambda m: m.resize_input_tensor(9, [3, 4]),
    "resize no signature": lambda m: m.resize_input_tensor(0, [3, 4], 5),
    "resize no name": lambda m: m.resize_input_tensor_by_name("main", "q", [3, 4]),
    "too few inputs": lambda m: m.run_by_index(0, buffers(m)[0][:1], buffers(m)[1]),
    "too few outputs": lambda m: m.run_by_index(0, buffers(m)[0], buffers(m)[1][:1]),
    "run no signature": lambda m: m.run_by_index(3, *buffers(m)),
    "run no name": lambda m: m.run_by_name("nothing", {}, {}),
    "run without inputs": lambda m: m.run_by_name("main", {}, {}),
    "write a list": lambda m: buffers(m)[0][0].write([1.0, 2, 3, 4]),
    "write float64": lambda m: buffers(m)[0][0].write(np.ones((1, 4))),
    "write too much": lambda m: buffers(m)[0][0].write(np.ones(40, np.float32)),
    "read too much": lambda m: buffers(m)[0][0].read(40, np.float32),
    "read no type": lambda m: buffers(m)[0][0].read(4, "zz"),
    "destroyed": lambda m: [b.destroy() or b.read(4, np.float32) for b in buffers(m)[0]],
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_descriptions_are_the_same(name: str) -> None:
    assert DESCRIBED[name](compiled(ours)) == DESCRIBED[name](compiled(theirs))


@pytest.mark.parametrize("name", REFUSED)
def test_what_litert_refuses_is_refused_with_an_error_that_its_callers_catch(name: str) -> None:
    with pytest.raises(Exception) as their:
        REFUSED[name](compiled(theirs))
    with pytest.raises(LiteclError) as our:
        REFUSED[name](compiled(ours))
    assert isinstance(our.value, their.type)


def test_a_model_without_signatures_has_one() -> None:
    content = write(denoiser())
    assert compiled(ours, content).get_signature_list() == compiled(theirs, content).get_signature_list()


@LIBRARIES
def test_runs_by_index_and_by_name(library: Any) -> None:
    model_ = compiled(library)
    inputs, outputs = buffers(model_)
    run(model_, inputs, outputs, X, A)
    for buffer, value in zip(outputs, expected(X, A), strict=True):
        np.testing.assert_allclose(buffer.read(4, np.float32), value, rtol=1e-5)
    named = {name: model_.create_output_buffer_by_name("main", name) for name in ("sums", "y")}
    model_.run_by_name("main", dict(zip("xa", inputs, strict=True)), named)
    np.testing.assert_allclose(named["sums"].read(4, np.float32), expected(X, A)[1], rtol=1e-5)


@LIBRARIES
def test_resized_inputs_get_new_buffers(library: Any) -> None:
    model_, x = compiled(library), randn(RNG, 3, 4)
    old = buffers(model_)
    model_.resize_input_tensor(0, [3, 4])
    inputs, outputs = buffers(model_)
    run(model_, inputs, outputs, x, A)
    np.testing.assert_allclose(outputs[0].read(12, np.float32), expected(x, A)[0], rtol=1e-5)
    run(model_, *old, X, A)  # goes back to their shape
    np.testing.assert_allclose(old[1][0].read(4, np.float32), expected(X, A)[0], rtol=1e-5)


@LIBRARIES
def test_quantized(library: Any) -> None:
    model_ = compiled(library, write(quantized_classifier()))
    inputs, outputs = buffers(model_)
    run(model_, inputs, outputs, np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3), np.uint8))
    scores = outputs[0].read(10, np.uint8).astype(int)
    assert abs(scores.sum() - 256) <= 5


def test_runs_in_the_background_are_done_in_their_order() -> None:
    with compiled(ours) as model_:
        sets = [buffers(model_) for _ in range(2)]
        for factor, (inputs, _) in enumerate(sets):
            inputs[0].write((factor + 1) * X)
            inputs[1].write(A)
        runs = [model_.run_async(0, *sets[i % 2]) for i in range(8)]
        for done in runs:
            assert done.result() is None
        for factor, (_, outputs) in enumerate(sets):
            np.testing.assert_allclose(outputs[0].read(4, np.float32), expected((factor + 1) * X, A)[0], rtol=1e-5)
        with pytest.raises(ModelError, match="expected 2 input buffers"):
            model_.run_async(0, [], []).result()
    with pytest.raises(ModelError, match="closed"):
        model_.get_num_signatures()


def test_threads_may_share_a_model() -> None:
    model_ = compiled(ours)
    wrong = []

    def work(factor: int) -> None:
        inputs, outputs = buffers(model_)
        for _ in range(200):
            run(model_, inputs, outputs, factor * X, A)
            wrong.extend([factor] * (not np.allclose(outputs[1].read(4, np.float32), answers[factor], rtol=1e-5)))

    answers = {factor: expected(factor * X, A)[1] for factor in (1, 2, 3)}
    threads = [threading.Thread(target=work, args=(factor,)) for factor in answers]
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that they take turns within calls too
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before_s)
    assert not wrong


JUNK = (None, "x", 1.5, -1, 99, 2**70, b"", [], {}, [[]], [np.zeros(4, np.float32)] * 2, object(), np.zeros(3), 1j)


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
def test_no_argument_ends_in_an_error_that_is_not_litecls(junk: Any) -> None:
    model_ = compiled(ours)
    inputs, outputs = buffers(model_)
    calls = (
        lambda: model_.run_by_index(junk, inputs, outputs), lambda: model_.run_by_index(0, junk, outputs),
        lambda: model_.run_by_index(0, inputs, junk), lambda: model_.run_by_name("main", junk, {}),
        lambda: model_.run_by_name(junk, {}, {}), lambda: model_.run_async(junk, inputs, outputs).result(),
        lambda: model_.get_signature_by_index(junk), lambda: model_.get_signature_index(junk),
        lambda: model_.get_input_tensor_details(junk), lambda: model_.get_input_buffer_requirements(junk),
        lambda: model_.create_input_buffers(junk), lambda: model_.create_input_buffer_by_name("main", junk),
        lambda: model_.resize_input_tensor(junk, [1, 4]), lambda: model_.resize_input_tensor(0, junk),
        lambda: model_.resize_input_tensor_by_name("main", junk, [1, 4]), lambda: inputs[0].write(junk),
        lambda: inputs[0].read(junk, np.float32), lambda: inputs[0].read(1, junk),
        lambda: ours.TensorBuffer.create_from_host_memory(junk), lambda: compiled(ours, junk),
        lambda: ours.CompiledModel.from_file(junk), lambda: compiled(ours, hardware_accel=junk),
    )  # fmt: skip
    for call in calls:
        with suppress(LiteclError):
            call()


def test_what_a_model_may_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is asked for alone must be there and take everything; with the CPU beside it nothing is required."""
    accelerator = ours.HardwareAccelerator
    monkeypatch.setattr("litecl.compiled.accelerators.gpus", list)
    for alone in (accelerator.GPU, accelerator.NPU, accelerator.GPU | accelerator.NPU):
        with pytest.raises(DeviceNotFound, match=r"HardwareAccelerator\.CPU"):
            compiled(ours, hardware_accel=alone)
    assert compiled(ours, hardware_accel=accelerator.GPU | accelerator.CPU).is_fully_accelerated()
    for wrong in ("cpu", 0, object()):
        with pytest.raises(ModelError, match="hardware_accel"):
            compiled(ours, hardware_accel=wrong)
    with pytest.raises(ModelError, match="not both"):
        compiled(ours, hardware_accel=accelerator.CPU, options=ours.Options())
    monkeypatch.setattr("litecl.compiled_model.delegates", lambda options, context: [CLDelegate(deny_ops=["TANH"])])
    g = Graph()
    content = write(model(g.build(g.op(TANH, [g.input((2,))], TANH.options()))))
    assert not compiled(ours, content).is_fully_accelerated()
    with pytest.raises(DelegateError, match="TANH: denied by deny_ops"):
        compiled(ours, content, hardware_accel=accelerator.GPU)


@pytest.mark.parametrize("others", [("native", "fake"), ("fake",), ()], ids=["native", "OpenCL", "none"])
def test_the_cpu_is_no_gpu(monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...]) -> None:
    """Where a GPU would be the default, a model for the CPU gets the processor, or numpy."""
    content = read(CONTENT)
    found = [FakeDevice(content, name="a GPU", gpu=True), *(FakeDevice(content, name=name) for name in others)]
    monkeypatch.setattr(devices, "BACKENDS", (lambda: FakeBackend(found),))
    (delegate,) = accelerators.delegates(ours.Options()) if others else [None]
    assert delegate is None or delegate.device in ("native", found[-1])
    assert delegate is not None or accelerators.delegates(ours.Options()) == []
    assert delegate is None or (delegate.device == "native") is ("native" in others)
    (gpu,) = accelerators.delegates(ours.Options(ours.HardwareAccelerator.GPU))
    assert gpu.device is found[0]


def test_sources_that_are_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    for make in (
        lambda: ours.CompiledModel.from_file(tmp_path / "none.tflite"),
        lambda: ours.CompiledModel.from_buffer(b"junk"),
        lambda: ours.CompiledModel.from_file(5),  # type: ignore[arg-type]
        lambda: ours.CompiledModel.from_buffer("junk"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ModelError):
            make()
    (tmp_path / "model.tflite").write_bytes(CONTENT)
    assert ours.CompiledModel.from_file(tmp_path / "model.tflite").get_num_signatures() == 1
    environment = ours.Environment.create(runtime_path="/somewhere")
    with compiled(ours, environment=environment) as model_:
        assert model_.environment is environment
        assert environment.options.runtime_path == "/somewhere"
    with pytest.raises(ModelError, match="Pass either options"):
        ours.Environment.create(options=ours.EnvironmentOptions(), runtime_path="/a")
