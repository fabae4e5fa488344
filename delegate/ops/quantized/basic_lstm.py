"""The basic form of LSTM on 8-bit activations with 16-bit states: joined inputs, a product of bytes, and the cell."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.matmul.geometry import matrix
from litecl.delegate.quantized.integer_product import integer_product
from litecl.delegate.quantized.integers import WORDS, Weights, per_tensor, zero_point
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTMOptions
from litecl.interpreter.recurrent import integer_basic_lstm
from litecl.interpreter.schema import TensorType

_ZERO = 128  # the zero point of all activations


def _claim(options: LSTMOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    weights, bias = claims.given(inputs, 2), claims.given(inputs, 3)
    if refusal := (
        claims.constant(inputs, weights=2, bias=3)
        or per_tensor(weights)
        or claims.typed((bias,), (TensorType.INT32,), quantized=True)
    ):
        return refusal
    try:
        factor = integer_basic_lstm.factor_of(bias, outputs[1])
    except UnsupportedOp as error:
        return Refusal(str(error))
    # With a shift to the right, the kernel of products rounds halves away from zero; ruy rounds them up.
    return Refusal("a bias with a scale below 2**-13") if factor.shift < 0 else None


def _lower(call: Call) -> list[Step]:
    """Lower the node. Outputs: activation, state, joined inputs, gates' sums, then the first two as new variables."""
    x, h, weights, bias, c = (call.input(i) for i in range(5))
    h_out, c_out, joined, sums, h_next, c_next = call.outputs
    (batch, depth), units = x.shape, h.shape[1]
    share = chunks("basic_lstm", batch, call.target, work=depth + units)
    columns = 4 * units
    factor = 4096 * fixed_point.scale_of(bias.spec)
    of_gates = Weights(
        (weights.value.astype(np.int16) - 128).astype(np.int8)[None],
        128 - zero_point(weights.spec),
        bias.value.astype(np.int64).reshape(1, -1),
        np.full((1, columns), factor),
    )
    g, tables, own = matrix(batch, depth + units, columns), integer_basic_lstm.tables(), {"INTEGERS": 1}
    both = Const(np.stack(tables).astype(np.int16))
    ends = (h_out, c_out, h_next, c_next, *share.args, np.int32(units), both)
    return [
        share.launch("join_inputs", (x, h, joined, *share.args, np.int32(depth), np.int32(units)), own),
        integer_product(joined, g, of_gates, sums, TensorType.INT16, _ZERO, WORDS, call.target),
        share.launch("finish_step", (sums, c, *ends), own),
    ]


CL_OPS = (ClOp(BASIC_LSTM, claim=_claim, lower=_lower),)
