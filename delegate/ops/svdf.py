"""SVDF on the device: a product with the features, then filters over its history (kernels_cl/svdf.cl)."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Call, ClOp, Const, Launch, Operand, Record, Refusal, Scratch, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import chunks, flops
from litecl.delegate.matmul.product import Product, gemm, packed, packed_weights
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions

BIAS, STATE = 3, 4


def claim_operands(options: SVDFOptions, inputs: claims.Specs) -> Refusal | None:
    """Refuse weights and biases that are not constants."""
    bias = inputs[BIAS]
    return claims.constant(inputs, features=1, time=2) or (
        Refusal("a bias that is not a constant") if bias is not None and bias.data is None else None
    )


def _claim(options: SVDFOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return (
        claims.typed(inputs, claims.FLOAT)
        or claim_operands(options, inputs)
        or claims.activated(options, outputs[0].type)
    )


def _lower(call: Call) -> list[Step]:
    (x, features), target = (call.input(i) for i in range(2)), call.target
    (batch, depth), filters = x.shape, features.shape[0]
    tile = target.tile_for("gemm", batch, filters)
    weights = packed_weights(features, 1, filters, tile.panel, target)
    none = packed(None, 1, filters, tile.panel, target)
    newest = Scratch(4 * batch * filters)
    product = gemm(Product(batch, filters, depth), tile, target, x, weights, none, newest, Activation())
    return [*weights.steps, product, remembered(call, newest, call.input(2))]


def remembered(call: Call, newest: Scratch, time: Operand) -> Launch:
    """Return the launch of svdf.cl for floats. newest: [batch, filters], the features' responses."""
    bounds = call.activation.bounds
    return _launch(call, newest, time, np.zeros(1, np.float32), bounds, call.activation.defines)


def remembered_integers(call: Call, newest: Scratch, scale: Record, zero: int) -> Launch:
    """Return the launch of svdf.cl for integers, whose sums are rescaled."""
    type_ = claims.C_TYPES[call.outputs[0].spec.type]
    return _launch(call, newest, call.input(2), np.zeros(1, np.int32), (scale, np.int32(zero)), {"T": type_})


def _launch(
    call: Call,
    newest: Scratch,
    time: Operand,
    no_bias: Array,
    last: Sequence[Arg],
    defines: Mapping[str, str | int | float],
) -> Launch:
    out, after = call.outputs
    (filters, memory), rank, bias = time.shape, call.options.rank, call.inputs[BIAS]
    units = filters // rank
    share = chunks("svdf", out.spec.size, call.target, work=rank * memory)
    sizes = (*share.args, *(np.int32(n) for n in (units, rank, memory, int(bias is not None))))
    operands = (newest, time, bias or Const(no_bias), call.input(STATE), after, out)
    return share.launch("svdf", (*operands, *sizes, *last), defines, flops(after.spec.size))


CL_OPS = (ClOp(SVDF, claim=_claim, lower=_lower, fuses_activation=True),)
