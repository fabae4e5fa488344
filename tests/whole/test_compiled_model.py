"""LiteRT's CompiledModel: beside the original on the same files, and what becomes of memory."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ai_edge_litert.compiled_model as theirs
import numpy as np
import pytest
from ai_edge_litert.tensor_buffer import TensorBuffer as TheirBuffer

import litecl.compiled_model as ours
from litecl.delegate import CLDelegate
from litecl.interpreter.errors import DelegateError, DeviceNotFound, LiteclError, ModelError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, Signature, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn
from support.pattern_models import denoiser, quantized_classifier

RNG = np.random.default_rng(21)


def _content() -> bytes:
    """Two inputs whose names are in no order, two outputs, one with an open batch dimension."""
    g = Graph()
    x, a = g.input((1, 4), signature=(-1, 4)), g.input((4,))
    sums = g.op(ADD, [g.op(MUL, [x, a], MulOptions()), g.const(randn(RNG, 4))], AddOptions())
    y = g.op(SOFTMAX, [sums], SoftmaxOptions(1.0))
    return write(model(g.build(y, sums), signatures=[Signature("main", {"x": x, "a": a}, {"y": y, "sums": sums})]))


CONTENT = _content()
X, A = randn(RNG, 1, 4), randn(RNG, 4)
LIBRARIES = pytest.mark.parametrize("library", [ours, theirs], ids=["litecl", "LiteRT"])


def compiled(library: Any, content: bytes = CONTENT, **keywords: Any) -> Any:
    return library.CompiledModel.from_buffer(content, **keywords)


def run(model_: Any, inputs: list[Any], outputs: list[Any], *values: Any) -> None:
    """Write inputs and run the first signature."""
    for buffer, value in zip(inputs, values, strict=True):
        buffer.write(value)
    model_.run_by_index(0, inputs, outputs)


def buffers(model_: Any) -> tuple[list[Any], list[Any]]:
    return model_.create_input_buffers(0), model_.create_output_buffers(0)


def expected(x: Any, a: Any) -> list[Any]:
    """What LiteRT computes."""
    model_ = compiled(theirs)
    model_.resize_input_tensor(0, x.shape)
    inputs, outputs = buffers(model_)
    run(model_, inputs, outputs, x, a)
    return [outputs[0].read(x.size, np.float32), outputs[1].read(x.size, np.float32)]


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


@pytest.mark.parametrize("buffer", [ours.TensorBuffer, TheirBuffer], ids=["litecl", "LiteRT"])
def test_a_buffer_of_the_users_memory(buffer: Any) -> None:
    for wrong in ([1, 2], np.ones((4, 4), np.float32)[:, ::2]):
        with pytest.raises(ValueError, match="data_array"):
            buffer.create_from_host_memory(wrong)
    assert buffer.create_from_host_memory(np.ones(4, np.float32)).get_tensor_details()["dtype"] == "float32"


def test_outputs_are_written_to_the_users_memory() -> None:
    model_, mine = compiled(ours), np.zeros((1, 4), np.float32)
    x, a = (ours.TensorBuffer.create_from_host_memory(value.copy()) for value in (X, A))
    outputs = [ours.TensorBuffer.create_from_host_memory(mine), model_.create_output_buffer_by_name("main", "sums")]
    model_.run_by_index(0, [x, a], outputs)
    np.testing.assert_allclose(mine[0], expected(X, A)[0], rtol=1e-5)
    x.array[...] = 2 * X
    model_.run_by_index(0, [x, a], outputs)
    np.testing.assert_allclose(mine[0], expected(2 * X, A)[0], rtol=1e-5)
    with pytest.raises(ShapeError, match="does not fit"):
        model_.run_by_index(0, [x, a], [ours.TensorBuffer.create_from_host_memory(np.zeros(3, np.float32)), outputs[1]])


def test_one_set_of_buffers_is_not_copied() -> None:
    """Neither between buffer and model nor between host and device, where these share memory."""
    model_ = compiled(ours)
    inputs, outputs = buffers(model_)
    memory = [buffer.array for buffer in inputs]
    for factor in (1, 2):
        run(model_, inputs, outputs, factor * X, A)
        assert [buffer.array for buffer in inputs] == memory or all(
            buffer.array is array for buffer, array in zip(inputs, memory, strict=True)
        )
        np.testing.assert_allclose(outputs[0].array[0], expected(factor * X, A)[0], rtol=1e-5)
    report = model_.delegation_report()
    if any(row.claimed for row in report.nodes) and report.device.startswith(("basic", "pthread", "cpu")):
        assert (report.counters.bytes_to_device, report.counters.bytes_to_host) == (0, 0)


@pytest.mark.parametrize("mode", ["device", "numpy"])
def test_sets_of_buffers_keep_what_is_in_them(mode: str) -> None:
    """Run in turns, read late: each set has its own values, whoever had the model's memory first."""
    options = ours.Options(cpu_options=ours.CpuOptions(kernel_mode=ours.CpuKernelMode.REFERENCE))
    model_ = compiled(ours, options=options if mode == "numpy" else None)
    assert model_.is_fully_accelerated() == (mode == "device")
    sets = [buffers(model_) for _ in range(3)]
    for factor, (inputs, _) in enumerate(sets):
        inputs[0].write((factor + 1) * X)
        inputs[1].write(A)
    for turn in (0, 1, 2, 1, 0):
        model_.run_by_index(0, *sets[turn])
    for factor, (inputs, outputs) in enumerate(sets):
        np.testing.assert_array_equal(inputs[0].array, (factor + 1) * X)
        for buffer, value in zip(outputs, expected((factor + 1) * X, A), strict=True):
            np.testing.assert_allclose(buffer.read(4, np.float32), value, rtol=1e-5)


