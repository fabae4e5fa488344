"""FULLY_CONNECTED on the device: dot products with one row, a matrix product with several."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Launch, Operand, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import chunks, rows_of
from litecl.delegate.matmul.gemm import Product, gemm
from litecl.delegate.matmul.packing import CACHED_WEIGHTS, packed_bias, packed_rows, stored, stored_as
from litecl.delegate.matmul.tile import flops, tile_for
from litecl.delegate.ops.gpu import products
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import FullyConnectedOptionsWeightsFormat


def _claim(options: FullyConnectedOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Refusal(f"weights are stored as {options.weights_format.name}")
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)


def _lower(call: Call) -> list[Step]:
    x, weights = call.input(0), call.input(1)
    columns, depth = weights.shape
    rows = x.spec.size // depth
    if rows == 1 and call.target.kind == "cpu" and (weights.data is None or weights.spec.size > CACHED_WEIGHTS):
        return [_dots(call, columns, depth)]  # summing over lanes costs more than packing where weights are cached
    tile = tile_for("gemm", call.target, rows, columns)
    packed, packing = packed_rows(weights, 1, tile.panel, call.target)
    bias, padding = packed_bias(_bias(call), columns, 1, tile.panel, call.target)
    product = Product(rows, columns, depth)
    launch = gemm(product, tile, call.target, x, packed, bias, call.outputs[0], call.activation, call.residual)
    return [*packing, *padding, launch]


def _dots(call: Call, columns: int, depth: int) -> Launch:
    bias = _bias(call)
    dots = rows_of("fully_connected", call.target, columns)
    share = chunks("fully_connected", columns, call.target, step=dots, work=depth)
    nothing = Const(np.zeros(1, np.float32))
    values = call.input(1).data
    weights: Arg = call.input(1) if values is None or not call.target.half_weights else stored(values, call.target)
    operands = (call.input(0), weights, bias or nothing, call.residual or nothing, call.outputs[0])
    flags = (np.int32(bias is not None), np.int32(call.residual is not None))
    return share.launch(
        "fully_connected",
        (*operands, *share.args, np.int32(depth), *flags, *call.activation.bounds),
        call.activation.defines | stored_as(weights) | {"MR": str(dots)},
        flops(columns, depth),
    )


def _bias(call: Call) -> Operand | None:
    return call.inputs[2] if len(call.inputs) > 2 else None


CL_OPS = (
    ClOp(
        FULLY_CONNECTED,
        claim=_claim,
        lower=_lower,
        on_gpu=products.dense,
        fuses_activation=True,
        fuses_residual=True,
        writes_rows=True,
    ),
)
