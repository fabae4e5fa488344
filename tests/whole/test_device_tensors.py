"""Tensors that stay on the device between the calls of signatures: the same values as arrays, and nothing is copied."""

import gc
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.delegate import CLDelegate
from litecl.interpreter import DeviceTensor, Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.schema import TensorType as T
from support import devices
from support.build import Graph, model, randn
from support.cache_models import SHAPE, feeds, named_alike, signatures, start, updated

REFERENCE = OpResolverType.BUILTIN_REF
_CL = devices.tested()[0]
_MODES: dict[str, dict[str, Any] | None] = {
    "numpy": None,
    "native": {"num_threads": 1},
    "native, threads": {"num_threads": 2},
    "native, queued": {"queue_loops": True},
    "native, profile": {"profile": True},
    "native, cut": {"deny_ops": ["ABS", "ADD"]},
    "OpenCL": {"device": _CL},
    "OpenCL, one thread": {"device": devices.calling_thread()},
    "OpenCL, cut": {"device": _CL, "deny_ops": ["ABS", "ADD"]},
}
everywhere = pytest.mark.parametrize("options", _MODES.values(), ids=_MODES)
_BYTES = 4 * int(np.prod(SHAPE))
_STEPS = ((0, 0), (3, 1), (4, 1), (5, 0), (8, 1), (1023, 1))  # where, and which signature


def opened(content: bytes, options: dict[str, Any] | None, **more: Any) -> Interpreter:
    delegates = [] if options is None else [CLDelegate(strict=True, dynamic_range="reference", **options)]
    interpreter = Interpreter(content, delegates=delegates, **more)
    interpreter.allocate_tensors()
    return interpreter


@everywhere
@pytest.mark.parametrize("more", [{}, {"reads": True}, {"kept": True}], ids=str)
def test_a_cache_stays(options: dict[str, Any] | None, more: dict[str, Any]) -> None:
    """Two signatures use it alternately; nothing of its size is copied if one kernel writes it in place."""
    interpreter, rng = opened(signatures(3, 1, **more), options), np.random.default_rng(1)
    runners = [interpreter.get_signature_runner(f"s{i}") for i in range(2)]
    tensor, cache = DeviceTensor(SHAPE), np.zeros(SHAPE, np.float32)
    for at, which in _STEPS:
        given = feeds(rng, which, at)
        got = runners[which].run({"cache": tensor, **given}, {"new": tensor})
        wanted = updated(cache, given["update"], at)
        assert got["new"] is tensor
        np.testing.assert_array_equal(tensor.read(), wanted)
        np.testing.assert_array_equal(got["y"], wanted + cache if more.get("reads") else np.abs(wanted))
        if "old" in got:
            np.testing.assert_array_equal(got["old"], cache)
        cache = wanted
        if options is not None and not more and "deny_ops" not in options and at:  # first it moves to the device
            cost = interpreter.delegation_report().counters
            assert cost.bytes_to_device + cost.bytes_on_device + cost.bytes_given < _BYTES / 64
            assert cost.bytes_to_host + cost.bytes_returned <= 2 * _BYTES  # y


@everywhere
def test_by_name(options: dict[str, Any] | None) -> None:
    """An output of an input's name takes its place; arrays and tensors give the same, and LiteRT's kernels too."""
    content = named_alike()
    interpreter, rng = opened(content, options), np.random.default_rng(2)
    runner, caches = interpreter.get_signature_runner(), interpreter.get_signature_runner().device_tensors()
    theirs = LiteRT(model_content=content, experimental_op_resolver_type=REFERENCE).get_signature_runner()
    assert {name: tensor.shape for name, tensor in caches.items()} == {"k": SHAPE, "v": SHAPE}
    arrays = {name: np.zeros(SHAPE, np.float32) for name in caches}
    for at in (0, 1, 2, 900):
        given = {"update": randn(rng, 1, 2, 1, 16), "start": start(at)}
        got = runner(**given, **caches)
        wanted = theirs(**given, **arrays)
        assert {name: value is caches[name] for name, value in got.items()} == {"k": True, "v": True}
        for name, value in arrays.items():
            np.testing.assert_array_equal(caches[name].read(), wanted[name])
            assert not np.array_equal(value, wanted[name])
        arrays = {name: wanted[name] for name in arrays}


