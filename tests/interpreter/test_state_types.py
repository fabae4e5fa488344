"""States have the type of their tensor: SVDF with 8-bit states, and refusals of types that no kernel keeps."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case, lstm, rnn
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Quantization, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.schema import TensorType as T
from litecl.perf.feeds import run_on
from support import devices

_STATE = 4


def _by(scale: float, zero: int = 0) -> Quantization:
    return Quantization(np.float32([scale]), np.int64([zero]))


def _svdf(zero: int, features: float, types: tuple[T, T] = (T.INT8, T.INT8)) -> Case:
    """Scales are powers of two, so that float64 rescales exactly. features: a larger scale saturates the states."""
    rng = np.random.default_rng(9)
    units, rank, memory, batch, depth = 3, 2, 5, 2, 6
    of_time, of_state = types

    def full(type_: T, *shape: int) -> Array:
        return rng.integers(-128, 128, shape).astype(type_.dtype)

    inputs = [
        full(T.INT8, batch, depth),
        full(T.INT8, units * rank, depth),
        full(of_time, units * rank, memory),
        rng.integers(-3000, 3000, units).astype(np.int32),
        np.zeros((batch, units * rank * memory), of_state.dtype),
    ]
    quantization = {0: _by(2**-4, -9), 1: _by(features), 2: _by(2**-7), 3: _by(2**-10), 4: _by(2**-3, zero)}
    output = TensorSpec(T.INT8, None, quantization=_by(2**-1, 7))
    return Case("8-bit", SVDF, SVDFOptions(rank), inputs, frozenset({1, 2, 3}), {}, quantization, [output], 3)


def _rounded(x: Array) -> Array:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def _expected(case: Case, feeds: list[Array], zero: int) -> tuple[list[Array], Array]:
    """Return the outputs and the last state, filter by filter."""
    _, features, time, bias, _ = (np.asarray(value, np.float64) for value in case.inputs)
    scale = {i: float(by.scale[0]) for i, by in case.quantization.items()}
    batch, rank = len(feeds[0]), case.options.rank
    state, outputs = np.full((batch, *time.shape), float(zero)), []
    for x in feeds:
        state = np.roll(state, -1, axis=2)
        dots = (x.astype(np.float64) + 9) @ features.T * (scale[0] * scale[1] / scale[4])
        state[:, :, -1] = np.clip(_rounded(dots) + zero, -128, 127)
        sums = ((state - zero) * time).sum(axis=2).reshape(batch, -1, rank).sum(axis=2) + bias
        outputs.append(np.clip(_rounded(sums * (scale[4] * scale[2] / 2**-1)) + 7, -128, 127).astype(np.int8))
    return outputs, state.reshape(batch, -1).astype(np.int8)


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("features", [2**-10, 2**-5], ids=["in range", "saturated"])
@pytest.mark.parametrize("zero", [0, 5, -7])
def test_svdf_with_8_bit_states(zero: int, features: float, device: Any) -> None:
    """As older files for tflite-micro have them; LiteRT has no kernel for them."""
    case = _svdf(zero, features)
    interpreter = Interpreter(write(case.model()), delegates=[] if device is None else [CLDelegate(device)])
    interpreter.allocate_tensors()
    feeds = [np.random.default_rng(i).integers(-128, 128, (2, 6)).astype(np.int8) for i in range(7)]
    wanted, state = _expected(case, feeds, zero)
    assert (np.abs(state.astype(int) - zero).max() >= 120) == (features == 2**-5)
    (fed,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    for feed, expected in zip(feeds, wanted, strict=True):
        interpreter.set_tensor(fed["index"], feed)
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(made["index"]), expected)
    kept = interpreter.get_tensor(_STATE)
    assert kept.dtype == np.int8
    np.testing.assert_array_equal(kept, state)


@pytest.mark.parametrize("types", [(T.INT16, T.INT8), (T.INT8, T.INT16), (T.INT32, T.INT32)], ids=repr)
def test_svdf_of_other_types(types: tuple[T, T]) -> None:
    with pytest.raises(ModelError, match="SVDF: expected type INT"):
        Interpreter(write(_unchecked(_svdf(0, 0.01), {2: types[0], _STATE: types[1]}))).allocate_tensors()


def _unchecked(case: Case, types: dict[int, T]) -> Model:
    """Return the model of a case in which inputs have other types."""
    (graph,) = (model := case.model()).subgraphs
    tensors = list(graph.tensors)
    for position, type_ in types.items():
        t = graph.nodes[0].inputs[position]
        data = tensors[t].data
        tensors[t] = replace(tensors[t], type=type_, data=None if data is None else data.astype(type_.dtype))
    return replace(model, subgraphs=(replace(graph, tensors=tuple(tensors)),))


def _states() -> list[tuple[Case, int]]:
    """Return a case of every operator with states, and the first of these."""
    by_op: dict[Op, Case] = {}
    for case in (*rnn.CASES, *lstm.CASES):
        if case.op.states:
            by_op.setdefault(case.op, case)
    return [(case, case.op.states[0]) for case in by_op.values()]


@pytest.mark.parametrize(("case", "position"), _states(), ids=repr)
@pytest.mark.parametrize("type_", [T.INT16, T.INT32], ids=lambda type_: type_.name)
def test_float_states_of_another_type(case: Case, position: int, type_: T) -> None:
    interpreter = Interpreter(write(_unchecked(case, {position: type_})))
    with pytest.raises(ModelError, match="expected type"):
        run_on(interpreter, case.feeds)
