"""A run that raises leaves tensors on the device as they were, or says that they are lost. Runs take turns on one."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.native.execution import NativeExecution
from litecl.interpreter import DeviceTensor, Interpreter
from litecl.interpreter.errors import ContentLost, DelegateError, ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Signature, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import DIV, DivOptions
from litecl.interpreter.ops.control import WHILE, WhileOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTMKernelType, LSTMOptions
from litecl.interpreter.options import CustomOptions
from litecl.interpreter.schema import ActivationFunctionType
from litecl.interpreter.schema import TensorType as T
from support import devices
from support.build import Graph, model, randn
from support.cache_models import SHAPE, signatures, start, updated
from support.loop_models import below, next_

RNG = np.random.default_rng(41)
_CL = devices.tested()[0]
places = pytest.mark.parametrize("device", ["native", _CL], ids=["native", "OpenCL"])


def opened(content: bytes, **options: Any) -> Interpreter:
    interpreter = Interpreter(content, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    return interpreter


def with_a_division() -> bytes:
    """A cache is updated, an LSTM's states too, and 6 is divided by an input: that fails for 0."""
    g = Graph("s0")
    cache, update, at = g.input(SHAPE), g.input((1, 2, 1, 16)), g.input((4,), T.INT32)
    x, divisor = g.input((2, 4)), g.input((), T.INT32)
    new = g.op(DYNAMIC_UPDATE_SLICE, [cache, update, at], NoOptions())
    weights, bias, states = g.const(randn(RNG, 16, 8, scale=0.3)), g.const(randn(RNG, 16)), [g.variable((2, 4))] * 1
    states.append(g.variable((2, 4)))
    options = LSTMOptions(ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC)
    y = g.op(BASIC_LSTM, [x, states[0], weights, bias, states[1]], options)
    quotient = g.op(DIV, [g.const(np.int32(6)), divisor], DivOptions())
    inputs = {"cache": cache, "update": update, "start": at, "x": x, "divisor": divisor}
    outputs = {"cache": new, "y": y, "quotient": quotient}
    return write(model(g.build(new, y, quotient), signatures=[Signature("s0", inputs, outputs, 0)]))


@pytest.mark.parametrize(
    "options",
    [
        None,
        {"num_threads": 1},
        {"num_threads": 2},
        {"device": _CL},
        {"num_threads": 1, "deny_ops": ["LSTM"]},
    ],
    ids=["interpreter", "one thread", "two threads", "OpenCL", "a part on the CPU"],
)
def test_a_node_of_the_cpu_that_fails(options: dict[str, Any] | None) -> None:
    """Caches and states are as before the run, and it can be run again."""
    content = with_a_division()
    interpreter = Interpreter(content, delegates=[] if options is None else [CLDelegate(**options)])
    runner, plain = interpreter.get_signature_runner(), Interpreter(content).get_signature_runner()
    value = randn(RNG, *SHAPE)
    tensor = DeviceTensor.of(value)
    for at, divisor in enumerate((2, 0, 3, 0, 0, 1)):
        given = {"update": randn(RNG, 1, 2, 1, 16), "start": start(at), "x": randn(RNG, 2, 4)}
        if divisor:
            got = runner(cache=tensor, divisor=np.int32(divisor), **given)
            wanted = plain(cache=value, divisor=np.int32(divisor), **given)
            value = updated(value, given["update"], at)
            np.testing.assert_allclose(got["y"], wanted["y"], rtol=1e-5, atol=1e-6)
            assert got["quotient"] == 6 // divisor
        else:
            with pytest.raises(ModelError, match="DIV"):
                runner(cache=tensor, divisor=np.int32(0), **given)
        np.testing.assert_array_equal(tensor.read(), value)


def test_a_loop_that_runs_too_often() -> None:
    """The cache is updated before the loop reaches its limit."""
    condition, body, g = Graph("condition"), Graph("body"), Graph("s0")
    i = condition.input((), T.INT32)
    less = condition.build(below(40)(condition, [i]))
    i = body.input((), T.INT32)
    more = body.build(next_(body, i))
    cache, update, at, count = g.input(SHAPE), g.input((1, 2, 1, 16)), g.input((4,), T.INT32), g.input((), T.INT32)
    new = g.op(DYNAMIC_UPDATE_SLICE, [cache, update, at], NoOptions())
    (end,) = g.node(WHILE, [count], [TensorSpec(T.INT32, ())], WhileOptions(1, 2))
    inputs, outputs = {"cache": cache, "update": update, "start": at, "count": count}, {"cache": new, "end": end}
    content = write(model(g.build(new, end), less, more, signatures=[Signature("s0", inputs, outputs, 0)]))
    interpreter = opened(content, max_loop_iterations=10, num_threads=1)
    runner, value = interpreter.get_signature_runner(), np.zeros(SHAPE, np.float32)
    caches = runner.device_tensors()
    for step, first in enumerate((35, 0, 33, 1)):
        row = randn(RNG, 1, 2, 1, 16)
        if first > 30:
            assert runner(update=row, start=start(step), count=np.int32(first), **caches)["end"] == 40
            value = updated(value, row, step)
        else:
            with pytest.raises(ModelError, match="more than 10 iterations"):
                runner(update=row, start=start(step), count=np.int32(first), **caches)
        np.testing.assert_array_equal(caches["cache"].read(), value)


