"""Inputs and outputs in memory that host and device share: nothing is copied, and nobody can tell."""

from collections.abc import Callable

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.opencl.devices.device import Device
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import EXP, SIN
from litecl.perf.feeds import outputs_of
from support.build import Graph, model, randn

RNG = np.random.default_rng(12)
SHAPE = (3, 4)


def chain() -> Model:
    """EXP and ADD: one region."""
    g = Graph()
    x = g.input(SHAPE)
    return model(g.build(g.op(ADD, [g.op(EXP, [x], NoOptions()), x], AddOptions())))


def prepared(model_: Model, deny_ops: tuple[str, ...] = ()) -> Interpreter:
    interpreter = Interpreter(model_, delegates=[CLDelegate(deny_ops=deny_ops, min_nodes_per_partition=1)])
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return output(interpreter)


def output(interpreter: Interpreter) -> np.ndarray:
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.opencl
def test_what_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    x = randn(RNG, *SHAPE)
    interpreter = prepared(chain())
    run(interpreter, x)
    counters = interpreter.delegation_report().counters
    if interpreter.delegation_report().device.startswith(("basic", "pthread")):
        assert (counters.bytes_to_device, counters.bytes_to_host) == (0, 0)
    monkeypatch.setattr(Device, "has_svm", property(lambda self: False, lambda self, value: None), raising=False)
    private = prepared(chain())
    np.testing.assert_array_equal(run(private, x), output(interpreter))
    counters = private.delegation_report().counters
    assert (counters.bytes_to_device, counters.bytes_to_host) == (x.nbytes, x.nbytes)


def test_outputs_that_were_read_stay_as_they_were() -> None:
    interpreter = prepared(chain())
    inputs = [randn(RNG, *SHAPE) for _ in range(2)]
    results = [run(interpreter, x) for x in inputs]
    for x, result in zip(inputs, results, strict=True):
        np.testing.assert_allclose(result, np.exp(x) + x, rtol=1e-5)


def test_an_output_does_not_follow_an_input_that_is_set_later() -> None:
    for build in (chain, reshaped):
        interpreter = prepared(build())
        result = run(interpreter, randn(RNG, *SHAPE))
        interpreter.set_tensor(0, randn(RNG, *SHAPE))
        np.testing.assert_array_equal(output(interpreter), result)


def reshaped() -> Model:
    """An output that lies where the input does, and one more that is computed."""
    g = Graph()
    x = g.input(SHAPE)
    flat = g.op(RESHAPE, [x, g.const(np.array([12], np.int32))], ReshapeOptions())
    return model(g.build(flat, g.op(EXP, [x], NoOptions())))


def test_inputs_stay_from_invoke_to_invoke() -> None:
    interpreter = prepared(chain())
    x = randn(RNG, *SHAPE)
    first = run(interpreter, x)
    interpreter.invoke()
    np.testing.assert_array_equal(output(interpreter), first)
    np.testing.assert_array_equal(interpreter.get_tensor(0), x)


def test_an_input_can_be_written_in_place() -> None:
    interpreter = prepared(chain())
    memory: Callable[[], np.ndarray] = interpreter.tensor(0)
    x = randn(RNG, *SHAPE)
    memory()[...] = x
    interpreter.invoke()
    np.testing.assert_allclose(output(interpreter), np.exp(x) + x, rtol=1e-5)


def test_an_input_that_is_set_belongs_to_the_interpreter() -> None:
    for deny_ops in ((), ("EXP", "ADD")):
        interpreter = prepared(chain(), deny_ops)
        x = randn(RNG, *SHAPE)
        interpreter.set_tensor(0, x)
        expected = np.exp(x) + x
        x[...] = 7
        interpreter.invoke()
        np.testing.assert_allclose(output(interpreter), expected, rtol=1e-5)


def test_inputs_and_outputs_that_the_cpu_reads_too() -> None:
    g = Graph()
    x = g.input(SHAPE)
    grown = g.op(EXP, [x], NoOptions())
    model_ = model(g.build(grown, g.op(SIN, [grown], NoOptions()), g.op(SIN, [x], NoOptions())))
    interpreter = prepared(model_, ("SIN",))
    for value in (randn(RNG, *SHAPE) for _ in range(2)):
        run(interpreter, value)
        results = outputs_of(interpreter)
        expected = (np.exp(value), np.sin(np.exp(value)), np.sin(value))
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)


def test_inputs_survive_a_resize_of_others() -> None:
    g = Graph()
    x, y = g.input(SHAPE), g.input((1, 4), signature=(-1, 4))
    interpreter = prepared(model(g.build(g.op(ADD, [x, y], AddOptions()))))
    value = randn(RNG, *SHAPE)
    interpreter.set_tensor(x, value)
    interpreter.resize_tensor_input(y, SHAPE)
    interpreter.allocate_tensors()
    other = randn(RNG, *SHAPE)
    interpreter.set_tensor(y, other)
    interpreter.invoke()
    np.testing.assert_allclose(output(interpreter), value + other, rtol=1e-6)
