"""Cases of LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM."""

from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
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

_random = rng(33)
_TANH, _RELU, _RELU6 = ActivationFunctionType.TANH, ActivationFunctionType.RELU, ActivationFunctionType.RELU6

Operands = list[Array | None]


def _f(*shape: int) -> Array:
    return (_random.standard_normal(shape) * 0.6).astype(np.float32)


def _cell(
    depth: int,
    cells: int,
    outputs: int | None = None,
    *,
    cifg: bool = False,
    peephole: bool = False,
    projection_bias: bool = False,
    diagonal: bool = False,
) -> Operands:
    """The 17 operands of a cell: weights of input, forget, cell and output gate, peepholes, biases, projection."""
    n = cells if outputs is None else outputs
    recurrent = (cells,) if diagonal else (cells, n)
    operands: Operands = [*(_f(cells, depth) for _ in range(4)), *(_f(*recurrent) for _ in range(4))]
    operands += [_f(cells) if peephole else None for _ in range(3)]
    operands += [_f(cells) for _ in range(4)]
    operands += [None if outputs is None else _f(n, cells), _f(n) if projection_bias else None]
    for position in (0, 4, 8, 11) if cifg else ():
        operands[position] = None
    return operands


def _states(batch: int, cells: int, outputs: int | None = None) -> Operands:
    return [np.zeros((batch, cells if outputs is None else outputs), np.float32), np.zeros((batch, cells), np.float32)]


def _norms(cells: int, cifg: bool = False) -> Operands:
    return [None if cifg else _f(cells), _f(cells), _f(cells), _f(cells)]


def _constants(operands: Operands, states: tuple[int, ...], *fed: int) -> frozenset[int]:
    return frozenset(range(len(operands))) - frozenset(states) - frozenset(fed)


def _step(name: str, operands: Operands, activation: ActivationFunctionType = _TANH, **clips: Any) -> Case:
    return Case(name, LSTM, LSTMOptions(activation, **clips), operands, _constants(operands, LSTM.states, 0))


def _sequence(
    name: str,
    operands: Operands,
    activation: ActivationFunctionType = _TANH,
    time_major: bool = True,
    diagonal: bool = False,
    **clips: Any,
) -> Case:
    op = UNIDIRECTIONAL_SEQUENCE_LSTM
    options = UnidirectionalSequenceLSTMOptions(
        activation, **clips, time_major=time_major, diagonal_recurrent_tensors=diagonal
    )
    return Case(name, op, options, operands, _constants(operands, op.states, 0))


def _both_ways(
    name: str,
    x: Array,
    cells: tuple[Operands, Operands],
    states: Operands,
    aux: Operands | None = None,
    **options: bool,
) -> Case:
    operands = [x, *cells[0], *cells[1], *states, *([None] * 9 if aux is None else aux)]
    op = BIDIRECTIONAL_SEQUENCE_LSTM
    chosen = BidirectionalSequenceLSTMOptions(_TANH, **options)
    return Case(name, op, chosen, operands, _constants(operands, op.states, 0, 39))


STEPS = (
    _step("plain, 20 operands", [_f(2, 5), *_cell(5, 4), *_states(2, 4)]),
    _step("plain, 24 operands", [_f(2, 5), *_cell(5, 4), *_states(2, 4), *[None] * 4]),
    _step("coupled gates", [_f(2, 5), *_cell(5, 4, cifg=True), *_states(2, 4)]),
    _step("peephole", [_f(2, 5), *_cell(5, 4, peephole=True), *_states(2, 4)]),
    _step("coupled gates, peephole", [_f(2, 5), *_cell(5, 4, cifg=True, peephole=True), *_states(2, 4)]),
    _step("projection", [_f(2, 5), *_cell(5, 4, 3), *_states(2, 4, 3)]),
    _step("projection, bias", [_f(2, 5), *_cell(5, 4, 6, projection_bias=True), *_states(2, 4, 6)]),
    _step("layer normalization", [_f(2, 5), *_cell(5, 8), *_states(2, 8), *_norms(8)]),
    _step(
        "everything but coupled gates",
        [_f(3, 7), *_cell(7, 9, 5, peephole=True, projection_bias=True), *_states(3, 9, 5), *_norms(9)],
        cell_clip=0.6,
        proj_clip=0.5,
    ),
    _step(
        "everything",
        [
            _f(3, 7),
            *_cell(7, 9, 5, cifg=True, peephole=True, projection_bias=True),
            *_states(3, 9, 5),
            *_norms(9, True),
        ],
        cell_clip=0.3,
        proj_clip=0.2,
    ),
    _step("RELU", [_f(2, 5), *_cell(5, 4), *_states(2, 4)], _RELU),
    Case(
        "BASIC",
        BASIC_LSTM,
        LSTMOptions(_TANH, kernel_type=LSTMKernelType.BASIC),
        [_f(2, 3), np.zeros((2, 4), np.float32), _f(16, 7), _f(16), np.zeros((2, 4), np.float32)],
        constants=frozenset({2, 3}),
        version=2,
    ),
)

