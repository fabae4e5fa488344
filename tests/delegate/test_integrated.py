"""A GPU whose memory is the host's: inputs and outputs are mapped, or seen by both, and no command copies them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.opencl.devices import device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.memory import memory, shared, transfers
from litecl.delegate.opencl.memory.user_buffer import CLUserBuffer
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import EXP
from litecl.perf.feeds import outputs_of
from support import devices, opencl_seam
from support.build import Graph, model, randn
from support.cl_user import User, assert_holds
from support.compiled import CONTENT, A, X, expected
from support.fault_models import Session, raises, small, subjects
from support.fault_models import expected as by_cpu

RNG = np.random.default_rng(15)
SUBJECTS = {subject.name: subject for subject in subjects()}
WAYS = ("shared", "mapped")
_WITHOUT_STATES = ("image", "loop", "limited loop", "quantized")  # which lie where the host does not see them


@dataclass
class Seen:
    """The host's actions: the number of copies and mappings, and what is mapped now."""

    copies: int = 0
    maps: int = 0
    mapped: set[int] = field(default_factory=set)


class _Mapping:
    """A mapping that is known to be there until it is released."""

    def __init__(self, real: Any, seen: Seen) -> None:
        self._real, self._seen = real, seen
        seen.maps += 1
        seen.mapped.add(id(self))

    def release(self, queue: Any) -> None:
        self._seen.mapped.remove(id(self))
        self._real.release(queue)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Record the host's actions from now on. No kernel may be queued while anything is mapped."""
    found, mapped, copy = Seen(), transfers.Mappings._mapped, cl.enqueue_copy
    enqueue = BoundKernel.enqueue

    def counted(moves: transfers.Mappings, *args: Any) -> tuple[Array, Any, Any]:
        array, mapping, event = mapped(moves, *args)
        return array, _Mapping(mapping, found), event

    def copied(*args: Any, **named: Any) -> Any:
        found.copies += 1
        return copy(*args, **named)

    def queued(bound: BoundKernel) -> None:
        assert not found.mapped
        enqueue(bound)

    monkeypatch.setattr(transfers.Mappings, "_mapped", counted)
    monkeypatch.setattr(cl, "enqueue_copy", copied)
    monkeypatch.setattr(BoundKernel, "enqueue", queued)
    return found


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def options(
    way: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Options of delegates that take the first device for an integrated GPU."""
    if not device._has_fine_grained_svm(devices.tested()[0]) and way == "shared":
        pytest.skip("the device has no fine-grained shared memory")
    folder = tmp_path_factory.getbasetemp() / f"integrated, {way}"
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(shared, "_probed", {})
    yield devices.as_on_an_integrated_gpu(monkeypatch, folder, has_svm=way == "shared")


@pytest.mark.parametrize("name", [*SUBJECTS][:-1])  # the integer LSTM compiles for too long
def test_results(name: str, way: str, options: dict[str, Any], seen: Seen) -> None:
    """Over invokes, with states that are reset and read back."""
    if "loop" in name:
        devices.needs_groups()
    subject = SUBJECTS[name]
    session = Session(subject, [CLDelegate(**options, **subject.options, strict=True)])
    for step, wanted in zip(session.steps(), by_cpu(name), strict=True):
        for got, right in zip(step(), wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
    assert not seen.mapped
    if way == "mapped" or name in _WITHOUT_STATES:
        assert bool(seen.maps) is (way == "mapped")
    counters = session.interpreter.delegation_report().counters
    if way == "shared" and len(session.interpreter.delegation_report().partitions) == 1:
        assert (counters.bytes_to_device, counters.bytes_to_host) == (0, 0)


def net() -> tuple[Interpreter, list[int]]:
    """Return a model with two inputs and four outputs: one shares an input's memory, one is a constant."""
    g = Graph()
    x, y = g.input((3, 4)), g.input((3, 4))
    total = g.op(ADD, [g.op(EXP, [x], NoOptions()), y], AddOptions())
    flat = g.op(RESHAPE, [x, g.const(np.array([12], np.int32))], ReshapeOptions())
    known = g.op(RESHAPE, [g.const(np.arange(4, dtype=np.float32)), g.const(np.array([2, 2], np.int32))], _TO)
    return model(g.build(total, flat, x, known)), [x, y]


_TO = ReshapeOptions()


def test_invokes_copy_nothing_and_results_stay(way: str, options: dict[str, Any], seen: Seen) -> None:
    """The next invoke doesn't change earlier results."""
    content, inputs = net()
    interpreter = Interpreter(content, delegates=[CLDelegate(**options, strict=True)])
    interpreter.allocate_tensors()
    before, kept = seen.copies, []
    for _ in range(3):
        values = [randn(RNG, 3, 4) for _ in inputs]
        for tensor, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(tensor, value)
        interpreter.invoke()
        results = outputs_of(interpreter)
        kept.append((results, values))
    assert seen.copies == before
    assert seen.maps == (0 if way == "shared" else 3 * 4)  # the inputs, and what the region gives
    for results, (x, y) in kept:
        wanted = np.exp(x) + y, x.reshape(12), x, np.float32([[0, 1], [2, 3]])
        for got, right in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-6)


