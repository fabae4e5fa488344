"""Families of recurrent operators of floats, also with integer weights: other nodes read and update their states."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from litecl.interpreter.graph import ABSENT, Quantization, Shape
from litecl.interpreter.op import Op
from litecl.interpreter.ops.bidirectional_sequence_lstm import (
    BIDIRECTIONAL_SEQUENCE_LSTM,
    BidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTM, LSTMOptions
from litecl.interpreter.ops.rnn import (
    BIDIRECTIONAL_SEQUENCE_RNN,
    RNN,
    UNIDIRECTIONAL_SEQUENCE_RNN,
    BidirectionalSequenceRNNOptions,
    RNNOptions,
    SequenceRNNOptions,
)
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType, LSTMKernelType
from litecl.random_graphs import integer_recurrent
from litecl.random_graphs.sketch import Sketch, T

_BOUNDED = (ActivationFunctionType.TANH, ActivationFunctionType.TANH, ActivationFunctionType.RELU6)
_ACTIVATIONS = (*[ActivationFunctionType.TANH] * 6, ActivationFunctionType.RELU6, ActivationFunctionType.NONE)


def _floats(s: Sketch, *shape: int) -> int:
    return s.const((s.rng.standard_normal(shape) * 0.4).astype(np.float32))


def _matrices(s: Sketch) -> Callable[..., int]:
    """Return what draws the weights of a node: floats, or integers of few bits."""
    type_ = s.one_of(T.FLOAT32, T.FLOAT32, T.FLOAT32, T.INT8, T.INT8, T.INT4)
    if type_ == T.FLOAT32:
        return partial(_floats, s)
    most = 127 if type_ == T.INT8 else 7

    def integers(*shape: int) -> int:
        by = Quantization(np.array([0.6 / most], np.float32), np.zeros(1, np.int64))
        return s.const(s.rng.integers(-most, most + 1, shape).astype(np.int8), type_, by)

    return integers


def _cell(s: Sketch, depth: int, cells: int, outputs: int, aux: bool = False) -> list[int]:
    """The 17 operands of a cell (see tests/cases/lstm.py): weights, peepholes, biases, projection."""
    coupled, peephole, drawn = not aux and s.chance(0.25), s.chance(0.3), _matrices(s)
    operands = [drawn(cells, depth) for _ in range(4)] + [drawn(cells, outputs) for _ in range(4)]
    operands += [_floats(s, cells) if peephole else ABSENT for _ in range(3)]
    operands += [_floats(s, cells) for _ in range(4)]
    projected = outputs != cells
    operands += [drawn(outputs, cells) if projected else ABSENT]
    operands += [_floats(s, outputs) if projected and s.chance(0.5) else ABSENT]
    for position in (0, 4, 8, 11) if coupled else ():
        operands[position] = ABSENT
    return operands


def _state(s: Sketch, shape: Shape, not_these: Sequence[int] = ()) -> int:
    """Return a variable: a new one, or now and then one that another LSTM updates."""
    there = [t for t in s.pool if s.spec(t).is_variable and s.shape_of(t) == shape and t not in not_these]
    return int(s.one_of(*there)) if there and s.chance(0.4) else s.variable(shape)


def _states(s: Sketch, batch: int, cells: int, outputs: int) -> list[int]:
    first = _state(s, (batch, outputs))
    return [first, _state(s, (batch, cells), [first])]


def _sizes(s: Sketch) -> tuple[int, int]:
    cells = int(s.one_of(1, 3, 4, 8, 17, 33))
    return cells, cells if s.chance(0.7) else int(s.one_of(1, 2, 5, 9))


def _clips(s: Sketch) -> tuple[float, float, bool]:
    """Bounds of the cell state and of the projection, 0 for none, and whether rows get a zero point.

    Not those of a bounded cell: where it saturates at both bounds, zero lies half-way between two bytes.
    """
    cell, projection = float(s.one_of(0.0, 0.0, 0.7)), float(s.one_of(0.0, 0.0, 0.6))
    return cell, projection, not cell and s.chance(0.5)


def _sequence(s: Sketch) -> tuple[int, bool, int, int]:
    """Pick a tensor of rows. Return it, whether its first dimension is time, and how many steps and batches it has."""
    x, time_major = s.pick(T.FLOAT32, rank=3), s.chance(0.5)
    first, second, _ = s.shape_of(x)
    return (x, True, first, second) if time_major else (x, False, second, first)


def sequence(s: Sketch) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM."""
    x, time_major, steps, batch = _sequence(s)
    cells, outputs = _sizes(s)
    operands = [x, *_cell(s, s.shape_of(x)[2], cells, outputs), *_states(s, batch, cells, outputs)]
    if steps * batch > integer_recurrent.MOST_ROWS:
        return
    if s.chance(0.3):
        operands += [ABSENT if operands[1] == ABSENT else _floats(s, cells), *(_floats(s, cells) for _ in range(3))]
    function, (cell_clip, proj_clip, asymmetric) = s.one_of(*_ACTIVATIONS), _clips(s)
    options = UnidirectionalSequenceLSTMOptions(function, cell_clip, proj_clip, time_major, asymmetric)
    s.op(UNIDIRECTIONAL_SEQUENCE_LSTM, operands, options)


