"""Products of matrices: weights packed as kernels read them, and the launch of kernels_cl/gemm.cl.

Weights are packed on the host where they are constant, by a kernel where they are not.
"""

from dataclasses import replace
from math import prod

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Record, Scratch, Target, Weights
from litecl.delegate.kit.schedule import Tile
from litecl.interpreter.buffers import aligned
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Shape

CACHED_WEIGHTS = 1 << 18  # elements that fit in a CPU's second-level cache


def panels(matrices: Array, panel: int) -> Array:
    """Pack matrices [.., columns, depth] as [.., columns / panel, depth, panel], padded with columns of zeros.

    The result is read-only: the device may read it in place.
    """
    *outer, columns, depth = matrices.shape
    whole, rest = divmod(columns, panel)
    shape = *outer, whole + (rest > 0), depth, panel
    size_bytes = 4 * prod(shape)
    packed = aligned(size_bytes)[:size_bytes].view(np.float32).reshape(shape)
    packed[..., :whole, :, :] = matrices[..., : whole * panel, :].reshape(*outer, whole, panel, depth).swapaxes(-1, -2)
    if rest:
        packed[..., whole, :, :rest] = matrices[..., whole * panel :, :].swapaxes(-1, -2)
    packed.flags.writeable = False
    return packed


def in_halves(launch: Launch) -> Launch:
    """Return a launch with fp16 weights if they exceed a CPU's cache (reading costs more than converting) and none
    overflows.
    """
    args, defines = [*launch.args], {**launch.defines}
    for i, arg in enumerate(args):
        if isinstance(arg, Weights) and (values := arg.values.data) is not None and _pays(values):
            args[i], defines[arg.macro] = Const(values.astype(np.float16)), 1
    return replace(launch, args=tuple(args), defines=defines)


def _pays(weights: Array) -> bool:
    return weights.size > CACHED_WEIGHTS and bool(np.max(np.abs(weights)) <= np.finfo(np.float16).max)


@dataclass(frozen=True)
class Strided:
    """``images`` matrices of ``depth`` x ``columns`` in memory: steps from one image, row and column to the next."""

    images: int
    depth: int
    columns: int
    image_step: int
    row_step: int
    column_step: int


def pack(x: Operand, source: Strided, panel: int, target: Target) -> tuple[Scratch, Launch]:
    """Pack matrices on the device as ``panels`` does on the host; return the memory and the launch that fills it."""
    s = source
    lines = -(-s.columns // panel) * s.depth
    packed = Scratch(4 * s.images * lines * panel)
    share = target.chunks("pack", s.images * lines, 1, panel)
    sizes = (lines, s.depth, panel, s.columns, s.image_step, s.row_step, s.column_step)
    return packed, share.launch("pack", (x, packed, *share.args, *(np.int32(n) for n in sizes)), {})


@dataclass(frozen=True, eq=False)
class Packed:
    """Weights, or a bias, in panels, and the launches that pack them if the device computes them."""

    values: Arg
    steps: tuple[Launch, ...] = ()


def packed_weights(weights: Operand, groups: int, columns: int, panel: int, target: Target) -> Packed:
    """Pack the rows of ``groups`` matrices, [groups * columns, ..]."""
    whole = packed(weights, groups, columns, panel, target)
    return Packed(Weights(whole.values)) if isinstance(whole.values, Const) else whole


def packed(values: Operand | None, groups: int, columns: int, panel: int, target: Target) -> Packed:
    """Pack the rows of ``groups`` matrices, or a bias of groups * columns elements; None is zeros."""
    rows = groups * columns
    if values is not None and values.data is None:
        depth = values.spec.size // rows
        scratch, launch = pack(values, Strided(groups, depth, columns, columns * depth, 1, depth), panel, target)
        return Packed(scratch, (launch,))
    known = np.zeros(rows, np.float32) if values is None else values.value
    if not known.size:
        return Packed(Const(np.zeros(1, np.float32)))
    return Packed(Const(panels(known.reshape(groups, columns, -1), panel)))


def starts(batch: Shape, size: int, to: Shape) -> Array:
    """Return where each product's matrix starts in an operand, in elements, as an array of shape ``to``.

    batch: the operand's dimensions before its matrices of ``size`` elements; they broadcast to ``to``.
    """
    return np.broadcast_to(np.arange(prod(batch)).reshape(batch) * size, to)


@dataclass(frozen=True)
class Begin(Record):
    """The offsets of a product's operands, in elements."""

    x: int
    weights: int


@dataclass(frozen=True)
class Product:
    """``len(begins)`` products of [rows, depth] and [depth, columns]."""

    rows: int
    columns: int
    depth: int
    begins: tuple[Begin, ...] = (Begin(0, 0),)

    @property
    def flops(self) -> int:
        """Arithmetic operations of all products."""
        return 2 * len(self.begins) * self.rows * self.columns * self.depth


def gemm(
    product: Product,
    tile: Tile,
    target: Target,
    x: Operand | Scratch,
    weights: Packed,
    bias: Packed,
    out: Operand | Scratch,
    activation: Activation,
    residual: Operand | Scratch | None = None,
) -> Launch:
    """Return the launch of activation(x weights + bias + residual), for operands packed for ``tile``."""
    p = product
    grid = target.product("gemm", tile, (p.rows, p.columns, p.depth), len(p.begins))
    out_step = p.columns if isinstance(out, Scratch) or out.row_step is None else out.row_step
    sizes = (p.rows, p.columns, p.depth, out_step, *grid.shares[:2], int(residual is not None))
    added = bias.values if residual is None else residual
    return grid.launch(
        "gemm",
        (x, weights.values, bias.values, added, out, p.begins, *(np.int32(n) for n in sizes), *activation.bounds),
        tile.defines | activation.defines,
        p.flops,
    )
