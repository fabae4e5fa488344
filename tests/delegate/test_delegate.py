"""The delegate as a whole: options, reports, counters, fusion, variables, and what happens when the device fails."""

import json
import linecache
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate, disk
from litecl.delegate.analysis.cost import node_flops
from litecl.delegate.devices import choose, devices
from litecl.delegate.native import library
from litecl.delegate.opencl import enqueue
from litecl.delegate.opencl.devices import device, programs
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, DeviceNotFound, KernelBuildError, OutOfDeviceMemory
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unary import LOGISTIC
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support.build import Graph, model, randn
from support.small_models import chain, lstm, prepared, reference, run

RNG = np.random.default_rng(11)


def assert_same(interpreter: Interpreter, model_: Model, x: np.ndarray) -> None:
    np.testing.assert_allclose(run(interpreter, x), run(reference(model_), x), rtol=1e-4, atol=1e-5)


def test_a_subgraph_that_nothing_runs_is_left_alone() -> None:
    """Its declared shapes are unchecked, so it isn't planned."""
    g, idle = Graph(), Graph()
    x = idle.input((3,))
    (y,) = idle.node(CONCATENATION, [x, x], [TensorSpec(TensorType.FLOAT32, (7,))], ConcatenationOptions(axis=0))
    main = g.build(g.op(LOGISTIC, [g.input((4,))], NoOptions()))
    interpreter = prepared(model(main, idle.build(y)))
    rows = interpreter.delegation_report().nodes
    assert [(row.op, row.claimed, row.reason) for row in rows] == [
        ("LOGISTIC", True, ""),
        ("CONCATENATION", False, "nothing runs this subgraph"),
    ]


def test_the_work_of_a_node_whose_first_result_has_no_shape_yet() -> None:
    """A loop's, say: a variable that grows, beside one of three numbers that begins as a matrix of weights does."""
    specs = [
        TensorSpec(TensorType.FLOAT32, (4, 3), data=np.ones((4, 3), np.float32)),
        TensorSpec(TensorType.FLOAT32, None),
        TensorSpec(TensorType.FLOAT32, (2, 3)),
    ]
    assert node_flops([0], [1, 2], specs) == 2 * 12 * 2
    assert node_flops([0], [1], specs) == 0


def test_report_and_counters() -> None:
    model_ = chain()
    interpreter = prepared(model_)
    assert_same(interpreter, model_, randn(RNG, 2, 5))
    report = interpreter.delegation_report()
    assert [row.claimed for row in report.nodes] == [True] * 4
    assert len(report.partitions) == 1
    assert report.partitions[0].nodes == (0, 1, 2, 3)
    assert report.counters.host_syncs == 1
    # RELU is part of the dense layer, ADD of the chain that begins with EXP.
    assert report.partitions[0].launches == 2
    launched = 1 if report.partitions[0].manner.runs == "one kernel" else 2
    assert report.device in [d.name for d in devices()]
    assert json.loads(report.to_json())["counters"]["kernel_launches"] == launched
    assert "4 of 4 nodes in 1 partition" in str(report)


def test_counters_are_of_the_last_invoke() -> None:
    interpreter = prepared(chain(), deny_ops=["EXP"])
    for _ in range(2):
        run(interpreter, randn(RNG, 2, 5))
    assert interpreter.delegation_report().counters.host_syncs == 2
    assert interpreter.delegation_report().counters.kernel_launches == 2


def test_profile_gives_device_times() -> None:
    interpreter = prepared(chain(), profile=True)
    run(interpreter, randn(RNG, 2, 5))
    kernels = interpreter.delegation_report().kernels
    assert [row.node for row in kernels] == [0, 2]
    assert all(row.duration_ms > 0 for row in kernels)


