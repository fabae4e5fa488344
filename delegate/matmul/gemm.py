"""The launch of kernels_cl/gemm.cl, shared by several operators."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Scratch, Target
from litecl.delegate.kit.shared import packed
from litecl.delegate.matmul.packing import stored_as
from litecl.delegate.matmul.tile import Tile, flops, grid_for


@dataclass(frozen=True)
class Begin:
    """The offsets of a product's operands, in elements."""

    x: int
    weights: int


@dataclass(frozen=True)
class Product:
    """``len(begins)`` products of [rows, depth] and [depth, columns]."""

    rows: int
    columns: int
    depth: int
    begins: Sequence[Begin] = (Begin(0, 0),)


def gemm(
    product: Product,
    tile: Tile,
    target: Target,
    x: Operand | Scratch,
    weights: Arg,
    bias: Arg,
    out: Operand | Scratch,
    activation: Activation,
    residual: Operand | Scratch | None = None,
) -> Launch:
    """Compute activation(x weights + bias + residual), for weights packed for ``tile``."""
    p = product
    grid = grid_for("gemm", tile, target, p.rows, p.columns, p.depth, len(p.begins))
    row_step = None if isinstance(out, Scratch) else out.row_step
    out_step = p.columns if row_step is None else row_step
    sizes = (p.rows, p.columns, p.depth, out_step, *grid.shares, int(residual is not None))
    args = (x, weights, bias, bias if residual is None else residual, out, Const(packed(Begin, p.begins)))
    return grid.launch(
        "gemm",
        (*args, *(np.int32(n) for n in sizes), *activation.bounds),
        tile.defines | stored_as(weights) | activation.defines,
        flops(len(p.begins), p.rows, p.columns, p.depth),
    )
