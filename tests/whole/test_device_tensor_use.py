"""Tensors that stay on the device as users have them: between models, in compiled models, in files, and refused."""

from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.compiled_model import CompiledModel
from litecl.delegate import CLDelegate
from litecl.interpreter import DeviceTensor, DeviceTensors, Interpreter
from litecl.interpreter.errors import ArgumentError, ModelError, ShapeError
from litecl.tensor_buffer import TensorBuffer
from support import devices
from support.build import randn
from support.cache_models import SHAPE, feeds, named_alike, signatures, start, updated

_MODES: dict[str, dict[str, Any] | None] = {
    "numpy": None,
    "native": {"num_threads": 1},
    "OpenCL": {"device": devices.tested()[0]},
}
_BYTES = 4 * int(np.prod(SHAPE))


def opened(content: bytes, options: dict[str, Any] | None) -> Interpreter:
    delegates = [] if options is None else [CLDelegate(strict=True, **options)]
    interpreter = Interpreter(content, delegates=delegates)
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("options", [_MODES["native"], _MODES["OpenCL"]], ids=["native", "OpenCL"])
def test_between_interpreters(options: dict[str, Any]) -> None:
    """Models on one device pass a tensor on without a copy."""
    first, second = (opened(signatures(n), options) for n in (3, 1))
    rng, tensor, value = np.random.default_rng(7), DeviceTensor(SHAPE), np.zeros(SHAPE, np.float32)
    for at, interpreter in ((0, first), (3, second), (4, second), (5, first)):
        given = feeds(rng, int(interpreter is second), at)
        interpreter.get_signature_runner().run({"cache": tensor, **given}, {"new": tensor})
        value = updated(value, given["update"], at)
        np.testing.assert_array_equal(tensor.read(), value)
        assert at == 0 or interpreter.delegation_report().counters.bytes_given < _BYTES
    first.close()
    np.testing.assert_array_equal(tensor.read(), value)


def test_from_numpy_to_a_device_and_back() -> None:
    """A tensor of the host's moves to a device's memory, and numpy's kernels read it there."""
    rng, tensor, value = np.random.default_rng(8), DeviceTensor(SHAPE), np.zeros(SHAPE, np.float32)
    for at, mode in enumerate(("numpy", "native", "OpenCL", "numpy", "OpenCL")):
        given = feeds(rng, 1, at)
        opened(signatures(3, 1), _MODES[mode]).get_signature_runner("s1").run(
            {"cache": tensor, **given}, {"new": tensor}
        )
        value = updated(value, given["update"], at)
        np.testing.assert_array_equal(tensor.read(), value)
    native = opened(signatures(3, 1), _MODES["native"]).get_signature_runner("s1")
    with pytest.raises(ModelError, match="another OpenCL context"):
        native.run({"cache": tensor, **feeds(rng, 1, 9)}, {"new": tensor})
    np.testing.assert_array_equal(tensor.read(), value)


@pytest.mark.parametrize("options", [_MODES["native"], _MODES["OpenCL"]], ids=["native", "OpenCL"])
def test_compiled_models_take_them(options: dict[str, Any]) -> None:
    """In place of buffers: one for input and output, or two alternately."""
    delegate = CLDelegate(strict=True, **options)
    compiled = CompiledModel(Interpreter(named_alike(), delegates=[delegate]), None)  # type: ignore[arg-type]
    rng, value = np.random.default_rng(11), np.zeros(SHAPE, np.float32)
    caches = DeviceTensors({name: DeviceTensor(SHAPE) for name in "kv"})
    other = caches.fork()
    inputs = compiled.create_input_buffers(0)
    for at, (given, taken) in enumerate(pairwise([caches, caches, other, caches, caches])):
        update = randn(rng, 1, 2, 1, 16)
        inputs[2].write(update)
        inputs[3].write(start(at))
        compiled.run_by_index(0, [given["k"], given["v"], *inputs[2:]], [taken["k"], taken["v"]])
        before, value = value, updated(value, update, at)
        for tensor in taken.values():
            np.testing.assert_array_equal(tensor.read(), value)
        for tensor in given.values() if given is not taken else ():
            np.testing.assert_array_equal(tensor.read(), before)
        assert at < 2 or compiled.delegation_report().counters.bytes_to_device < _BYTES


