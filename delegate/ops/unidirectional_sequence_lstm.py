"""UNIDIRECTIONAL_SEQUENCE_LSTM on the device."""

from collections.abc import Sequence

from litecl.delegate.cl_op import Call, ClOp, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.recurrent.lstm_cell import clips_of, memory_of, run
from litecl.delegate.recurrent.operands import cell_of, claim
from litecl.delegate.recurrent.time_loop import time_loop
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.recurrent.lstm_cell import FULL


def _claim(
    options: UnidirectionalSequenceLSTMOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]
) -> Refusal | None:
    return claim(options, inputs, (FULL,), 0)


def _lower(call: Call) -> list[Step]:
    x, (out, *states) = call.input(0), call.outputs
    time_major = call.options.time_major
    steps, batch = x.shape[:2] if time_major else (x.shape[1], x.shape[0])
    cell = cell_of(call, FULL)
    forwards = time_loop(steps, batch, cell.outputs, time_major=time_major)
    return [*run(call, cell, forwards, [x], out, memory_of(call, FULL, states), clips_of(call.options))]


CL_OPS = (ClOp(UNIDIRECTIONAL_SEQUENCE_LSTM, claim=_claim, lower=_lower),)
