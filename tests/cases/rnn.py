"""Cases of RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN and SVDF."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.rnn import (
    BIDIRECTIONAL_SEQUENCE_RNN,
    RNN,
    UNIDIRECTIONAL_SEQUENCE_RNN,
    BidirectionalSequenceRNNOptions,
    RNNOptions,
    SequenceRNNOptions,
)
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.schema import ActivationFunctionType

_random = rng(34)
_TANH, _RELU = ActivationFunctionType.TANH, ActivationFunctionType.RELU


def _f(*shape: int) -> Array:
    return (_random.standard_normal(shape) * 0.6).astype(np.float32)


def _zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def _cell(depth: int, units: int, batch: int) -> list[Array | None]:
    """Weights, recurrent weights, bias and state."""
    return [_f(units, depth), _f(units, units), _f(units), _zeros(batch, units)]


def _both_ways(name: str, x: Array, aux: list[Array | None], units: tuple[int, int] = (4, 4), **options: bool) -> Case:
    cells = [*_cell(5, units[0], 2), *_cell(5, units[1], 2)]
    chosen = BidirectionalSequenceRNNOptions(fused_activation_function=_TANH, **options)
    constants = frozenset({1, 2, 3, 5, 6, 7, 10, 11})
    return Case(name, BIDIRECTIONAL_SEQUENCE_RNN, chosen, [x, *cells, *aux], constants)


def _svdf(name: str, x: Array, filters: int, memory: int, rank: int, bias: bool, activation: int = 0) -> Case:
    options = SVDFOptions(rank, ActivationFunctionType(activation))
    batch, depth = x.shape
    state = _zeros(batch, filters * memory)
    inputs = [x, _f(filters, depth), _f(filters, memory), _f(filters // rank) if bias else None, state]
    return Case(name, SVDF, options, inputs, frozenset({1, 2, 3}))


_NO_AUX: list[Array | None] = [None, None, None]
_WEIGHTS = frozenset({1, 2, 3})

CASES = (
    Case("TANH", RNN, RNNOptions(_TANH), [_f(2, 5), *_cell(5, 4, 2)], _WEIGHTS),
    Case("RELU", RNN, RNNOptions(_RELU), [_f(1, 8), *_cell(8, 16, 1)], _WEIGHTS),
    Case("linear", RNN, RNNOptions(), [_f(3, 5), *_cell(5, 4, 3)], _WEIGHTS),
    Case(
        "batch first",
        UNIDIRECTIONAL_SEQUENCE_RNN,
        SequenceRNNOptions(fused_activation_function=_TANH),
        [_f(2, 6, 5), *_cell(5, 4, 2)],
        _WEIGHTS,
    ),
    Case(
        "time first",
        UNIDIRECTIONAL_SEQUENCE_RNN,
        SequenceRNNOptions(time_major=True, fused_activation_function=_RELU),
        [_f(6, 2, 5), *_cell(5, 4, 2)],
        _WEIGHTS,
    ),
    Case(
        "one step of one unit",
        UNIDIRECTIONAL_SEQUENCE_RNN,
        SequenceRNNOptions(fused_activation_function=_TANH),
        [_f(1, 1, 1), *_cell(1, 1, 1)],
        _WEIGHTS,
    ),
    _both_ways("batch first", _f(2, 6, 5), _NO_AUX),
    _both_ways("time first", _f(6, 2, 5), _NO_AUX, time_major=True),
    _both_ways("merged", _f(2, 6, 5), _NO_AUX, merge_outputs=True),
    _both_ways("sizes differ, merged, time first", _f(6, 2, 5), _NO_AUX, (4, 7), time_major=True, merge_outputs=True),
    _both_ways("linked", _f(2, 6, 5), [_f(2, 6, 3), _f(4, 3), _f(4, 3)]),
    # Time first: LiteRT's loop over batches reads the main input backwards.
    _both_ways("backwards over another input", _f(6, 2, 5), [_f(6, 2, 5), None, None], time_major=True),
    _svdf("rank 1", _f(2, 3), 4, 10, 1, bias=False),
    _svdf("rank 2, bias", _f(2, 3), 8, 10, 2, bias=True),
    _svdf("RELU, bias", _f(1, 7), 6, 5, 1, bias=True, activation=_RELU),
    _svdf("memory of one", _f(2, 3), 4, 1, 2, bias=True),
)