def test_resize_decides_anew() -> None:
    model_ = chain()
    interpreter = prepared(model_)
    interpreter.resize_tensor_input(0, [9, 5])
    interpreter.allocate_tensors()
    x = randn(RNG, 9, 5)
    other = Interpreter(model_)
    other.resize_tensor_input(0, [9, 5])
    other.allocate_tensors()
    np.testing.assert_allclose(run(interpreter, x), run(other, x), rtol=1e-4)
    assert interpreter.delegation_report().claimed == 4


def test_preserved_intermediates_come_back_from_the_device() -> None:
    model_ = chain()
    x = randn(RNG, 2, 5)
    ours = Interpreter(model_, delegates=[CLDelegate()], experimental_preserve_all_tensors=True)
    plain = Interpreter(model_, experimental_preserve_all_tensors=True)
    for interpreter in (ours, plain):
        interpreter.allocate_tensors()
        run(interpreter, x)
    for node in model_.subgraphs[0].nodes:
        (tensor,) = node.outputs
        np.testing.assert_allclose(ours.get_tensor(tensor), plain.get_tensor(tensor), rtol=1e-4, atol=1e-6)


def test_residual_add_and_its_activation_are_fused_into_the_dense_layer() -> None:
    g = Graph()
    x = g.input((4, 8))
    dense = g.op(FULLY_CONNECTED, [x, g.const(randn(RNG, 8, 8)), None], FullyConnectedOptions())
    total = g.op(ADD, [x, dense], AddOptions(ActivationFunctionType.RELU))
    model_ = model(g.build(g.op(MUL, [total, total], MulOptions())))
    interpreter = prepared(model_)
    assert_same(interpreter, model_, randn(RNG, 4, 8))
    assert interpreter.delegation_report().claimed == 3


@pytest.mark.parametrize("rows", [1, 9])
def test_residual_add_and_a_later_activation_are_fused_into_products_of_integer_weights(rows: int) -> None:
    g = Graph()
    x = g.input((rows, 8))
    quantized = g.const(RNG.integers(-127, 128, (8, 8)).astype(np.int8), scale=0.01)
    dense = g.op(FULLY_CONNECTED, [x, quantized, g.const(randn(RNG, 8))], FullyConnectedOptions())
    total = g.op(ADD, [x, dense], AddOptions(ActivationFunctionType.RELU))
    again = g.op(FULLY_CONNECTED, [total, quantized, None], FullyConnectedOptions())
    model_ = model(g.build(g.op(LOGISTIC, [again], NoOptions())))
    interpreter = prepared(model_, num_threads=1, dynamic_range="reference")
    assert_same(interpreter, model_, randn(RNG, rows, 8))
    report = interpreter.delegation_report()
    assert report.claimed == 4
    assert report.partitions[0].launches == 6  # the range of rows, their bytes, and the product, twice


def broken_source(name: str) -> str:
    return "this is no OpenCL C" if name.endswith(".cl") else ""


def test_a_kernel_that_does_not_build_leaves_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (programs, library):
        monkeypatch.setattr(module, "source_of", broken_source)
    model_ = chain()
    interpreter = prepared(model_, cache_dir=None)
    report = interpreter.delegation_report()
    assert report.claimed == 0
    assert report.failures
    assert all("device failure" in row.reason for row in report.nodes)
    assert_same(interpreter, model_, randn(RNG, 2, 5))
    with pytest.raises(KernelBuildError, match=" with "):
        prepared(model_, cache_dir=None, strict=True)


@pytest.mark.opencl
def test_an_allocation_that_fails_leaves_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, size_bytes: int) -> Any:
        raise OutOfDeviceMemory(f"a buffer of {size_bytes} bytes")

    monkeypatch.setattr(device.Device, "buffer", refuse)
    model_ = chain()
    interpreter = prepared(model_)
    assert interpreter.delegation_report().claimed == 0
    assert_same(interpreter, model_, randn(RNG, 2, 5))
    with pytest.raises(OutOfDeviceMemory):
        prepared(model_, strict=True)


