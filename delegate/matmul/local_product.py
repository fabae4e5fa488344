"""Products of a GPU in tiles in local memory: kernels_cl/product_local.cl."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Record, Scratch
from litecl.delegate.kit.groups import LocalShare
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.matmul.product import Packed, panels
from litecl.interpreter.graph import Array

VECTOR = 4
"""Elements that are loaded at once, from where they are aligned."""


@dataclass(frozen=True)
class Slice(Record):
    """Where the operands of one of several products begin, in elements."""

    x: int
    weights: int
    bias: int
    out: int


@dataclass(frozen=True)
class LocalProduct(Record):
    """What product_local.cl is told of products. aligned: whether four columns of a result are stored at once."""

    window: Geometry
    rows: int
    columns: int
    depth: int
    panel_depth: int
    parts: int
    part_depth: int
    out_step: int
    has_residual: int
    aligned: int


@dataclass(frozen=True, eq=False)
class LocalOperands:
    """What products read and write. weights: in panels, or as ``layout`` has them; bias: padded to whole tiles.

    out_step: elements from one row of the output to the next.
    """

    x: Operand
    weights: Arg
    bias: Const
    out: Operand | Scratch
    out_step: int
    residual: Operand | Scratch | None = None


def local_product(
    operands: LocalOperands,
    share: LocalShare,
    window: Geometry,
    slices: Sequence[Slice],
    activation: Activation,
    layout: Mapping[str, str | int | float],
) -> Launch:
    """Return the launch of product_local.cl. layout: the macros that say how x and the weights lie."""
    o, residual = operands, operands.residual
    aligned = all(n % VECTOR == 0 for n in (o.out_step, *(one.out for one in slices)))
    sizes = (share.rows, share.columns, share.depth, share.padded_depth, share.parts, share.part_depth)
    shape = LocalProduct(window, *sizes, o.out_step, int(residual is not None), int(aligned))
    defines = {**share.defines, **layout, **Packed(o.weights).defines, **activation.defines}
    begins, added = tuple(slices), o.bias if residual is None else residual
    flops = 2 * len(slices) * share.rows * share.columns * share.depth
    local, bounds = share.tile.local, activation.bounds
    args: tuple[Arg, ...] = (o.x, o.weights, o.bias, added, o.out, begins, shape, local, *bounds)
    if share.parts > 1:
        # Runs leave the counts to the next: they are no scratch, which others write meanwhile.
        args += (Scratch(share.parts_bytes), Const(np.zeros(share.tiles, np.int32)))
    return share.product(args, defines, flops)


def in_tiles(matrices: Array, share: LocalShare, *, halves: bool) -> Const:
    """Pack matrices [.., columns, depth] in panels as wide as a tile, the depth in whole steps."""
    more = share.padded_depth - share.depth
    padded = np.pad(matrices, ((0, 0), (0, 0), (0, more)))
    return Const(panels(padded, share.tile.columns, halves=halves))


def padded_bias(bias: Array | None, share: LocalShare) -> Const:
    """Return a bias, zeros if there is none, padded to whole tiles."""
    values = np.zeros((share.slices, share.columns), np.float32) if bias is None else bias
    split = np.reshape(values, (-1, share.columns)).astype(np.float32)
    return Const(np.pad(split, ((0, 0), (0, share.padded_columns - share.columns))))
