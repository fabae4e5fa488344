"""Buffers of a ``CompiledModel`` in the user's OpenCL memory: copies that are avoided, and buffers that don't fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.compiled_model import TensorBuffer
from litecl.delegate.opencl.devices.device import devices
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import TANH
from support.build import Graph, model, randn
from support.cl_user import User, assert_holds, by_numpy, from_cl
from support.compiled import CONTENT, RNG, A, X, accumulator, expected
from support.devices import as_on_a_gpu
from support.pattern_models import denoiser, quantized_classifier

SINGLE, THREADS = devices()[0], devices()[1]
MODES: dict[str, tuple[Any, dict[str, Any]]] = {
    "one thread": (SINGLE, {}),
    "threads": (THREADS, {}),
    "queued": (THREADS, {"queue_loops": True}),
    "profile": (THREADS, {"profile": True}),
}


def forbid_copies(patch: pytest.MonkeyPatch) -> None:
    """Make every command that copies memory an error."""

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("something was copied")

    for name in ("enqueue_copy", "enqueue_map_buffer"):
        patch.setattr(cl, name, refused)


CONTENTS = {"two launches": CONTENT, "one kernel": write(quantized_classifier())}


def values_for(content: bytes) -> list[np.ndarray]:
    """Random inputs of a model."""
    details = Interpreter(content).get_input_details()
    types = [d["dtype"] for d in details]
    floats = [randn(RNG, *d["shape"]) for d in details]
    return [x if kind == np.float32 else (50 * x).astype(kind) for x, kind in zip(floats, types, strict=True)]


@pytest.mark.parametrize("mode", [*MODES, "as a GPU"])
@pytest.mark.parametrize("name", CONTENTS)
def test_nothing_is_copied(name: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs are read, and outputs written, where the user has them, run after run, also in other buffers."""
    content, (device, options) = CONTENTS[name], MODES.get(mode, (THREADS, {}))
    if mode == "as a GPU":
        options = {"cache_dir": as_on_a_gpu(monkeypatch, tmp_path)["cache_dir"]}
    user = User(device)
    model_ = user.compiled(content, **options)
    assert model_.is_fully_accelerated()
    for turn in range(3):
        values = values_for(content)
        wanted = by_numpy(content, *values)
        inputs, outputs = user.holding(*values), user.holding(*map(np.zeros_like, wanted))
        if not turn:
            model_.run_by_index(0, inputs, outputs)  # binaries are kept after it, which reads them
        with monkeypatch.context() as patch:
            forbid_copies(patch)
            model_.run_by_index(0, inputs, outputs)
        counters = model_.delegation_report().counters
        assert (counters.bytes_to_device, counters.bytes_to_host) == (0, 0)
        assert_holds(outputs, wanted)
        assert_holds(inputs, values)


@pytest.mark.parametrize("mode", MODES)
def test_buffers_of_host_and_device_in_turns(mode: str) -> None:
    """Each run reads and writes its own buffers, never those of earlier runs."""
    user = User(MODES[mode][0])
    model_ = user.compiled(CONTENT, **MODES[mode][1])
    host = model_.create_input_buffers(0), model_.create_output_buffers(0)
    mine = user.holding(X, A), user.empty((1, 4), (1, 4))
    mixed = [mine[0][0], host[0][1]], [host[1][0], mine[1][1]]
    for factor, (inputs, outputs) in enumerate([host, mine, mixed, host, mixed, mine], start=1):
        inputs[0].write(factor * X)
        inputs[1].write(A)
        for buffer in outputs:
            buffer.write(np.full((1, 4), np.nan, np.float32))
        model_.run_by_index(0, inputs, outputs)
        assert_holds(outputs, [want.reshape(1, 4) for want in expected(factor * X, A)])
        report = model_.delegation_report()
        launches = 1 if report.partitions[0].manner.runs == "one kernel" else 2
        assert (report.counters.kernel_launches, report.counters.host_syncs) == (launches, 1)


@pytest.mark.parametrize("mode", MODES)
def test_variables_and_states(mode: str) -> None:
    user = User(MODES[mode][0])
    model_ = user.compiled(accumulator(), **MODES[mode][1])
    host = model_.create_input_buffers(0), model_.create_output_buffers(0)
    host[0][0].write(np.ones(3, np.float32))
    sets = [host, *((user.holding(np.ones(3, np.float32)), user.empty((3,))) for _ in "12")]
    for turn in range(1, 8):
        inputs, outputs = sets[turn % 3]
        model_.run_by_index(0, inputs, outputs)
        assert outputs[0].read().tolist() == [turn] * 3
    model_, state = user.compiled(denoiser(), **MODES[mode][1]), np.zeros((1, 2, 16), np.float32)
    states, result = user.holding(state, state), user.empty((1, 1, 16))
    for frame in randn(RNG, 4, 1, 1, 16):
        model_.run_by_index(0, [*user.holding(frame), states[0]], [*result, states[1]])
        want, state = by_numpy(denoiser(), frame, state)
        states.reverse()
        assert_holds([*result, states[0]], [want, state])


