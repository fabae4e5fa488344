"""SVDF of 8-bit activations with 16-bit states."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Refusal, Scratch, Step
from litecl.delegate.kit import claims
from litecl.delegate.matmul.geometry import matrix
from litecl.delegate.ops.svdf import BIAS, STATE, claim_operands, remembered_integers
from litecl.delegate.quantized.integer_product import integer_product
from litecl.delegate.quantized.integers import WORDS, Weights, per_tensor, scale, unsigned_zero, zero_point
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.schema import TensorType


def _claim(options: SVDFOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, features, time, state = (claims.given(inputs, i) for i in (0, 1, 2, STATE))
    out = outputs[0]
    return (
        claims.typed((x, features, out), (TensorType.INT8,), quantized=True)
        or claims.typed((time, state), (TensorType.INT16,), quantized=True)
        or claims.typed((inputs[BIAS],), (TensorType.INT32,), quantized=True)
        or claim_operands(options, inputs)
        or per_tensor(x, features, time, state, out)
    )


def _lower(call: Call) -> list[Step]:
    """Return the launches of the features' responses, rescaled to 16 bits, and of the filters over their history."""
    x, features, time, state = (call.input(i) for i in (0, 1, 2, STATE))
    out, (batch, depth), filters = call.outputs[0], x.shape, features.shape[0]
    scales = [np.float32(fixed_point.scale_of(operand.spec)) for operand in (x, features, time, state, out)]
    of_x, of_features, of_time, of_state, of_out = scales
    weights = Weights(
        features.value[None],
        0,
        np.zeros((1, filters), np.int64),
        np.full((1, filters), of_x * of_features / of_state, np.float64),
    )
    newest, g = Scratch(2 * batch * filters), matrix(batch, depth, filters)
    first = integer_product(x, g, weights, newest, TensorType.INT16, unsigned_zero(x.spec), WORDS, call.target)
    last = scale(float(of_state * of_time / of_out))
    return [first, remembered_integers(call, newest, last, zero_point(out.spec))]


CL_OPS = (ClOp(SVDF, claim=_claim, lower=_lower),)