def step(s: Sketch) -> None:
    """LSTM, full and basic."""
    x = s.pick(T.FLOAT32, rank=2)
    batch, depth = s.shape_of(x)
    cells, outputs = _sizes(s)
    if s.chance(0.6):
        operands = [x, *_cell(s, depth, cells, outputs), *_states(s, batch, cells, outputs)]
        function, (cell_clip, proj_clip, asymmetric) = s.one_of(*_ACTIVATIONS), _clips(s)
        s.op(LSTM, operands, LSTMOptions(function, cell_clip, proj_clip, asymmetric_quantize_inputs=asymmetric))
        return
    h = _state(s, (batch, cells))
    c = _state(s, (batch, cells), [h])
    operands = [x, h, _floats(s, 4 * cells, depth + cells), _floats(s, 4 * cells), c]
    op: Op = BASIC_LSTM
    s.node(op, operands, LSTMOptions(ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC))


def both_ways(s: Sketch) -> None:
    """BIDIRECTIONAL_SEQUENCE_LSTM."""
    x, time_major, steps, batch = _sequence(s)
    if steps * batch > integer_recurrent.MOST_ROWS:
        return
    (cells, outputs), (back_cells, back_outputs), depth = _sizes(s), _sizes(s), s.shape_of(x)[2]
    states = [*_states(s, batch, cells, outputs), s.variable((batch, back_outputs)), s.variable((batch, back_cells))]
    operands = [x, *_cell(s, depth, cells, outputs), *_cell(s, depth, back_cells, back_outputs), *states]
    operands += [ABSENT] * 9
    options = BidirectionalSequenceLSTMOptions(
        ActivationFunctionType.TANH, merge_outputs=s.chance(0.5), time_major=time_major
    )
    s.node(BIDIRECTIONAL_SEQUENCE_LSTM, operands, options)


def _plain_cell(s: Sketch, drawn: Callable[..., int], depth: int, units: int, batch: int) -> list[int]:
    """Weights, recurrent weights, bias and state of a cell of one gate."""
    return [drawn(units, depth), drawn(units, units), _floats(s, units), _state(s, (batch, units))]


def _asymmetric(s: Sketch, function: ActivationFunctionType) -> bool:
    """Return whether rows get a zero point: not those from -1 to 1, whose ends lie half-way between two bytes."""
    return function != ActivationFunctionType.TANH and s.chance(0.5)


def plain_step(s: Sketch) -> None:
    """RNN."""
    x = s.pick(T.FLOAT32, rank=2)
    batch, depth = s.shape_of(x)
    cell = _plain_cell(s, _matrices(s), depth, _sizes(s)[0], batch)
    function = s.one_of(*_BOUNDED)
    s.op(RNN, [x, *cell], RNNOptions(function, _asymmetric(s, function)))


def plain_sequence(s: Sketch) -> None:
    """UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN."""
    x, time_major, steps, batch = _sequence(s)
    if steps * batch > integer_recurrent.MOST_ROWS:
        return
    drawn, depth, function = _matrices(s), s.shape_of(x)[2], s.one_of(*_BOUNDED)
    cell = _plain_cell(s, drawn, depth, _sizes(s)[0], batch)
    if s.chance(0.5):
        s.op(
            UNIDIRECTIONAL_SEQUENCE_RNN, [x, *cell], SequenceRNNOptions(time_major, function, _asymmetric(s, function))
        )
        return
    units = _sizes(s)[0]
    back = [drawn(units, depth), drawn(units, units), _floats(s, units), s.variable((batch, units))]
    options = BidirectionalSequenceRNNOptions(time_major, function, s.chance(0.5), _asymmetric(s, function))
    s.node(BIDIRECTIONAL_SEQUENCE_RNN, [x, *cell, *back, *[ABSENT] * 3], options)


def svdf(s: Sketch) -> None:
    """SVDF."""
    x = s.pick(T.FLOAT32, rank=2)
    batch, depth = s.shape_of(x)
    rank, units, memory = int(s.one_of(1, 1, 2, 3)), _sizes(s)[0], int(s.one_of(1, 2, 5, 8, 19))
    drawn, filters = _matrices(s), units * rank
    operands = [drawn(filters, depth), drawn(filters, memory), _floats(s, units) if s.chance(0.5) else ABSENT]
    state = _state(s, (batch, filters * memory))
    s.op(SVDF, [x, *operands, state], SVDFOptions(rank, s.one_of(*_BOUNDED), s.chance(0.5)))


FAMILIES = {
    "recurrent": (sequence, sequence, step, step, both_ways, plain_step, plain_sequence, plain_sequence, svdf, svdf),
    **integer_recurrent.FAMILIES,
}