def failing(interpreter: Interpreter, error: BaseException, *, before: bool = False) -> Callable[[], None]:
    """Let runs of all regions raise an error, before or after their launches; return what ends that."""
    (delegation,) = interpreter._delegations
    executions = {type(program._execution) for program in delegation._programs.values()}  # type: ignore[attr-defined]
    patch = pytest.MonkeyPatch()
    for kind in executions:
        if kind is NativeExecution:
            owners = [kind]
        else:
            owners = [type(program._execution._launches) for program in delegation._programs.values()]  # type: ignore[attr-defined]
        for owner in owners:
            real = owner.run

            def run(self: Any, counters: Any, real: Any = real) -> None:
                if not before:
                    real(self, counters)
                raise error

            patch.setattr(owner, "run", run)
    return patch.undo


@places
@pytest.mark.parametrize("strict", [True, False])
def test_a_device_that_fails(device: Any, strict: bool) -> None:
    """Where it was written over, the tensor is lost until it is written again; the CPU takes the model then."""
    interpreter = opened(signatures(3, 1), device=device, strict=strict)
    runner, value = interpreter.get_signature_runner("s1"), randn(RNG, *SHAPE)
    tensor, copy = DeviceTensor.of(value), DeviceTensor.of(value)
    given = {"update": randn(RNG, 1, 2, 1, 16), "start": start(4)}
    undo = failing(interpreter, DelegateError("gone"))
    with pytest.raises(ContentLost, match="gone"):
        runner.run({"cache": tensor, **given}, {"new": tensor})
    undo()
    for use in (tensor.read, tensor.fork, lambda: runner.run({"cache": tensor, **given}, {"new": copy})):
        with pytest.raises(ModelError, match="holds nothing certain"):
            use()
    np.testing.assert_array_equal(copy.read(), value)
    tensor.write(value)
    runner.run({"cache": tensor, **given}, {"new": tensor})
    np.testing.assert_array_equal(tensor.read(), updated(value, given["update"], 4))


@places
def test_the_cpu_takes_over_where_nothing_is_lost(device: Any) -> None:
    """An input that stays is still there, as nothing has written over it."""
    interpreter = opened(signatures(3, 1), device=device)
    runner, value = interpreter.get_signature_runner("s1"), randn(RNG, *SHAPE)
    tensors = [DeviceTensor.of(value), DeviceTensor(SHAPE)]
    given = {"update": randn(RNG, 1, 2, 1, 16), "start": start(4)}
    undo = failing(interpreter, DelegateError("gone"))
    got = runner.run({"cache": tensors[0], **given}, {"new": tensors[1]})
    undo()
    wanted = updated(value, given["update"], 4)
    np.testing.assert_array_equal(tensors[0].read(), value)
    np.testing.assert_array_equal(tensors[1].read(), wanted)
    np.testing.assert_array_equal(got["y"], np.abs(wanted))
    assert interpreter.delegation_report().failures  # type: ignore[attr-defined]
    runner.run({"cache": tensors[1], **given}, {"new": tensors[1]})
    np.testing.assert_array_equal(tensors[1].read(), wanted)


def test_a_fault_before_anything_is_written() -> None:
    """A variable that is not as planned, or a device that cannot begin, loses nothing."""
    interpreter = opened(signatures(3, 1), device="native")
    (delegation,) = interpreter._delegations
    runner, value = interpreter.get_signature_runner("s1"), randn(RNG, *SHAPE)
    tensor, given = DeviceTensor.of(value), {"update": randn(RNG, 1, 2, 1, 16), "start": start(4)}

    def check() -> None:
        raise DelegateError("no room")

    with pytest.MonkeyPatch.context() as patch:
        for program in delegation._programs.values():  # type: ignore[attr-defined]
            program.saved = False
        patch.setattr(delegation._device, "check", check, raising=False)  # type: ignore[attr-defined]
        runner.run({"cache": tensor, **given}, {"new": tensor})
    np.testing.assert_array_equal(tensor.read(), updated(value, given["update"], 4))


