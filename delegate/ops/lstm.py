"""LSTM on the device: one step of the cell, in the full form and in the basic one."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Activation, Call, ClOp, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.matmul.product import Product, gemm, packed, packed_weights
from litecl.delegate.recurrent.lstm_cell import clips_of, memory_of, run
from litecl.delegate.recurrent.operands import cell_of, claim
from litecl.delegate.recurrent.time_loop import time_loop
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTM, LSTMOptions
from litecl.interpreter.recurrent.lstm_cell import FULL


def _claim(options: LSTMOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim(options, inputs, (FULL,), 0)


def _lower(call: Call) -> list[Step]:
    x, (out, *states) = call.input(0), call.outputs
    cell = cell_of(call, FULL)
    one_step = time_loop(1, x.shape[0], cell.outputs, time_major=True)
    return [*run(call, cell, one_step, [x], out, memory_of(call, FULL, states), clips_of(call.options))]


def _lower_basic(call: Call) -> list[Step]:
    """Lower the basic form. Outputs: activation, state, joined inputs, the gates' sums, then activation and state again
    as the variables' new values.
    """
    (x, h, matrix, bias, c), target = (call.input(i) for i in range(5)), call.target
    h_out, c_out, joined, sums, h_next, c_next = call.outputs
    (batch, depth), units = x.shape, h.shape[1]
    share = chunks("basic_lstm", batch, target, work=depth + units)
    tile = target.tile_for("gemm", batch, 4 * units)
    weights = packed_weights(matrix, 1, 4 * units, tile.panel, target)
    start = packed(bias, 1, 4 * units, tile.panel, target)
    product = Product(batch, 4 * units, depth + units)
    return [
        share.launch("join_inputs", (x, h, joined, *share.args, np.int32(depth), np.int32(units)), {}),
        *weights.steps,
        *start.steps,
        gemm(product, tile, target, joined, weights, start, sums, Activation()),
        share.launch("finish_step", (sums, c, h_out, c_out, h_next, c_next, *share.args, np.int32(units)), {}),
    ]


CL_OPS = (
    ClOp(LSTM, claim=_claim, lower=_lower),
    ClOp(BASIC_LSTM, claim=claims.takes(*claims.FLOAT), lower=_lower_basic),
)