@pytest.mark.parametrize("options", _MODES.values(), ids=_MODES)
def test_compiled_models_run_on_the_same_tensors(options: dict[str, Any] | None) -> None:
    """They are prepared for them once, however the other inputs and outputs come: in the buffers of the run before, in
    new ones, in arrays; after runs of another signature, and on host buffers alone.
    """
    interpreter = opened(signatures(3, 1), options)
    compiled = CompiledModel(interpreter, None)  # type: ignore[arg-type]
    rng, tensor, value = np.random.default_rng(19), DeviceTensor(SHAPE), np.zeros(SHAPE, np.float32)
    kept = [(compiled.create_input_buffers(i), compiled.create_output_buffers(i)) for i in (0, 1)]
    runs: list[set[Any]] = [set(), set()]
    for at, (which, how) in enumerate(product((1, 1, 0), ("kept", "kept", "new", "arrays", "kept", "host"))):
        given = feeds(rng, which, at)
        new = compiled.create_input_buffers(which), compiled.create_output_buffers(which)
        inputs, outputs = kept[which] if how == "kept" else new
        for buffer, array in zip(inputs[1:], given.values(), strict=True):
            buffer.write(array)
        if how == "arrays":
            inputs[1:] = [TensorBuffer.create_from_host_memory(array) for array in given.values()]
        if how == "host":
            inputs[0].write(value)
            compiled.run_by_index(which, inputs, outputs)
            got = outputs[0].read(value.size, np.float32).reshape(SHAPE)
        else:
            compiled.run_by_index(which, [tensor, *inputs[1:]], [tensor, outputs[1]])
            runs[which].add(compiled._exchange._runs[which])
            got = tensor.read()
        wanted = updated(value, given["update"], at)
        value = value if how == "host" else wanted
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(outputs[1].read(value.size, np.float32).reshape(SHAPE), np.abs(wanted))
        np.testing.assert_array_equal(tensor.read(), value)
    assert [len(each) for each in runs] == [1, 1]


@pytest.mark.parametrize("options", [_MODES["native"], _MODES["OpenCL"]], ids=["native", "OpenCL"])
def test_one_set_for_all_signatures(options: dict[str, Any]) -> None:
    """A region has no cache of its own while it is given tensors."""
    interpreter, rng, tensor = opened(named_alike(2, 1), options), np.random.default_rng(16), DeviceTensor(SHAPE)
    other = DeviceTensor(SHAPE)
    for which in (0, 1, 1):
        given = {"update": randn(rng, 1, 2, 2 - which, 16), "start": start(which)}
        interpreter.get_signature_runner(f"s{which}")(k=tensor, v=other, **given)
    assert all(row.arena_bytes < _BYTES for row in interpreter.delegation_report().partitions)  # type: ignore[attr-defined]
    array = np.zeros(SHAPE, np.float32)
    interpreter.get_signature_runner("s1")(k=array, v=array, **given)
    sizes = [row.arena_bytes for row in interpreter.delegation_report().partitions]  # type: ignore[attr-defined]
    assert [size >= 2 * _BYTES for size in sizes] == [False, True]