def test_a_fault_in_a_run_that_is_like_the_last_one() -> None:
    """Such a run takes a shorter way, and is as careful."""
    runner = opened(signatures(3, 1), device="native").get_signature_runner("s1")
    value, tensor = np.zeros(SHAPE, np.float32), DeviceTensor(SHAPE)

    def fails() -> None:
        raise DelegateError("gone")

    for at in range(4):
        given = {"update": randn(RNG, 1, 2, 1, 16), "start": start(at)}
        runner.run({"cache": tensor, **given}, {"new": tensor})
        value = updated(value, given["update"], at)
        np.testing.assert_array_equal(tensor.read(), value)
    quick: Any = runner._last and runner._last.run._quick
    quick._run_plan, quick.run = fails, type(quick).run.__get__(quick)  # not that of a run which cannot fail
    with pytest.raises(ContentLost, match="gone"):
        runner.run({"cache": tensor, **given}, {"new": tensor})
    with pytest.raises(ModelError, match="holds nothing certain"):
        tensor.read()
    tensor.write(value)
    runner.run({"cache": tensor, **given}, {"new": tensor})
    np.testing.assert_array_equal(tensor.read(), value)


@places
def test_an_interrupt(device: Any) -> None:
    """On the processor the tensor has its old or its new value; another device may have been interrupted halfway."""
    interpreter = opened(signatures(3, 1), device=device)
    runner, value = interpreter.get_signature_runner("s1"), randn(RNG, *SHAPE)
    given = {"update": randn(RNG, 1, 2, 1, 16), "start": start(4)}
    for before in (True, False):
        tensor = DeviceTensor.of(value)
        undo = failing(interpreter, KeyboardInterrupt(), before=before)
        with pytest.raises(KeyboardInterrupt):
            runner.run({"cache": tensor, **given}, {"new": tensor})
        undo()
        if device == "native":
            np.testing.assert_array_equal(tensor.read(), value if before else updated(value, given["update"], 4))
        else:
            with pytest.raises(ModelError, match="holds nothing certain"):
                tensor.read()
        tensor.write(value)
        runner.run({"cache": tensor, **given}, {"new": tensor})
        np.testing.assert_array_equal(tensor.read(), updated(value, given["update"], 4))


def test_one_run_at_a_time() -> None:
    """While a run uses a tensor, any other use, in its thread or another, is refused and changes nothing."""
    seen: list[Any] = []

    def attempt() -> None:
        for use in (tensor.read, tensor.fork, tensor.close, lambda: tensor.write(value), run_elsewhere):
            try:
                use()
                seen.append(None)
            except ModelError as error:
                seen.append(str(error))

    def look(options: bytes, inputs: list[Array]) -> list[Array]:
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        attempt()
        return [inputs[0] + 0]

    def run_elsewhere() -> None:
        other.run({"cache": tensor, "update": row, "start": start(9)}, {"new": tensor})

    g = Graph("s0")
    cache, update, at = g.input(SHAPE), g.input((1, 2, 1, 16)), g.input((4,), T.INT32)
    new = g.op(DYNAMIC_UPDATE_SLICE, [cache, update, at], NoOptions())
    custom = Op(
        "look", CustomOptions, lambda o, i: [TensorSpec(T.FLOAT32, (1, 2, 1, 16))], lambda o, i: [], custom=True
    )
    (y,) = g.node(custom, [update], [TensorSpec(T.FLOAT32, (1, 2, 1, 16))], CustomOptions(b""))
    inputs, outputs = {"cache": cache, "update": update, "start": at}, {"cache": new, "y": y}
    content = write(model(g.build(new, y), signatures=[Signature("s0", inputs, outputs, 0)]))
    runner = Interpreter(content, delegates=[CLDelegate()], custom_ops={"look": look}).get_signature_runner()
    other = opened(signatures(3, 1)).get_signature_runner("s1")
    value, row = randn(RNG, *SHAPE), randn(RNG, 1, 2, 1, 16)
    tensor = DeviceTensor.of(value)
    runner(cache=tensor, update=row, start=start(4))
    assert len(seen) == 10
    assert all(said is not None and "in use by another run" in said for said in seen)
    np.testing.assert_array_equal(tensor.read(), updated(value, row, 4))


def test_many_threads() -> None:
    """Interpreters of one model run in parallel, each on its own caches, with shared weights."""
    content, results = signatures(3, 1), dict[int, Array]()

    def work(number: int) -> None:
        rng, tensor = np.random.default_rng(number), DeviceTensor(SHAPE)
        runner = opened(content, num_threads=1).get_signature_runner("s1")
        value = np.zeros(SHAPE, np.float32)
        for at in range(200):
            row = randn(rng, 1, 2, 1, 16)
            runner.run({"cache": tensor, "update": row, "start": start(at)}, {"new": tensor})
            value = updated(value, row, at)
        results[number] = tensor.read() - value

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [float(np.abs(results[n]).max()) for n in range(4)] == [0.0] * 4