@everywhere
def test_two_in_turns(options: dict[str, Any] | None) -> None:
    """The one that is only read keeps its value."""
    interpreter, rng = opened(signatures(3, 1), options), np.random.default_rng(3)
    tensors = [DeviceTensor(SHAPE), DeviceTensor(SHAPE)]
    values = [np.zeros(SHAPE, np.float32)] * 2
    for step, (at, which) in enumerate(_STEPS):
        here, there = step % 2, 1 - step % 2
        given = feeds(rng, which, at)
        runner = interpreter.get_signature_runner(f"s{which}")
        runner.run({"cache": tensors[here], **given}, {"new": tensors[there]})
        values[there] = updated(values[here], given["update"], at)
        for tensor, value in zip(tensors, values, strict=True):
            np.testing.assert_array_equal(tensor.read(), value)
        if options is not None and "deny_ops" not in options:
            assert interpreter.delegation_report().counters.bytes_on_device == _BYTES


@everywhere
@pytest.mark.parametrize(
    ("given", "taken"), [("ab", "ba"), ("aa", "ab"), ("aa", "ba"), ("ab", "aa"), ("ab", "bc"), ("ba", "ac")]
)
def test_in_each_others_places(options: dict[str, Any] | None, given: str, taken: str) -> None:
    """One tensor as two inputs, or one input's as the output of the other: each is read as it was before the run."""
    interpreter, rng = opened(named_alike(), options), np.random.default_rng(4)
    runner = interpreter.get_signature_runner()
    values = {name: randn(rng, *SHAPE) for name in "abc"}
    tensors = {name: DeviceTensor.of(value) for name, value in values.items()}
    for at in (5, 9):
        feed = {"update": randn(rng, 1, 2, 1, 16), "start": start(at)}
        inputs = {name: tensors[x] for name, x in zip("kv", given, strict=True)}
        outputs = {name: tensors[x] for name, x in zip("kv", taken, strict=True)}
        if taken == "aa":
            with pytest.raises(ModelError, match="two outputs share memory"):
                runner.run({**inputs, **feed}, outputs)
        else:
            runner.run({**inputs, **feed}, outputs)
            values |= {x: updated(values[y], feed["update"], at) for x, y in zip(taken, given, strict=True)}
        for name, value in values.items():
            np.testing.assert_array_equal(tensors[name].read(), value)


@everywhere
@pytest.mark.parametrize("shape", [(1, 2, 8, 16), (1, 2, 0, 16)])
def test_small_ones(options: dict[str, Any] | None, shape: tuple[int, ...]) -> None:
    g = Graph("s0")
    cache, update, at = g.input(shape), g.input((1, 2, min(1, shape[2]), 16)), g.input((4,), T.INT32)
    new = g.op(DYNAMIC_UPDATE_SLICE, [cache, update, at], NoOptions())
    signature = Signature("s0", {"cache": cache, "update": update, "start": at}, {"cache": new}, 0)
    interpreter = opened(write(model(g.build(new), signatures=[signature])), options)
    tensor, value, rng = DeviceTensor(shape), np.zeros(shape, np.float32), np.random.default_rng(5)
    for position in (0, 3, 7, 3):
        row = randn(rng, *interpreter.get_input_details()[1]["shape"])
        interpreter.get_signature_runner()(cache=tensor, update=row, start=start(position))
        value = updated(value, row, position)
        np.testing.assert_array_equal(tensor.read(), value)