def test_what_does_not_fit() -> None:
    interpreter = opened(signatures(3, 1), _MODES["native"])
    runner, rng = interpreter.get_signature_runner("s1"), np.random.default_rng(12)
    given, good = feeds(rng, 1, 4), DeviceTensor.of(randn(rng, *SHAPE))
    value, closed = good.read(), DeviceTensor(SHAPE)
    closed.close()
    wrong: Sequence[tuple[type[Exception], str, Any, Any]] = (
        (ShapeError, "has the signature", DeviceTensor((1, 2, 1023, 16)), good),
        (ShapeError, "expected a DeviceTensor of float32", DeviceTensor(SHAPE, np.int32), good),
        (ShapeError, "expected a DeviceTensor of float32", good, DeviceTensor((1, 2, 1023, 16))),
        (ShapeError, "expected a DeviceTensor of float32", good, DeviceTensor(SHAPE, np.float16)),
        (ModelError, "closed", closed, good),
        (ModelError, "closed", good, closed),
        (ArgumentError, "expected a DeviceTensor, got ndarray", good, np.zeros(SHAPE, np.float32)),
    )
    for kind, message, cache, new in wrong:
        with pytest.raises(kind, match=message):
            runner.run({"cache": cache, **given}, {"new": new})
    with pytest.raises(ModelError, match=r"expected outputs among \['new', 'y'\], got \['other'\]"):
        runner.run({"cache": good, **given}, {"other": good})
    with pytest.raises(ModelError, match="expected inputs"):
        runner.run({"cache": good}, {"new": good})
    np.testing.assert_array_equal(good.read(), value)
    runner.run({"cache": good, **given}, {"new": good})
    np.testing.assert_array_equal(good.read(), updated(value, given["update"], 4))


@pytest.mark.parametrize("options", _MODES.values(), ids=_MODES)
def test_calls_in_a_row(options: dict[str, Any] | None) -> None:
    """A call that is like the last one is short, and one that is not is checked as the first one was."""
    interpreter = opened(signatures(3, 1), options)
    runner, rng = interpreter.get_signature_runner("s1"), np.random.default_rng(15)
    tensors, value = [DeviceTensor(SHAPE), DeviceTensor(SHAPE)], np.zeros(SHAPE, np.float32)

    def check(at: int, tensor: DeviceTensor, update: Any = None) -> None:
        nonlocal value
        given = feeds(rng, 1, at)
        if update is not None:
            given["update"] = update
        got = runner.run({"cache": tensor, **given}, {"new": tensor})
        value = updated(value, np.asarray(given["update"], np.float32), at)
        np.testing.assert_array_equal(tensor.read(), value)
        np.testing.assert_array_equal(got["y"], np.abs(value))

    for at in range(4):
        check(at, tensors[0])
    check(4, tensors[0], randn(rng, 1, 2, 16, 1).swapaxes(2, 3))
    for wrong in (np.zeros((1, 2, 1, 16)), np.zeros((2, 2, 1, 16), np.float32), "text", None):
        with pytest.raises(ModelError):
            runner.run({"cache": tensors[0], "update": wrong, "start": start(1)}, {"new": tensors[0]})
        check(5, tensors[0])
    with pytest.raises(ModelError, match="expected inputs"):
        runner.run({"cache": tensors[0], "start": start(1), "other": start(1)}, {"new": tensors[0]})
    tensors[1].write(value)
    for at in range(6, 9):
        check(at, tensors[1])
    array = runner(cache=value, **(given := feeds(rng, 1, 9)))["new"]
    np.testing.assert_array_equal(array, updated(value, given["update"], 9))
    check(10, tensors[1])
    interpreter.resize_tensor_input(0, (1, 2, 512, 16))
    interpreter.allocate_tensors()
    check(11, tensors[1])
    interpreter.close()
    with pytest.raises(ModelError, match="closed"):
        check(12, tensors[1])


