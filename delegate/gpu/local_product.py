"""Products on a GPU by tiles in local memory: kernels_cl/product_local.cl."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Record, Scratch, Weights
from litecl.delegate.gpu.groups import LocalShare
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.matmul.product import panels
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

VECTOR = 4
"""Elements loaded at once, from aligned offsets."""


@dataclass(frozen=True)
class Slice(Record):
    """The offsets of one product's operands, in elements."""

    x: int
    weights: int
    bias: int
    out: int


@dataclass(frozen=True)
class LocalProduct(Record):
    """Arguments of product_local.cl. aligned: whether four columns of a result are stored at once."""

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
class ByWindow:
    """A depthwise convolution, followed by a clamp, that computes the rows of a product.

    taps: [1, height, width, channels], a constant or computed on the device. bias: [channels].
    """

    x: Operand
    window: Geometry
    taps: Array | Operand
    bias: Array
    clamp: Activation

    @property
    def args(self) -> tuple[Arg, ...]:
        """The kernel's additional arguments."""
        taps = self.taps if isinstance(self.taps, Operand) else Const(self.taps)
        return taps, Const(self.bias), *self.clamp.bounds

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The kernel's additional macros: the window's size, so that its loads overlap."""
        return {"WINDOW_HEIGHT": self.window.kernel_height, "WINDOW_WIDTH": self.window.kernel_width}


@dataclass(frozen=True, eq=False)
class LocalOperands:
    """The operands of products. weights: in panels, or as ``layout`` says; bias: padded to whole tiles.

    out_step: elements from one row of the output to the next. before: the convolution that computes x.
    """

    x: Operand | Scratch
    weights: Arg
    bias: Const
    out: Operand | Scratch
    out_step: int
    residual: Operand | Scratch | None = None
    before: ByWindow | None = None


def local_product(
    operands: LocalOperands,
    share: LocalShare,
    window: Geometry,
    slices: Sequence[Slice],
    activation: Activation,
    layout: Mapping[str, str | int | float],
) -> Launch:
    """Return the launch of product_local.cl. layout: the macros for the layout of x and the weights."""
    o, residual = operands, operands.residual
    aligned = all(n % VECTOR == 0 for n in (o.out_step, *(one.out for one in slices)))
    sizes = (share.rows, share.columns, share.depth, share.padded_depth, share.parts, share.part_depth)
    before = o.before
    seen, has_residual = window if before is None else before.window, residual is not None
    shape = LocalProduct(seen, *sizes, o.out_step, int(has_residual), int(aligned))
    defines = {**layout, **activation.defines}
    begins, added = tuple(slices), o.bias if residual is None else residual
    flops = 2 * len(slices) * share.rows * share.columns * share.depth
    local, bounds = share.tile.local, activation.bounds
    x = o.x if before is None else before.x
    args: tuple[Arg, ...] = (x, o.weights, o.bias, added, o.out, begins, shape, local, *bounds, *left_for_others(share))
    if before is None:
        return share.launch("product_local", "product_local", args, defines, flops)
    more, total = defines | before.defines, flops + before.window.flops
    return share.launch("product_local", "product_local", (*args, *before.args), more, total)


def left_for_others(share: LocalShare) -> tuple[Arg, ...]:
    """Return the memory in which groups that share a depth leave the last one their sums, and a counter per tile."""
    if share.parts == 1:
        return ()
    # The counters must survive between runs; other launches would overwrite scratch.
    return Scratch(share.parts_bytes), Const(np.zeros(share.tiles, np.int32))


def in_tiles(matrices: Array, share: LocalShare) -> Weights:
    """Pack matrices [.., columns, depth] in panels as wide as a tile, the depth padded to whole steps."""
    more = share.padded_depth - share.depth
    padded = np.pad(matrices, ((0, 0), (0, 0), (0, more)))
    return Weights(Const(panels(padded, share.tile.columns)))


def padded_bias(bias: Array | None, share: LocalShare) -> Const:
    """Return a bias, zeros if there is none, padded to whole tiles."""
    values = np.zeros((share.slices, share.columns), np.float32) if bias is None else bias
    split = np.reshape(values, (-1, share.columns)).astype(np.float32)
    return Const(np.pad(split, ((0, 0), (0, share.padded_columns - share.columns))))
