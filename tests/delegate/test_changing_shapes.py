"""Shapes that come again: the results of a first time, and no second preparation."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

import litecl.compiled_model as ours
import litecl.interpreter.prepared
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter, limits
from litecl.interpreter.errors import LimitError, ModelError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.random import RANDOM_UNIFORM, RandomOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.schema import TensorType
from support import devices, opencl_seam
from support.build import Graph, model, randn
from support.compiled import A, X, buffers, compiled, expected
from support.compiled import run as run_compiled
from support.devices import as_on_a_gpu
from support.opencl_seam import Seam, installed
from support.small_models import chain, lstm

RNG = np.random.default_rng(16)
TURNS = [3, 1, 3, 5, 5, 1, 3]  # time steps, invoke by invoke
MODES: dict[str, dict[str, Any]] = {
    "one thread": {"num_threads": 1},
    "threads": {"num_threads": 2},
    "queued": {"num_threads": 1, "queue_loops": True},
    "profiled": {"num_threads": 1, "profile": True},
    "OpenCL": {"device": devices.tested()[0]},
}


class Counted(CLDelegate):
    """Counts how often it prepares a model."""

    times = 0

    def apply(self, *args: Any, **keywords: Any) -> Any:
        type(self).times += 1
        return super().apply(*args, **keywords)


@pytest.fixture(autouse=True)
def counted() -> None:
    Counted.times = 0


def resized(interpreter: Any, shape: tuple[int, ...], tensor: int = 0) -> Any:
    interpreter.resize_tensor_input(tensor, shape)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Any, x: Array) -> Array:
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def in_turn(interpreter: Any, inputs: list[Array]) -> list[Array]:
    return [run(resized(interpreter, x.shape), x) for x in inputs]


def recurrent() -> tuple[Model, list[Array]]:
    """An LSTM whose state lives on within a shape, and inputs of different lengths."""
    return lstm(), [randn(RNG, 1, steps, 4) for steps in TURNS]


@pytest.mark.parametrize("mode", ["numpy", "GPU", *MODES])
def test_states_begin_anew_as_in_litert(mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model_, inputs = recurrent()
    theirs = LiteRT(model_content=write(model_), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    options = as_on_a_gpu(monkeypatch, tmp_path) if mode == "GPU" else MODES.get(mode, {})
    delegates = [] if mode == "numpy" else [Counted(**options, strict=True)]
    interpreter = Interpreter(model_, delegates=delegates)
    for got, right in zip(in_turn(interpreter, inputs), in_turn(theirs, inputs), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
    assert Counted.times == (3 if delegates else 0)
    if delegates:
        assert all(row.claimed for row in interpreter.delegation_report().nodes)


def test_random_numbers_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, g = [0.0], Graph()
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    x = g.input((3,))
    (numbers,) = g.node(
        RANDOM_UNIFORM, (g.const(np.array([3], np.int32)),), (TensorSpec(TensorType.FLOAT32, (3,)),), RandomOptions(7)
    )
    model_, inputs = model(g.build(g.op(ADD, [x, numbers], AddOptions()))), [np.zeros(n, np.float32) for n in (3, 1, 3)]
    kept, fresh = Interpreter(model_, time_limit=0.2), Interpreter(model_, shapes_kept=1)
    first = in_turn(kept, inputs[:2])
    now_s[0] += 0.3  # which is between calls
    first += in_turn(kept, inputs[2:])
    np.testing.assert_array_equal(first[0], first[2])
    for got, right in zip(first, in_turn(fresh, inputs), strict=True):
        np.testing.assert_array_equal(got, right)


def two_inputs() -> Model:
    g = Graph()
    x, y = g.input((1, 4), signature=(-1, 4)), g.input((1, 4), signature=(-1, 4))
    return model(g.build(g.op(TANH, [g.op(ADD, [x, y], AddOptions())], NoOptions())))


@pytest.mark.parametrize("delegates", [[], [CLDelegate(num_threads=1)]], ids=["numpy", "device"])
def test_inputs_keep_their_values_where_the_shape_stays_and_are_zeros_where_it_changed(delegates: Any) -> None:
    interpreter = resized(Interpreter(two_inputs(), delegates=delegates), (2, 4))
    y = randn(RNG, 1, 4)
    for shape in ((2, 4), (3, 4), (2, 4)):
        resized(interpreter, shape)
        assert not interpreter.get_tensor(0).any()
        if shape == (2, 4):
            interpreter.set_tensor(1, y := y + 1)
            interpreter.set_tensor(0, randn(RNG, 2, 4))
        np.testing.assert_array_equal(interpreter.get_tensor(1), y)
        x = randn(RNG, *shape)
        np.testing.assert_allclose(run(interpreter, x), np.tanh(x + y), rtol=1e-5, atol=1e-6)


def test_buffers_of_other_shapes_keep_what_is_in_them() -> None:
    model_, x = compiled(ours), randn(RNG, 2, 4)
    first, outputs = buffers(model_)
    run_compiled(model_, first, outputs, X, A)
    model_.resize_input_tensor(0, [2, 4])
    others = buffers(model_)
    run_compiled(model_, *others, x, A)
    model_.resize_input_tensor(0, [1, 4])
    second, more = buffers(model_)
    run_compiled(model_, second, more, -X, A)
    np.testing.assert_array_equal(first[0].array, X)
    np.testing.assert_allclose(outputs[0].array.ravel(), expected(X, A)[0], rtol=1e-5)
    np.testing.assert_allclose(more[0].array.ravel(), expected(-X, A)[0], rtol=1e-5)
    np.testing.assert_allclose(others[1][1].array.ravel(), expected(x, A)[1], rtol=1e-5)


def prepared_for(model_: Model, batches: list[int], **keywords: Any) -> int:
    """How often the model is prepared for some batches in turn."""
    Counted.times = 0
    interpreter = Interpreter(model_, delegates=[Counted(num_threads=1)], **keywords)
    for batch in batches:
        resized(interpreter, (batch, 5))
    return Counted.times


def test_the_least_recently_used_shapes_are_given_up() -> None:
    model_ = chain()
    assert prepared_for(model_, [1, 2, 1, 2]) == 2
    assert prepared_for(model_, [1, 2, 1, 3, 1, 2], shapes_kept=2) == 4
    assert prepared_for(model_, [1, 2, 1, 2], shapes_kept=1) == 4
    assert prepared_for(model_, [1, 2, 1, 2], memory_limit=1 << 30) == 4
    assert prepared_for(model_, [*range(1, 10), 9, 2, 1]) == 10
    with pytest.raises(ModelError, match="shapes_kept: expected at least 1, got 0"):
        Interpreter(model_, shapes_kept=0)


def test_large_models_are_kept_only_where_a_number_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litecl.interpreter.prepared, "_MOST_BYTES", 1 << 20)
    batches = [2**13, 1, 2**13 + 1, 1, 2**13]  # of which two take more than there is room for
    assert prepared_for(chain(), batches) == 4
    assert prepared_for(chain(), batches, shapes_kept=3) == 3


def test_shapes_are_prepared_ahead_and_stay() -> None:
    interpreter = Interpreter(chain(), delegates=[Counted(num_threads=1)], shapes_kept=1)
    interpreter.allocate_tensors()
    x = randn(RNG, 2, 5)
    interpreter.set_tensor(0, x)
    name = interpreter.get_input_details()[0]["name"]
    interpreter.prepare({0: (3, 5)}, {name: [4, 5]}, {0: (2, 5)})
    assert Counted.times == 3
    np.testing.assert_array_equal(interpreter.get_tensor(0), x)
    right = run(interpreter, x)
    for batch in (3, 4, 2, 4, 3):
        resized(interpreter, (batch, 5))
    np.testing.assert_array_equal(run(resized(interpreter, (2, 5)), x), right)
    assert Counted.times == 3
    with pytest.raises(ModelError, match="expected the name of one input, got 'nothing'"):
        interpreter.prepare({"nothing": (1, 5)})
    with pytest.raises(ShapeError):
        interpreter.prepare({0: (1, 2, 3)})
    np.testing.assert_array_equal(run(interpreter, x), right)
    with pytest.raises(ModelError, match="memory_limit"):
        Interpreter(chain(), memory_limit=1 << 30).prepare({0: (3, 5)})


def test_what_fails_at_one_shape_is_no_obstacle_to_others() -> None:
    interpreter = resized(Interpreter(chain(), time_limit=60.0), (2, 5))
    x = randn(RNG, 2, 5)
    right = run(interpreter, x)
    for _ in range(2):
        with pytest.raises((ShapeError, LimitError)):
            resized(interpreter, (2, 6))
        with pytest.raises(ModelError, match="not ready"):
            interpreter.invoke()
    np.testing.assert_array_equal(run(resized(interpreter, (2, 5)), x), right)


@pytest.mark.opencl
def test_after_a_fault_of_the_device_nothing_is_kept() -> None:
    interpreter = Interpreter(chain(), delegates=[Counted(num_threads=1)])
    inputs = [randn(RNG, batch, 5) for batch in (2, 3, 2)]
    right = in_turn(Interpreter(interpreter.model), inputs)
    in_turn(interpreter, inputs)
    with installed(Seam(0, lambda routine: opencl_seam.error(2, routine))):
        np.testing.assert_allclose(run(interpreter, inputs[2]), right[2], rtol=1e-4)
    assert not interpreter.delegation_report().claimed
    for x, expected_ in zip(inputs[1:], right[1:], strict=True):
        np.testing.assert_allclose(run(resized(interpreter, x.shape), x), expected_, rtol=1e-4)
        assert interpreter.delegation_report().claimed
    assert Counted.times == 4


class Resizes:
    """Changes the shape while the model runs."""

    interpreter: Any

    def ran(self, *event: Any) -> None:
        resized(self.interpreter, (4, 5))


def test_a_running_interpreter_is_not_allocated_anew() -> None:
    listener = Resizes()
    listener.interpreter = interpreter = Interpreter(chain(), listeners=[listener])
    resized(interpreter, (2, 5))
    with pytest.raises(ModelError, match="allocate_tensors: this interpreter is running"):
        interpreter.invoke()