def test_tensors_alone() -> None:
    with pytest.raises(ShapeError, match="negative"):
        DeviceTensor((2, -1))
    for dtype in (np.object_, "S"):
        with pytest.raises(ShapeError, match="expected a type of numbers"):
            DeviceTensor((2,), dtype)
    for arguments in (((2.5,),), ((2,), "nothing")):
        with pytest.raises(ArgumentError):
            DeviceTensor(*arguments)  # type: ignore[arg-type]
    tensor = DeviceTensor((2, 3), np.int8)
    assert (tensor.read().tolist(), tensor.nbytes) == ([[0] * 3] * 2, 6)
    for value in (np.zeros((3, 2), np.int8), np.zeros((2, 3), np.int16)):
        with pytest.raises(ShapeError, match=r"write: expected int8\[2, 3\]"):
            tensor.write(value)
    tensor.close()
    with pytest.raises(ModelError, match="closed"):
        tensor.read()
    runner = opened(signatures(1), None).get_signature_runner()
    assert runner.device_tensors() == {}
    assert {name: t.dtype for name, t in runner.device_tensors("cache", "start").items()} == {
        "cache": np.float32,
        "start": np.int32,
    }
    with pytest.raises(ModelError, match="'other' is none of"):
        runner.device_tensor("other")


@pytest.mark.parametrize("options", [_MODES["native"], _MODES["OpenCL"]], ids=["native", "OpenCL"])
def test_fork_save_and_load(options: dict[str, Any], tmp_path: Path) -> None:
    """Each set continues independently."""
    runner, rng = opened(named_alike(), options).get_signature_runner(), np.random.default_rng(13)
    caches, value = runner.device_tensors(), np.zeros(SHAPE, np.float32)
    update = randn(rng, 1, 2, 1, 16)
    runner(update=update, start=start(0), **caches)
    value = updated(value, update, 0)
    caches.save(tmp_path / "caches.npz")
    others = caches.fork(), DeviceTensors.load(tmp_path / "caches.npz")
    assert [others[1].nbytes, [*others[1]]] == [2 * _BYTES, ["k", "v"]]
    for at, each in enumerate((caches, *others), 1):
        update = randn(rng, 1, 2, 1, 16)
        runner(update=update, start=start(at), **each)
        for tensor in each.values():
            np.testing.assert_array_equal(tensor.read(), updated(value, update, at))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "caches.npz").read_bytes()[:-4000])
    (tmp_path / "text").write_text("no tensors")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in ("cut.npz", "text", "other.npz"):
        with pytest.raises(ModelError, match="no tensors that can be read"):
            DeviceTensors.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        DeviceTensors.load(tmp_path / "absent")


@pytest.mark.parametrize("kind", ["own", "integrated", "shared"])
def test_on_a_gpu(kind: str, tmp_path: Path) -> None:
    """Launches are queued one by one, on memory that the host copies, maps, or shares."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "own":
            options = devices.as_on_a_gpu(patch, tmp_path)
        else:
            options = devices.as_on_an_integrated_gpu(patch, tmp_path, has_svm=kind == "shared")
        interpreter, rng = opened(signatures(3, 1), options), np.random.default_rng(14)
        tensors, value = [DeviceTensor(SHAPE), DeviceTensor(SHAPE)], np.zeros(SHAPE, np.float32)
        for at, which, here, there in (
            (0, 0, 0, 0),
            (3, 1, 0, 0),
            (4, 1, 0, 1),
            (5, 1, 1, 0),
            (6, 0, 0, 0),
            (9, 1, 0, 0),
        ):
            given = feeds(rng, which, at)
            runner = interpreter.get_signature_runner(f"s{which}")
            got = runner.run({"cache": tensors[here], **given}, {"new": tensors[there]})
            before, value = value, updated(value, given["update"], at)
            np.testing.assert_array_equal(tensors[there].read(), value)
            np.testing.assert_array_equal(got["y"], np.abs(value))
            if here != there:
                np.testing.assert_array_equal(tensors[here].read(), before)
        by_array = runner(cache=value, **(given := feeds(rng, 1, 700)))
        np.testing.assert_array_equal(by_array["new"], updated(value, given["update"], 700))
        np.testing.assert_array_equal(tensors[0].read(), value)
