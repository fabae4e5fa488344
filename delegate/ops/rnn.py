"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN on the device: cells of one gate."""

from collections.abc import Sequence
from typing import Any

from litecl.delegate.cl_op import Call, ClOp, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.recurrent.both_ways import both_ways
from litecl.delegate.recurrent.lstm_cell import Memory, run
from litecl.delegate.recurrent.operands import Cell, claim_floats, matrix_at, vector_at
from litecl.delegate.recurrent.time_loop import time_loop
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.rnn import BIDIRECTIONAL_SEQUENCE_RNN, RNN, UNIDIRECTIONAL_SEQUENCE_RNN

# Positions of each cell's weights, followed by recurrent weights, bias and state; and of the auxiliary input.
_FORWARD, _BACKWARD, _AUX = 1, 5, 9
_STATE = 3  # after the weights
STATES, BOTH_STATES = (0, _FORWARD + _STATE), (0, _FORWARD + _STATE, _BACKWARD + _STATE, _AUX)
"""Positions of inputs that may vary: of a cell, and of both."""
MATRICES, BOTH_MATRICES = (1, 2), (1, 2, 5, 6, 10, 11)
"""Positions of weights: of a cell, and of both."""


def _claim(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim_floats(options, inputs, STATES)


def _claim_both(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim_floats(options, inputs, BOTH_STATES)


def _cell(call: Call, first: int, aux: int | None = None) -> Cell:
    """Return the cell whose weights are at ``first``, and those of the auxiliary input at ``aux``."""
    weights, recurrent, bias = matrix_at(call, first), matrix_at(call, first + 1), vector_at(call, first + 2)
    assert weights is not None and recurrent is not None and bias is not None
    linked = None if aux is None else matrix_at(call, aux)
    return Cell([weights], [recurrent], [bias], [] if linked is None else [linked], [], [], None, None)


def _lower(call: Call) -> list[Step]:
    """Return the launches of one step, or of a sequence."""
    x, (out, after) = call.input(0), call.outputs
    time_major = getattr(call.options, "time_major", True)
    steps, batch = (1, x.shape[0]) if len(x.shape) == 2 else x.shape[:2] if time_major else x.shape[1::-1]
    cell = _cell(call, _FORWARD)
    way = time_loop(steps, batch, cell.outputs, time_major=time_major)
    return [*run(call, cell, way, [x], out, Memory([call.input(_FORWARD + _STATE)], [after]))]


def _lower_both(call: Call) -> list[Step]:
    *outs, after, backward_after = call.outputs
    both = (_cell(call, _FORWARD, _AUX + 1), _cell(call, _BACKWARD, _AUX + 2))
    forward = Memory([call.input(_FORWARD + _STATE)], [after])
    backward = Memory([call.input(_BACKWARD + _STATE)], [backward_after])
    return [*both_ways(call, both, call.inputs[_AUX], outs, (forward, backward))]


CL_OPS = (
    ClOp(RNN, claim=_claim, lower=_lower),
    ClOp(UNIDIRECTIONAL_SEQUENCE_RNN, claim=_claim, lower=_lower),
    ClOp(BIDIRECTIONAL_SEQUENCE_RNN, claim=_claim_both, lower=_lower_both),
)
