"""Caches that a signature updates: written in place on the device, and nobody sees it but by the time that it takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litecl.compiled_model import CompiledModel
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.schema import TensorType as T
from support import devices
from support.build import Graph, model, randn
from support.cache_models import SHAPE, signatures, start, updated

_MODES: Sequence[dict[str, Any]] = ({"num_threads": 1}, {"num_threads": 2}, {"queue_loops": True}, {"profile": True})


def opened(content: bytes, **options: Any) -> Interpreter:
    interpreter = Interpreter(content, delegates=[CLDelegate(strict=True, **options)])
    interpreter.allocate_tensors()
    return interpreter


def overwritten(interpreter: Interpreter) -> list[int]:
    """Return the number of inputs that each region overwrites."""
    return [len(plan.overwritten) for d in interpreter._delegations for plan in d.plans.values()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", _MODES, ids=str)
def test_invoke_again(options: dict[str, Any]) -> None:
    """Inputs keep their values, so an invoke repeats its work; outputs are those of the last one."""
    interpreter, rng = opened(signatures(3), device="native", **options), np.random.default_rng(1)
    assert overwritten(interpreter) == [1]
    cache, update = randn(rng, *SHAPE), randn(rng, 1, 2, 3, 16)
    inputs, (new, y) = interpreter._model.subgraphs[0].inputs, interpreter._model.subgraphs[0].outputs
    interpreter.set_tensor(inputs[0], cache)
    interpreter.set_tensor(inputs[1], update)
    for at in (5, 9, 9, 700, 2000):
        interpreter.set_tensor(inputs[2], start(at))
        interpreter.invoke()
        wanted = updated(cache, update, min(at, 1021))
        np.testing.assert_array_equal(interpreter.get_tensor(new), wanted)
        np.testing.assert_array_equal(interpreter.get_tensor(y), np.abs(wanted))
        np.testing.assert_array_equal(interpreter.get_tensor(inputs[0]), cache)
    interpreter.tensor(inputs[0])()[...] = 1
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(new), updated(np.ones(SHAPE, np.float32), update, 1021))


@pytest.mark.parametrize("options", [*_MODES, {"device": devices.tested()[0]}], ids=[*map(str, _MODES), "OpenCL"])
@pytest.mark.parametrize("more", [{}, {"reads": True}, {"kept": True}], ids=str)
def test_signatures_in_turns(options: dict[str, Any], more: dict[str, Any]) -> None:
    """Given arrays and returned arrays keep their values."""
    interpreter, rng = opened(signatures(3, 1, **more), **options), np.random.default_rng(1)
    assert overwritten(interpreter) == [int("reads" not in more)] * 2
    runners = [interpreter.get_signature_runner(f"s{i}") for i in range(2)]
    cache = np.zeros(SHAPE, np.float32)
    seen: list[tuple[Array, Array]] = []
    for at, which in ((0, 0), (3, 1), (4, 1), (5, 0), (8, 1), (8, 1), (1023, 1)):
        update = randn(rng, 1, 2, (3, 1)[which], 16)
        got = runners[which](cache=cache, update=update, start=start(at))
        wanted = updated(cache, update, at)
        np.testing.assert_array_equal(got["new"], wanted)
        np.testing.assert_array_equal(got["y"], wanted + cache if more.get("reads") else np.abs(wanted))
        if "old" in got:
            np.testing.assert_array_equal(got["old"], cache)
        seen += [(got["new"], wanted), (cache, cache.copy())]
        cache = got["new"]
    for array, wanted in seen:
        np.testing.assert_array_equal(array, wanted)


def test_invoke_after_a_signature() -> None:
    """The first subgraph runs again on the call's values, whatever happened to the arrays since."""
    interpreter, rng = opened(signatures(3)), np.random.default_rng(1)
    cache, update = randn(rng, *SHAPE), randn(rng, 1, 2, 3, 16)
    wanted = interpreter.get_signature_runner()(cache=cache, update=update, start=start(7))["new"]
    cache[...] = 5
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter._model.subgraphs[0].outputs[0]), wanted)


def test_all_tensors_kept() -> None:
    interpreter = Interpreter(
        signatures(3), delegates=[CLDelegate(strict=True)], experimental_preserve_all_tensors=True
    )
    rng = np.random.default_rng(1)
    cache, update = randn(rng, *SHAPE), randn(rng, 1, 2, 3, 16)
    for _ in range(2):
        got = interpreter.get_signature_runner()(cache=cache, update=update, start=start(7))
        np.testing.assert_array_equal(got["new"], updated(cache, update, 7))


