"""BATCH_MATMUL on the device: operands in another layout than a product needs are packed first."""

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Operand, Scratch, Step, Weights
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import Tile
from litecl.delegate.matmul.product import Begin, Packed, Product, Strided, gemm, pack, packed, panels, starts
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions


def lower(call: Call) -> list[Step]:
    """Return the launches of a product of packed operands."""
    options: BatchMatMulOptions = call.options
    x, y, out = call.input(0), call.input(1), call.outputs[0]
    batch, (rows, columns) = out.shape[:-2], out.shape[-2:]
    depth = x.shape[-2] if options.adj_x else x.shape[-1]
    x_batch, y_batch = x.shape[:-2], y.shape[:-2]
    if np.prod(y_batch) == 1:  # all products share y: their rows are rows of one product
        batch, x_batch, y_batch, rows = (), (), (), out.spec.size // columns
    tile = call.target.tile_for("gemm", rows, columns)
    left, transposing = _rows_first(call, depth)
    right = _panels(call, tile, depth, columns)
    bias = packed(None, 1, columns, tile.panel, call.target)
    padded = -(-columns // tile.panel) * tile.panel
    matrices = starts(x_batch, rows * depth, batch), starts(y_batch, depth * padded, batch)
    product = Product(rows, columns, depth, tuple(map(Begin, *(each.ravel().tolist() for each in matrices))))
    launch = gemm(product, tile, call.target, left, right, bias, out, call.activation, call.residual)
    return [*transposing, *right.steps, launch]


def _rows_first(call: Call, depth: int) -> tuple[Operand | Scratch, list[Launch]]:
    """Return ``x`` with its depth innermost."""
    x = call.input(0)
    if not call.options.adj_x:
        return x, []
    rows = x.shape[-1]
    # A single panel as wide as the depth: its lines are the rows of the transpose.
    source = Strided(x.spec.size // (rows * depth), rows, depth, rows * depth, 1, rows)
    transposed, launch = pack(x, source, depth, call.target)
    return transposed, [launch]


def _panels(call: Call, tile: Tile, depth: int, columns: int) -> Packed:
    """Return ``y`` packed for the tile."""
    y = call.input(1)
    if y.data is not None:
        matrices = y.data if call.options.adj_y else y.data.swapaxes(-1, -2)
        return Packed(Weights(Const(panels(matrices, tile.panel))))
    if columns == tile.panel and not call.options.adj_y:
        return Packed(y)  # one panel: its layout is that of the matrix
    row_step, column_step = (1, depth) if call.options.adj_y else (columns, 1)
    source = Strided(y.spec.size // (depth * columns), depth, columns, depth * columns, row_step, column_step)
    scratch, launch = pack(y, source, tile.panel, call.target)
    return Packed(scratch, (launch,))


CL_OPS = (
    ClOp(
        BATCH_MATMUL,
        claim=claims.takes(*claims.FLOAT),
        lower=lower,
        fuses_activation=True,
        fuses_residual=True,
    ),
)