def test_an_output_that_is_the_input_seen_otherwise() -> None:
    """What the caller writes next must not change an answer that was given."""
    g = Graph()
    x = g.input((2, 3))
    y = g.op(RESHAPE, [x, g.const(np.array([3, 2], np.int32))], ReshapeOptions((3, 2)))
    for options in (None, ours.Options(cpu_options=ours.CpuOptions(kernel_mode=ours.CpuKernelMode.BUILTIN))):
        model_ = compiled(ours, write(model(g.build(y, x))), options=options)
        inputs, outputs = buffers(model_)
        value = randn(RNG, 2, 3)
        run(model_, inputs, outputs, value)
        inputs[0].write(np.zeros((2, 3), np.float32))
        np.testing.assert_array_equal(outputs[0].array, value.reshape(3, 2))
        np.testing.assert_array_equal(outputs[1].array, value)


def test_buffers_are_in_the_order_of_the_subgraph() -> None:
    """Not in that of the signature, nor by name: values for the wrong input would be taken without a word."""
    g = Graph()
    a, b = g.input((2,)), g.input((2,))
    product, total = g.op(MUL, [a, b], MulOptions()), g.op(ADD, [a, g.const(np.float32([1, 2]))], AddOptions())
    names = Signature("main", {"first": b, "second": a}, {"product": product, "total": total})
    content = write(model(g.build(total, product), signatures=[names]))
    answers = []
    for library in (ours, theirs):
        model_ = compiled(library, content)
        assert model_.get_signature_by_index(0)["inputs"] == ["second", "first"]
        assert model_.get_signature_by_index(0)["outputs"] == ["total", "product"]
        inputs, outputs = buffers(model_)
        run(model_, inputs, outputs, np.float32([3, 4]), np.float32([5, 6]))
        answers.append([buffer.read(2, np.float32).tolist() for buffer in outputs])
    assert answers == [[[4, 6], [15, 24]]] * 2


