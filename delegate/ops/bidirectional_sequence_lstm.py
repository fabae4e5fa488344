"""BIDIRECTIONAL_SEQUENCE_LSTM on the device: one cell that runs forwards in time and one that runs backwards."""

from collections.abc import Sequence

from litecl.delegate.cl_op import Call, ClOp, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.recurrent.both_ways import both_ways
from litecl.delegate.recurrent.lstm_cell import clips_of, memory_of
from litecl.delegate.recurrent.operands import cell_of, claim
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.bidirectional_sequence_lstm import (
    BACKWARD,
    BIDIRECTIONAL_SEQUENCE_LSTM,
    FORWARD,
    BidirectionalSequenceLSTMOptions,
)

AUX = 39


def _claim(
    options: BidirectionalSequenceLSTMOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]
) -> Refusal | None:
    return claim(options, inputs, (FORWARD, BACKWARD), 0, AUX)


def _lower(call: Call) -> list[Step]:
    *outs, h, c, backward_h, backward_c = call.outputs
    both = (cell_of(call, FORWARD), cell_of(call, BACKWARD))
    memories = (memory_of(call, FORWARD, (h, c)), memory_of(call, BACKWARD, (backward_h, backward_c)))
    return [*both_ways(call, both, call.inputs[AUX], outs, memories, clips_of(call.options))]


CL_OPS = (ClOp(BIDIRECTIONAL_SEQUENCE_LSTM, claim=_claim, lower=_lower),)
