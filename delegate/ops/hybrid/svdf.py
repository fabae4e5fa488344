"""SVDF of floats with integer weights: multiplies quantized rows by the features; dequantizes the few time weights."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Activation, Call, ClOp, Refusal, Scratch, Step
from litecl.delegate.kit import claims
from litecl.delegate.matmul.geometry import matrix
from litecl.delegate.ops.svdf import BIAS, STATE, claim_operands, remembered
from litecl.delegate.quantized import hybrid
from litecl.delegate.quantized.hybrid_product import hybrid_product, weights_of
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions


def _claim(options: SVDFOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return (
        claims.typed([inputs[i] for i in (0, BIAS, STATE)], claims.FLOAT)
        or claim_operands(options, inputs)
        or hybrid.claim(inputs, 1, 2)
        or claims.activated(options, outputs[0].type)
    )


def _lower(call: Call) -> list[Step]:
    x, features, time = (call.input(i) for i in range(3))
    (batch, depth), filters = x.shape, features.shape[0]
    newest, g = Scratch(4 * batch * filters), matrix(batch, depth, filters)
    kind = call.options.asymmetric_quantize_inputs
    weights = weights_of(features, np.zeros(filters, np.float32))
    first = hybrid_product(x, g, batch, weights, newest, call.target, Activation(), kind=kind)
    return [*first, remembered(call, newest, hybrid.dequantized(time))]


CL_OPS = (ClOp(SVDF, claim=_claim, lower=_lower, fuses_activation=True),)