@pytest.mark.parametrize("mode", ["device", "numpy"])
def test_a_tensor_that_is_two_outputs(mode: str) -> None:
    """Each has its own memory."""
    g = Graph()
    y = g.op(TANH, [g.input((2,))], TANH.options())
    model_ = compiled(ours, write(model(g.build(y, y))), options=ours.Options(cpu_options=_cpu(mode)))
    inputs, outputs = buffers(model_)
    for value in (1.0, 2.0):
        run(model_, inputs, outputs, np.full(2, value, np.float32))
        for buffer in outputs:
            np.testing.assert_allclose(buffer.array, np.tanh(value), rtol=1e-5)
        outputs[0].array.fill(9)
        np.testing.assert_allclose(outputs[1].array, np.tanh(value), rtol=1e-5)


@pytest.mark.parametrize("mode", ["device", "numpy"])
def test_a_variable_is_not_handed_out(mode: str) -> None:
    """Whoever writes into an output changes no state."""
    model_ = compiled(ours, write(_accumulator()), options=ours.Options(cpu_options=_cpu(mode)))
    inputs, outputs = buffers(model_)
    for turn in (1, 2, 3):
        run(model_, inputs, outputs, np.ones(3, np.float32))
        assert outputs[0].read(3, np.float32).tolist() == [turn] * 3
        outputs[0].array.fill(99)


def _cpu(mode: str) -> ours.CpuOptions:
    kernels = ours.CpuKernelMode.REFERENCE if mode == "numpy" else ours.CpuKernelMode.DELEGATE
    return ours.CpuOptions(kernel_mode=kernels)


def _accumulator() -> Model:
    """A variable, to which the input is added before it is read."""
    resource, value = TensorSpec(TensorType.RESOURCE, ()), TensorSpec(TensorType.FLOAT32, (3,))
    main, init = Graph("main"), Graph("init")
    x = main.input((3,))
    main.node(CALL_ONCE, (), (), CallOnceOptions(1))
    (handle,) = main.node(VAR_HANDLE, (), (resource,), VarHandleOptions("", "sum"))
    (before,) = main.node(READ_VARIABLE, (handle,), (value,), NoOptions())
    (after,) = main.node(ADD, (before, x), (value,), AddOptions())
    main.node(ASSIGN_VARIABLE, (handle, after), (), NoOptions())
    (result,) = main.node(READ_VARIABLE, (handle,), (value,), NoOptions())
    (filled,) = init.node(VAR_HANDLE, (), (resource,), VarHandleOptions("", "sum"))
    init.node(ASSIGN_VARIABLE, (filled, init.const(np.zeros(3, np.float32))), (), NoOptions())
    return model(main.build(result), init.build())


def test_a_state_goes_from_an_output_to_an_input() -> None:
    content, frames = write(denoiser()), randn(RNG, 6, 1, 1, 16)
    answers = []
    for library in (ours, theirs):
        model_ = compiled(library, content)
        inputs, outputs = buffers(model_)
        inputs[1].write(np.zeros((1, 2, 16), np.float32))
        for frame in frames:
            inputs[0].write(frame)
            model_.run_by_index(0, inputs, outputs)
            inputs[1], outputs[1] = outputs[1], inputs[1]
        answers.append(outputs[0].read(16, np.float32))
    np.testing.assert_allclose(*answers, rtol=1e-5, atol=1e-6)


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
        for _ in range(20):
            run(model_, inputs, outputs, factor * X, A)
            wrong.extend([factor] * (not np.allclose(outputs[1].read(4, np.float32), answers[factor], rtol=1e-5)))

    answers = {factor: expected(factor * X, A)[1] for factor in (1, 2, 3)}
    threads = [threading.Thread(target=work, args=(factor,)) for factor in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
    monkeypatch.setattr("litecl.compiled.accelerators.delegates", lambda options: [CLDelegate(deny_ops=["TANH"])])
    monkeypatch.setattr("litecl.compiled_model.delegates", lambda options: [CLDelegate(deny_ops=["TANH"])])
    g = Graph()
    content = write(model(g.build(g.op(TANH, [g.input((2,))], TANH.options()))))
    assert not compiled(ours, content).is_fully_accelerated()
    with pytest.raises(DelegateError, match="TANH: denied by deny_ops"):
        compiled(ours, content, hardware_accel=accelerator.GPU)


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
