"""Families of LSTMs whose states are variable tensors, which other nodes read and other LSTMs may update."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import ABSENT, Shape
from litecl.interpreter.op import Op
from litecl.interpreter.ops.bidirectional_sequence_lstm import (
    BIDIRECTIONAL_SEQUENCE_LSTM,
    BidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTM, LSTMOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType, LSTMKernelType
from litecl.perf.compare.graph_fuzz.sketch import Sketch, T

_ACTIVATIONS = (*[ActivationFunctionType.TANH] * 6, ActivationFunctionType.RELU6, ActivationFunctionType.NONE)


def _floats(s: Sketch, *shape: int) -> int:
    return s.const((s.rng.standard_normal(shape) * 0.4).astype(np.float32))


def _cell(s: Sketch, depth: int, cells: int, outputs: int, aux: bool = False) -> list[int]:
    """Return the 17 operands of a cell (see tests/cases/lstm.py): weights, peepholes, biases, projection."""
    coupled, peephole = not aux and s.chance(0.25), s.chance(0.3)
    operands = [_floats(s, cells, depth) for _ in range(4)] + [_floats(s, cells, outputs) for _ in range(4)]
    operands += [_floats(s, cells) if peephole else ABSENT for _ in range(3)]
    operands += [_floats(s, cells) for _ in range(4)]
    projected = outputs != cells
    operands += [_floats(s, outputs, cells) if projected else ABSENT]
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


def _clips(s: Sketch) -> tuple[float, float]:
    """Bounds of the cell state and of the projection, 0 for none."""
    return float(s.one_of(0.0, 0.0, 0.7)), float(s.one_of(0.0, 0.0, 0.6))


def sequence(s: Sketch) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM."""
    x = s.pick(T.FLOAT32, rank=3)
    time_major = s.chance(0.5)
    steps, batch = s.shape_of(x)[:2] if time_major else s.shape_of(x)[1::-1]
    cells, outputs = _sizes(s)
    operands = [x, *_cell(s, s.shape_of(x)[2], cells, outputs), *_states(s, batch, cells, outputs)]
    if steps * batch > 400:
        return
    if s.chance(0.3):
        operands += [ABSENT if operands[1] == ABSENT else _floats(s, cells), *(_floats(s, cells) for _ in range(3))]
    options = UnidirectionalSequenceLSTMOptions(s.one_of(*_ACTIVATIONS), *_clips(s), time_major=time_major)
    s.op(UNIDIRECTIONAL_SEQUENCE_LSTM, operands, options)


def step(s: Sketch) -> None:
    """LSTM, full and basic."""
    x = s.pick(T.FLOAT32, rank=2)
    batch, depth = s.shape_of(x)
    cells, outputs = _sizes(s)
    if s.chance(0.6):
        operands = [x, *_cell(s, depth, cells, outputs), *_states(s, batch, cells, outputs)]
        s.op(LSTM, operands, LSTMOptions(s.one_of(*_ACTIVATIONS), *_clips(s)))
        return
    h = _state(s, (batch, cells))
    c = _state(s, (batch, cells), [h])
    operands = [x, h, _floats(s, 4 * cells, depth + cells), _floats(s, 4 * cells), c]
    op: Op = BASIC_LSTM
    s.node(op, operands, LSTMOptions(ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC))


def both_ways(s: Sketch) -> None:
    """BIDIRECTIONAL_SEQUENCE_LSTM."""
    x = s.pick(T.FLOAT32, rank=3)
    time_major = s.chance(0.5)
    steps, batch = s.shape_of(x)[:2] if time_major else s.shape_of(x)[1::-1]
    if steps * batch > 400:
        return
    (cells, outputs), (back_cells, back_outputs), depth = _sizes(s), _sizes(s), s.shape_of(x)[2]
    states = [*_states(s, batch, cells, outputs), s.variable((batch, back_outputs)), s.variable((batch, back_cells))]
    operands = [x, *_cell(s, depth, cells, outputs), *_cell(s, depth, back_cells, back_outputs), *states]
    operands += [ABSENT] * 9
    options = BidirectionalSequenceLSTMOptions(
        ActivationFunctionType.TANH, merge_outputs=s.chance(0.5), time_major=time_major
    )
    s.node(BIDIRECTIONAL_SEQUENCE_LSTM, operands, options)


FAMILIES = {"recurrent": (sequence, sequence, step, step, both_ways)}