def test_one_buffer_for_input_and_output() -> None:
    """Nothing copies the cache after the first run: it stays where it is."""
    compiled, rng = CompiledModel.from_buffer(signatures(3, 1)), np.random.default_rng(1)
    wanted = np.zeros(SHAPE, np.float32)
    inputs, outputs = compiled.create_input_buffers(1), compiled.create_output_buffers(1)
    for at in range(6):
        update = randn(rng, 1, 2, 1, 16)
        wanted = updated(wanted, update, at)
        inputs[1].write(update)
        inputs[2].write(start(at))
        compiled.run_by_index(1, inputs, [inputs[0], outputs[1]])
        np.testing.assert_array_equal(inputs[0].read(wanted.size, np.float32).reshape(SHAPE), wanted)
        np.testing.assert_array_equal(outputs[1].read(wanted.size, np.float32).reshape(SHAPE), np.abs(wanted))
        counters = compiled._interpreter.delegation_report().counters
        assert not at or counters.bytes_to_device < wanted.nbytes
        assert counters.bytes_to_host < wanted.nbytes
    compiled.run_by_index(1, inputs, outputs)  # another output: what is input only stays as it is
    np.testing.assert_array_equal(inputs[0].read(wanted.size, np.float32).reshape(SHAPE), wanted)


@pytest.mark.parametrize("caches", [(1, 0), (0, 0), (1, 1)])
def test_caches_change_places(caches: tuple[int, int]) -> None:
    """Two that the last run has left in place are given to each other's inputs, or one to both."""
    g = Graph("s0")
    inputs = [g.input(SHAPE), g.input(SHAPE), g.input((1, 2, 1, 16)), g.input((4,), T.INT32)]
    new = [g.op(DYNAMIC_UPDATE_SLICE, [cache, *inputs[2:]], NoOptions()) for cache in inputs[:2]]
    compiled, rng = CompiledModel.from_buffer(write(model(g.build(*new)))), np.random.default_rng(1)
    buffers = compiled.create_input_buffers(0)
    values, update = [randn(rng, *SHAPE) for _ in range(2)], randn(rng, 1, 2, 1, 16)
    for buffer, value in zip(buffers, (*values, update, start(4)), strict=True):
        buffer.write(value)
    compiled.run_by_index(0, buffers, buffers[:2])
    buffers[3].write(start(9))
    given = [buffers[i] for i in caches]
    outputs = compiled.create_output_buffers(0)
    compiled.run_by_index(0, [*given, *buffers[2:]], outputs)
    for output, i in zip(outputs, caches, strict=True):
        wanted = updated(updated(values[i], update, 4), update, 9)
        np.testing.assert_array_equal(output.read(wanted.size, np.float32).reshape(SHAPE), wanted)
    if caches == (1, 0):
        compiled.run_by_index(0, [*outputs, *buffers[2:]], outputs[::-1])
        for output, i in zip(outputs[::-1], caches, strict=True):
            wanted = updated(updated(values[i], update, 4), update, 9)
            np.testing.assert_array_equal(output.read(wanted.size, np.float32).reshape(SHAPE), wanted)


def test_two_buffers_in_turns_and_another_signature() -> None:
    compiled, rng = CompiledModel.from_buffer(signatures(3, 1)), np.random.default_rng(1)
    caches = [compiled.create_input_buffers(1)[0], compiled.create_output_buffers(1)[0]]
    wanted, before = np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.float32)
    for step, (at, which) in enumerate(((0, 0), (3, 1), (4, 1), (5, 0), (8, 1))):
        update = randn(rng, 1, 2, (3, 1)[which], 16)
        before, wanted = wanted, updated(wanted, update, at)
        inputs, outputs = compiled.create_input_buffers(which), compiled.create_output_buffers(which)
        inputs[1].write(update)
        inputs[2].write(start(at))
        given, taken = caches[step % 2], caches[1 - step % 2]
        compiled.run_by_index(which, [given, *inputs[1:]], [taken, outputs[1]])
        np.testing.assert_array_equal(taken.read(wanted.size, np.float32).reshape(SHAPE), wanted)
        np.testing.assert_array_equal(given.read(wanted.size, np.float32).reshape(SHAPE), before)