@pytest.mark.opencl
def test_more_than_the_device_allows_is_refused() -> None:
    opened = choose(num_threads=1).open(profile=False, directory=None)
    with pytest.raises(OutOfDeviceMemory, match="allows"):
        opened.buffer(2**60)


class FailingQueue:
    """Stands for enqueue_nd_range_kernel: launches with a local size that the device must refuse."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real = cl.enqueue_nd_range_kernel
        monkeypatch.setattr(enqueue, "_enqueue", None)
        monkeypatch.setattr(cl, "enqueue_nd_range_kernel", self)

    def __call__(self, queue: Any, kernel: Any, global_size: Any, local_size: Any) -> Any:
        return self._real(queue, kernel, (2**24,), (2**24,))


@pytest.mark.opencl
def test_a_launch_that_fails_falls_back_with_the_same_state(monkeypatch: pytest.MonkeyPatch) -> None:
    model_ = lstm()
    interpreter, expected = prepared(model_), reference(model_)
    inputs = [randn(RNG, 1, 3, 4) for _ in range(3)]
    np.testing.assert_allclose(run(interpreter, inputs[0]), run(expected, inputs[0]), rtol=1e-4, atol=1e-5)
    FailingQueue(monkeypatch)
    for x in inputs[1:]:
        np.testing.assert_allclose(run(interpreter, x), run(expected, x), rtol=1e-4, atol=1e-5)
    report = interpreter.delegation_report()
    assert report.claimed == 0
    assert len(report.failures) == 1
    assert "device failure" in report.nodes[0].reason


@pytest.mark.opencl
def test_strict_raises_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = prepared(lstm(), strict=True)
    FailingQueue(monkeypatch)
    with pytest.raises(DelegateError):
        run(interpreter, randn(RNG, 1, 3, 4))


@pytest.mark.opencl
def test_programs_are_cached_on_disk(tmp_path: Path) -> None:
    model_ = chain()
    first = prepared(model_, cache_dir=tmp_path)
    run(first, randn(RNG, 2, 5))
    binaries = list((tmp_path / disk.OWN).glob("*.bin"))
    assert binaries
    again = device.Device(choose().device, profile=False, cache_dir=tmp_path / disk.OWN)
    for path in binaries:
        assert again.programs.load(path.stem) is not None
    assert again.programs.cache_hits == len(binaries)
    binaries[0].write_bytes(b"not a program")
    assert again.programs.load(binaries[0].stem) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    model_ = chain()
    assert_same(prepared(model_, cache_dir=blocked / "cache"), model_, randn(RNG, 2, 5))


@pytest.mark.opencl
def test_choosing_a_device() -> None:
    found = device.devices()
    first = choose(found[0])
    assert first.device is found[0]
    assert choose(0) == choose(found[0].name[:8]) == choose(first) == first
    with pytest.raises(DelegateError, match="the devices are"):
        choose("no such device")
    with pytest.raises(DelegateError, match="out of range"):
        choose(99)
    with pytest.raises(DelegateError, match=r"an index, a name or a device, got 1\.5"):
        choose(1.5)


@pytest.mark.parametrize("strict", [False, True])
def test_an_unknown_device_is_an_error(strict: bool) -> None:
    with pytest.raises(DeviceNotFound, match="no such device"):
        prepared(chain(), device="no such device", strict=strict)


def test_options_are_checked() -> None:
    with pytest.raises(DelegateError, match="precision"):
        CLDelegate(precision="fp8")  # type: ignore[arg-type]
    with pytest.raises(DelegateError, match="min_nodes_per_partition"):
        CLDelegate(min_nodes_per_partition=0)


@pytest.mark.parametrize("options", [{}, {"queue_loops": True}], ids=["linked", "queued"])
def test_interpreters_that_are_dropped_leave_no_source_behind(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(cl, "_PYOPENCL_NO_CACHE", True)  # as for whoever imports litecl first
    before = {*linecache.cache}
    for _ in range(3):
        prepared(chain(), num_threads=1, **options)
    assert not [name for name in linecache.cache if name not in before]