def test_only_inputs_and_outputs_lie_with_the_host(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels may access memory that the host sees more slowly, so intermediate tensors don't lie there."""
    sizes: list[tuple[int, int]] = []

    def host_memory(opened: device.Device, size_bytes: int) -> tuple[Any, Array | None]:
        sizes.append((size_bytes, opened.alignment))
        return shared.host_memory(opened, size_bytes)

    monkeypatch.setattr(memory, "host_memory", host_memory)
    for name in ("lstm", "quantized"):
        session = Session(SUBJECTS[name], [CLDelegate(**options, strict=True)])
        session.steps()[0]()
        details = [*session.interpreter.get_input_details(), *session.interpreter.get_output_details()]
        bytes_ = [int(np.prod(d["shape"])) * np.dtype(d["dtype"]).itemsize for d in details]
        size, alignment = sizes.pop()
        assert size == sum(-(-one // alignment) * alignment for one in bytes_) and not sizes


def test_a_driver_that_keeps_a_copy_of_shared_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seen: Seen
) -> None:
    """It claims to share memory, but kernels see the initial content: the memory is then mapped."""
    options = devices.as_on_an_integrated_gpu(monkeypatch, tmp_path, has_svm=True)
    monkeypatch.setattr(shared, "_probed", {})

    def copying(opened: device.Device, size_bytes: int) -> tuple[Any, Array]:
        host = np.zeros(size_bytes, np.uint8)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(opened.context, flags, hostbuf=host), host

    monkeypatch.setattr(device.Device, "svm_buffer", copying)
    assert_computes(options)
    assert seen.maps


@pytest.mark.parametrize("times", [1, 2])
def test_a_driver_that_refuses_shared_memory(
    times: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    """Once is no reason to do without."""
    options = devices.as_on_an_integrated_gpu(monkeypatch, tmp_path, has_svm=True)
    monkeypatch.setattr(shared, "_probed", {})
    real, calls = cl.SVMAllocation, []

    def refusing(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return (raises(opencl_seam.error(0, "SVMAllocation")) if len(calls) <= times else real)(*arguments, **options)

    monkeypatch.setattr(cl, "SVMAllocation", refusing)
    assert_computes(options)
    assert len(calls) >= 2
    assert bool(seen.maps) == ("inputs and outputs are mapped on" in caplog.text) == (times == 2)


def assert_computes(options: dict[str, Any]) -> None:
    interpreter = Interpreter(small(), delegates=[CLDelegate(**options, strict=True)])
    interpreter.allocate_tensors()
    for _ in range(2):
        x = randn(RNG, 2, 5)
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_allclose(got, np.exp(x) + x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", ["mapped"], indirect=True)
def test_what_cannot_be_mapped(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU computes it, and the report says so; with ``strict`` an error is raised."""
    interpreter = Interpreter(small(), delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    x = randn(RNG, 2, 5)
    interpreter.set_tensor(0, x)
    monkeypatch.setattr(cl, "enqueue_map_buffer", raises(opencl_seam.error(0, "enqueue_map_buffer")))
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, np.exp(x) + x, rtol=1e-5, atol=1e-6)
    assert "enqueue_map_buffer" in interpreter.delegation_report().failures[0]
    strict = Interpreter(small(), delegates=[CLDelegate(**options, strict=True)])
    strict.allocate_tensors()
    with pytest.raises(DelegateError, match="transferring"):
        strict.invoke()


def test_buffers_of_the_users(options: dict[str, Any]) -> None:
    """Each run reads and writes its own buffers, alternating with the host's."""
    user = User(options["device"])
    compiled = user.compiled(CONTENT, cache_dir=options["cache_dir"])
    host = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    mine = user.holding(X, A), user.empty((1, 4), (1, 4))
    mixed = [mine[0][0], host[0][1]], [host[1][0], mine[1][1]]
    for factor, (inputs, outputs) in enumerate([host, mine, mixed, host], start=1):
        inputs[0].write(factor * X)
        inputs[1].write(A)
        compiled.run_by_index(0, inputs, outputs)
        assert_holds(outputs, [want.reshape(1, 4) for want in expected(factor * X, A)])


def test_a_driver_that_names_no_buffer_as_the_whole() -> None:
    """As Intel's runtime does of one in shared memory, which is no part of another."""
    buffer = SimpleNamespace(get_info=raises(opencl_seam.error(2, "clGetMemObjectInfo")))
    assert CLUserBuffer(buffer).whole is buffer


def test_several_threads(options: dict[str, Any]) -> None:
    """Each has its own model on the same device."""
    wrong: list[BaseException] = []

    def used(work: Callable[[], None]) -> None:
        try:
            for _ in range(5):
                work()
        except BaseException as error:
            wrong.append(error)

    threads = [Thread(target=used, args=(lambda: assert_computes(options),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("way", ["mapped"], indirect=True)
def test_nothing_and_a_single_number(options: dict[str, Any]) -> None:
    """Tensors of no elements are not mapped, which OpenCL refuses; those of no dimensions are."""
    opened = device.Device(options["device"], profile=False, cache_dir=None)
    under_way: list[Any] = []
    moves = transfers.Mappings(opened, under_way)
    for value in (np.zeros((0, 3), np.int8), np.array(True), np.arange(12, dtype=np.int64).reshape(3, 4).T):
        buffer, got = opened.buffer(value.nbytes), np.zeros(value.shape, value.dtype)
        moves.upload("key", buffer, value)
        moves.download("key", buffer, got)
        opened.queue.finish()
        moves.land()
        np.testing.assert_array_equal(got, value)
    assert len(under_way) == 2
