"""Buffers of a ``CompiledModel``: who owns their memory, and what is copied."""

from typing import Any

import ai_edge_litert.compiled_model as theirs
import numpy as np
import pytest
from ai_edge_litert.tensor_buffer import TensorBuffer as TheirBuffer

import litecl.compiled_model as ours
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import TANH
from support.build import Graph, model, randn
from support.compiled import RNG, A, X, accumulator, buffers, compiled, cpu, expected, run
from support.pattern_models import denoiser


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
    """Sets are used alternately and read late: each keeps its values, whichever had the model's memory first."""
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
    """The caller's next write must not change an earlier answer."""
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
    model_ = compiled(ours, write(model(g.build(y, y))), options=ours.Options(cpu_options=cpu(mode)))
    inputs, outputs = buffers(model_)
    for value in (1.0, 2.0):
        run(model_, inputs, outputs, np.full(2, value, np.float32))
        for buffer in outputs:
            np.testing.assert_allclose(buffer.array, np.tanh(value), rtol=1e-5)
        outputs[0].array.fill(9)
        np.testing.assert_allclose(outputs[1].array, np.tanh(value), rtol=1e-5)


@pytest.mark.parametrize("mode", ["device", "numpy"])
def test_a_variable_is_not_handed_out(mode: str) -> None:
    """Writing into an output changes no state."""
    model_ = compiled(ours, write(accumulator()), options=ours.Options(cpu_options=cpu(mode)))
    inputs, outputs = buffers(model_)
    for turn in (1, 2, 3):
        run(model_, inputs, outputs, np.ones(3, np.float32))
        assert outputs[0].read(3, np.float32).tolist() == [turn] * 3
        outputs[0].array.fill(99)


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