def odd_model() -> bytes:
    """An input that is an output too, one that the CPU may read, outputs that are others' memory, and joined ones."""
    g = Graph()
    x, y = g.input((2, 3)), g.input((2, 3))
    double = g.op(MUL, [x, g.const(np.float32([2]))], MulOptions())
    flat = g.op(RESHAPE, [double, g.const(np.array([6], np.int32))], ReshapeOptions((6,)))
    tanh = g.op(TANH, [y], TANH.options())
    both = g.op(CONCATENATION, [double, tanh], ConcatenationOptions(axis=0))
    names = [double, flat, both, y, tanh]
    return write(model(g.build(*names), signatures=[Signature("m", {"x": x, "y": y}, {str(t): t for t in names})]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("deny", [[], ["TANH"]])
def test_what_cannot_lie_there_is_copied(mode: str, deny: list[str]) -> None:
    user, content = User(MODES[mode][0]), odd_model()
    model_ = user.compiled(content, **MODES[mode][1], deny_ops=deny)
    for _ in range(2):
        values = values_for(content)
        wanted = by_numpy(content, *values)
        outputs = user.empty(*(want.shape for want in wanted))
        model_.run_by_index(0, user.holding(*values), outputs)
        assert_holds(outputs, wanted)


def test_parts_of_a_buffer() -> None:
    user = User(THREADS)
    model_, align = user.compiled(CONTENT), THREADS.mem_base_addr_align // 8
    whole = user.buffer(np.zeros(4 * align, np.uint8))

    def part(number: int, *shape: int) -> TensorBuffer:
        return from_cl(whole.get_sub_region(number * align, 16), shape)

    x, a, y, sums = part(0, 1, 4), part(1, 4), part(2, 1, 4), part(3, 1, 4)
    x.write(X)
    a.write(A)
    model_.run_by_index(0, [x, a], [y, sums])
    assert_holds([y], [expected(X, A)[0].reshape(1, 4)])
    for other in (from_cl(whole, (1, 4)), y):
        with pytest.raises(ModelError, match="share memory"):
            model_.run_by_index(0, [x, a], [y, other])
    model_.run_by_index(0, [x, part(0, 4)], [y, sums])  # what is only read may be
    assert_holds([y], [expected(X, X[0])[0].reshape(1, 4)])
    model_.run_by_index(0, [x, a], [y, x])  # an output may take an input's place
    assert_holds([y, x], [want.reshape(1, 4) for want in expected(X, A)])


def test_other_shapes() -> None:
    """The preparation for a shape forgets the buffers of its last run."""
    user, b = User(SINGLE), randn(RNG, 3, 4)
    model_ = user.compiled(CONTENT)
    for value, mine in ((X, True), (b, False), (X, False), (b, True), (2 * X, True), (2 * b, False)):
        if mine:
            inputs, outputs = user.holding(value, A), user.empty(value.shape, value.shape)
            model_.resize_input_tensor(0, value.shape)
        else:
            inputs = [TensorBuffer.create_from_host_memory(given) for given in (value, A)]
            model_.resize_input_tensor(0, value.shape)
            outputs = model_.create_output_buffers(0)
        model_.run_by_index(0, inputs, outputs)
        assert_holds(outputs, [want.reshape(value.shape) for want in expected(value, A)])


def test_a_device_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU continues with the content of the user's buffers, and writes there."""
    user = User(THREADS)
    model_ = user.compiled(CONTENT)
    inputs, outputs = user.holding(X, A), user.empty((1, 4), (1, 4))
    model_.run_by_index(0, inputs, outputs)

    def fails(launches: Any, counters: Any) -> None:
        raise DelegateError("lost")

    (program,) = model_._interpreter._delegations[0]._programs.values()  # type: ignore[attr-defined]
    monkeypatch.setattr(type(program._execution._launches), "run", fails)
    for factor in (2, 3):  # the second time there is no region
        inputs[0].write(factor * X)
        model_.run_by_index(0, inputs, outputs)
        assert_holds(outputs, [want.reshape(1, 4) for want in expected(factor * X, A)])
    assert not model_.is_fully_accelerated()


def test_two_models_and_a_kernel_between() -> None:
    """The outputs of one are the inputs of the next, without the host."""
    g = Graph()
    moved = g.op(ADD, [g.input((1, 4)), g.const(A)], AddOptions())
    content = write(model(g.build(g.op(SOFTMAX, [moved], SoftmaxOptions(1.0)))))
    user = User(SINGLE)
    first, second = user.compiled(content), user.compiled(content)
    source = "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }"
    twice = cl.Kernel(cl.Program(user.context, source).build(), "twice")
    (x, middle, y), between = user.holding(X, X, X), user.buffer(X)
    middle = from_cl(between, (1, 4))
    first.run_by_index(0, [x], [middle])
    twice(user.queue, (4,), None, between)
    user.queue.finish()
    second.run_by_index(0, [middle], [y])
    assert_holds([y], by_numpy(content, 2 * by_numpy(content, X)[0]))
