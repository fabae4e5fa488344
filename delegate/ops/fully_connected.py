"""FULLY_CONNECTED on the device: dot products with one row, a matrix product with several."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Operand, Refusal, Step, Weights
from litecl.delegate.cpu.schedules import SUM_OF_LANES
from litecl.delegate.cpu.target import CpuCall
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import Tile, chunks, flops
from litecl.delegate.matmul.product import CACHED_WEIGHTS, Product, gemm, packed, packed_weights
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import FullyConnectedOptionsWeightsFormat


def _claim(options: FullyConnectedOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Refusal(f"weights are stored as {options.weights_format.name}")
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)


def lower(call: Call) -> list[Step]:
    """Return the launches of a product of packed operands."""
    (x, matrix, bias), target = call.weighted, call.target
    columns, depth = matrix.shape
    rows = x.spec.size // depth
    tile = target.tile_for("gemm", rows, columns)
    weights = packed_weights(matrix, 1, columns, tile.panel, target)
    added = packed(bias, 1, columns, tile.panel, target)
    product = Product(rows, columns, depth)
    launch = gemm(product, tile, target, x, weights, added, call.outputs[0], call.activation, call.residual)
    return [*weights.steps, *added.steps, launch]


def _on_cpu(call: CpuCall) -> list[Step]:
    x, matrix, _ = call.weighted
    columns, depth = matrix.shape
    tile = call.target.tile_for("gemm", x.spec.size // depth, columns)
    if x.spec.size == depth and (matrix.data is None or _suits_dots(matrix, tile)):
        return [_dots(call, columns, depth)]
    return lower(call)


def _suits_dots(matrix: Operand, tile: Tile) -> bool:
    """Return whether sums over lanes cost less than packing: the columns that a tile wastes or, for weights beyond the
    cache, a second copy of them.
    """
    columns, depth = matrix.shape
    padded = -(-columns // tile.columns) * tile.columns
    dots = columns * (-(-depth // tile.width) + SUM_OF_LANES)
    return matrix.spec.size > CACHED_WEIGHTS or dots * tile.width < depth * padded


def _dots(call: Call, columns: int, depth: int) -> Launch:
    x, matrix, bias = call.weighted
    share = chunks("fully_connected", columns, call.target, work=depth)
    nothing = Const(np.zeros(1, np.float32))
    weights = matrix if matrix.data is None else Weights(matrix)
    operands = (x, weights, bias or nothing, call.residual or nothing, call.outputs[0])
    flags = (np.int32(bias is not None), np.int32(call.residual is not None))
    return share.launch(
        "fully_connected",
        (*operands, *share.args, np.int32(depth), *flags, *call.activation.bounds),
        call.activation.defines,
        flops(columns, depth),
    )


CL_OPS = (
    ClOp(
        FULLY_CONNECTED,
        claim=_claim,
        lower=_on_cpu,
        fuses_activation=True,
        fuses_residual=True,
        writes_rows=True,
    ),
)