@everywhere
def test_beside_arrays(options: dict[str, Any] | None) -> None:
    """Invokes and calls on arrays before and after are independent of it; views of their outputs keep their values."""
    interpreter, rng = opened(signatures(3, 1), options), np.random.default_rng(6)
    runner, (graph, _) = interpreter.get_signature_runner("s0"), interpreter.model.subgraphs
    array, tensor = randn(rng, *SHAPE), DeviceTensor.of(randn(rng, *SHAPE))
    value = tensor.read()
    for at in (3, 40):
        by_array = {"cache": array, **feeds(rng, 0, at)}
        wanted = updated(array, by_array["update"], at)
        np.testing.assert_array_equal(runner(**by_array)["new"], wanted)
        view = interpreter.tensor(graph.outputs[0])()
        given = feeds(rng, 0, at + 1)
        runner.run({"cache": tensor, **given}, {"new": tensor})
        value = updated(value, given["update"], at + 1)
        np.testing.assert_array_equal(view, wanted)
        np.testing.assert_array_equal(interpreter.get_tensor(graph.outputs[0]), value)
        np.testing.assert_array_equal(interpreter.get_tensor(graph.outputs[1]), np.abs(value))
        interpreter.set_tensor(graph.inputs[0], array)
        interpreter.invoke()  # with the update of the last call
        wanted = updated(array, given["update"], at + 1)
        np.testing.assert_array_equal(interpreter.get_tensor(graph.outputs[0]), wanted)
        np.testing.assert_array_equal(tensor.read(), value)


@everywhere
def test_all_tensors_preserved_and_limits(options: dict[str, Any] | None) -> None:
    for more in ({"experimental_preserve_all_tensors": True}, {"memory_limit": 1 << 30}, {"time_limit": 60.0}):
        interpreter, rng = opened(signatures(3, 1), options, **more), np.random.default_rng(9)
        tensor, value = DeviceTensor(SHAPE), np.zeros(SHAPE, np.float32)
        for at in (3, 4):
            given = feeds(rng, 1, at)
            interpreter.get_signature_runner("s1").run({"cache": tensor, **given}, {"new": tensor})
            value = updated(value, given["update"], at)
            np.testing.assert_array_equal(tensor.read(), value)


def test_the_device_takes_over() -> None:
    """With warm_up="background" it does so between two calls."""
    delegate = CLDelegate(warm_up="background", strict=True, dynamic_range="reference")
    interpreter, rng = Interpreter(named_alike(), delegates=[delegate]), np.random.default_rng(10)
    runner = interpreter.get_signature_runner()
    caches, value = runner.device_tensors(), np.zeros(SHAPE, np.float32)
    for at in range(400):
        update = randn(rng, 1, 2, 1, 16)
        runner(update=update, start=start(at), **caches)
        value = updated(value, update, at)
        if at % 20 == 0:
            np.testing.assert_array_equal(caches["k"].read(), value)
            np.testing.assert_array_equal(caches["v"].read(), value)
        if at > 20 and interpreter.delegation_report().claimed:
            break
    np.testing.assert_array_equal(caches["v"].read(), value)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("goes_on", [False, True])
def test_the_memory_of_a_closed_tensor(n: int, goes_on: bool) -> None:
    """OpenCL's kernels hold it until they run on another tensor, or are gone."""
    interpreter, rng = opened(signatures(n), _MODES["OpenCL"]), np.random.default_rng(17)
    runner, tensors = interpreter.get_signature_runner(), [DeviceTensor(SHAPE), DeviceTensor(SHAPE)]
    held = []
    for tensor in tensors if goes_on else tensors[:1]:
        runner.run({"cache": tensor, **feeds(rng, 0, 0)}, {"new": tensor})
        memory: Any = tensor.memory
        held.append(cl.MemoryObject.from_int_ptr(memory.buffer.int_ptr, retain=True))
        tensor.close()
        del memory
    if not goes_on:
        interpreter.close()
        del interpreter, runner
    gc.collect()
    assert [buffer.reference_count == 1 for buffer in held] == [True, False][: len(held)]  # ours
