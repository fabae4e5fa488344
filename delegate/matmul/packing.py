"""Weights rearranged as kernels read them: on the host where they are constant, by a kernel where they are not."""

from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Arg, Const, Launch, Operand, Scratch, Target
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.graph import Array

CACHED_WEIGHTS = 1 << 18  # elements that stay in a CPU's second-level cache


def panels(matrices: Array, panel: int) -> Array:
    """Pack matrices [.., columns, depth] as [.., columns / panel, depth, panel], padded with columns of zeros."""
    *outer, columns, depth = matrices.shape
    padded = np.zeros((*outer, -(-columns // panel) * panel, depth), np.float32)
    padded[..., :columns, :] = matrices
    split = padded.reshape(*outer, -1, panel, depth)
    return np.ascontiguousarray(np.swapaxes(split, -1, -2))


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
    share = chunks("pack", s.images * lines, target, work=panel)
    sizes = (lines, s.depth, panel, s.columns, s.image_step, s.row_step, s.column_step)
    return packed, share.launch("pack", (x, packed, *share.args, *(np.int32(n) for n in sizes)), {})


def stored(weights: Array, target: Target) -> Const:
    """Return the weights of a product: as halves if the target asks for them and reading takes longer than converting.

    They stay floats if one of them is too large for a half.
    """
    wanted = target.half_weights and weights.size > CACHED_WEIGHTS
    halves = wanted and np.max(np.abs(weights)) <= np.finfo(np.float16).max
    return Const(weights.astype(np.float16) if halves else weights)


def stored_as(weights: Arg) -> dict[str, str | int | float]:
    """Return the macro of tile.h for weights that are ``stored`` as halves."""
    halves = isinstance(weights, Const) and weights.data is not None and weights.data.dtype == np.float16
    return {"HALF_WEIGHTS": 1} if halves else {}


def packed_rows(weights: Operand, groups: int, panel: int, target: Target) -> tuple[Arg, list[Launch]]:
    """Pack row-major weights [groups * columns, ..] group by group."""
    rows = weights.shape[0]
    depth, columns = weights.spec.size // rows, rows // groups
    if weights.data is not None:
        return stored(panels(weights.data.reshape(groups, columns, depth), panel), target), []
    packed, launch = pack(weights, Strided(groups, depth, columns, columns * depth, 1, depth), panel, target)
    return packed, [launch]


def packed_bias(
    bias: Operand | None, columns: int, groups: int, panel: int, target: Target
) -> tuple[Arg, list[Launch]]:
    """Return a bias of ``groups * columns`` elements, or none, padded to whole panels group by group."""
    if bias is not None and bias.data is None:
        packed, launch = pack(bias, Strided(groups, 1, columns, columns, 0, 1), panel, target)
        return packed, [launch]
    values = np.zeros(groups * columns, np.float32) if bias is None or bias.data is None else bias.data
    return Const(panels(values.reshape(groups, columns, 1), panel)), []