SEQUENCES = (
    _sequence("plain", [_f(6, 2, 5), *_cell(5, 4), *_states(2, 4)]),
    _sequence("plain, batch first", [_f(2, 6, 5), *_cell(5, 4), *_states(2, 4)], time_major=False),
    _sequence("one step", [_f(1, 2, 5), *_cell(5, 4), *_states(2, 4)]),
    _sequence("one cell", [_f(5, 1, 1), *_cell(1, 1), *_states(1, 1)]),
    _sequence("coupled gates", [_f(6, 2, 5), *_cell(5, 4, cifg=True), *_states(2, 4)]),
    _sequence("peephole", [_f(6, 2, 5), *_cell(5, 4, peephole=True), *_states(2, 4)]),
    _sequence("projection", [_f(6, 2, 5), *_cell(5, 4, 3), *_states(2, 4, 3)]),
    _sequence(
        "projection, bias, batch first",
        [_f(3, 6, 5), *_cell(5, 4, 7, projection_bias=True), *_states(3, 4, 7)],
        time_major=False,
    ),
    _sequence("layer normalization", [_f(6, 2, 5), *_cell(5, 8), *_states(2, 8), *_norms(8)]),
    _sequence(
        "everything",
        [
            _f(5, 3, 7),
            *_cell(7, 9, 5, cifg=True, peephole=True, projection_bias=True),
            *_states(3, 9, 5),
            *_norms(9, True),
        ],
        cell_clip=0.3,
        proj_clip=0.2,
    ),
    _sequence("cell clip", [_f(8, 2, 5), *_cell(5, 4), *_states(2, 4)], cell_clip=0.25),
    _sequence("RELU", [_f(4, 2, 5), *_cell(5, 4), *_states(2, 4)], _RELU),
    _sequence("RELU6", [_f(4, 2, 5), *_cell(5, 4), *_states(2, 4)], _RELU6),
    _sequence("diagonal", [_f(6, 2, 5), *_cell(5, 4, diagonal=True), *_states(2, 4), *[None] * 4], diagonal=True),
    _sequence("as Keras makes them", [_f(1, 12, 10), *_cell(10, 32), *_states(1, 32), *[None] * 4], time_major=False),
)

_FOUR = [*_states(2, 4), *_states(2, 4)]


def _aux(depth: int, cells: int, cifg: bool = False) -> Operands:
    """Weights of an auxiliary input for both cells, gates in their order."""
    return [None if cifg and gate == 0 else _f(cells, depth) for _ in range(2) for gate in range(4)]


BOTH_WAYS = (
    _both_ways("plain", _f(6, 2, 5), (_cell(5, 4), _cell(5, 4)), _FOUR),
    _both_ways("batch first", _f(2, 6, 5), (_cell(5, 4), _cell(5, 4)), _FOUR, time_major=False),
    _both_ways("merged", _f(6, 2, 5), (_cell(5, 4), _cell(5, 4)), _FOUR, merge_outputs=True),
    # A batch of one: LiteRT's answer for the second sequence of a merged batch changes from run to run.
    _both_ways(
        "merged, batch first",
        _f(1, 6, 5),
        (_cell(5, 4), _cell(5, 4)),
        [*_states(1, 4), *_states(1, 4)],
        merge_outputs=True,
        time_major=False,
    ),
    _both_ways(
        "projection, merged",
        _f(6, 2, 5),
        (_cell(5, 4, 3), _cell(5, 4, 3)),
        [*_states(2, 4, 3), *_states(2, 4, 3)],
        merge_outputs=True,
    ),
    _both_ways(
        "coupled gates, peephole",
        _f(6, 2, 5),
        (_cell(5, 4, cifg=True, peephole=True), _cell(5, 4, cifg=True, peephole=True)),
        _FOUR,
    ),
    _both_ways("linked", _f(6, 2, 5), (_cell(5, 4), _cell(5, 4)), _FOUR, [_f(6, 2, 3), *_aux(3, 4)]),
    _both_ways(
        "linked, coupled gates, batch first",
        _f(2, 6, 5),
        (_cell(5, 4, cifg=True), _cell(5, 4, cifg=True)),
        _FOUR,
        [_f(2, 6, 3), *_aux(3, 4, cifg=True)],
        time_major=False,
    ),
    _both_ways(
        "backwards over another input", _f(6, 2, 5), (_cell(5, 4), _cell(5, 4)), _FOUR, [_f(6, 2, 5), *[None] * 8]
    ),
)

CASES = (*STEPS, *SEQUENCES, *BOTH_WAYS)
