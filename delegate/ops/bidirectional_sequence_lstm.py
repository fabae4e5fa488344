"""BIDIRECTIONAL_SEQUENCE_LSTM on the device: one cell that runs forwards in time and one that runs backwards."""

from collections.abc import Sequence

from litecl.delegate.cl_op import Call, ClOp, Launch, Operand, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.recurrent.lstm_cell import Cell, cell_of, claim, run_cell, time_loop
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.bidirectional_sequence_lstm import (
    BACKWARD,
    BIDIRECTIONAL_SEQUENCE_LSTM,
    FORWARD,
    BidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.recurrent.lstm_cell import Layout

_AUX = 39


def _claim(
    options: BidirectionalSequenceLSTMOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]
) -> Refusal | None:
    return claim(options, inputs, (FORWARD, BACKWARD), 0, _AUX)


def _lower(call: Call) -> list[Step]:
    options: BidirectionalSequenceLSTMOptions = call.options
    x, aux = call.input(0), call.inputs[_AUX]
    forward, backward = cell_of(call, FORWARD), cell_of(call, BACKWARD)
    merged = options.merge_outputs
    *outs, h, c, backward_h, backward_c = call.outputs
    width = forward.outputs + backward.outputs if merged else 0

    def run(
        cell: Cell, layout: Layout, x: Operand, out: Operand, states: Sequence[Operand], first: int
    ) -> list[Launch]:
        steps, batch = x.shape[:2] if options.time_major else (x.shape[1], x.shape[0])
        way = time_loop(
            steps,
            batch,
            width or cell.outputs,
            time_major=options.time_major,
            reverse=layout is BACKWARD,
            first=first,
        )
        inputs = [x, aux] if cell.aux_weights and aux is not None else [x]
        return run_cell(call, cell, layout, way, inputs, out, states)

    # If the auxiliary input has no weights of its own, the backward cell reads it in place of the main input.
    backward_x = x if aux is None or backward.aux_weights else aux
    return [
        *run(forward, FORWARD, x, outs[0], (h, c), 0),
        *run(backward, BACKWARD, backward_x, outs[-1], (backward_h, backward_c), forward.outputs if merged else 0),
    ]


CL_OPS = (ClOp(BIDIRECTIONAL_SEQUENCE_LSTM, claim=_claim, lower=_lower),)
