"""Transposition of matrices through local memory (kernels_cl/transpose_local.cl)."""

from enum import IntEnum

from litecl.delegate.cl_op import Launch, Local
from litecl.delegate.gpu.groups import groups
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.kit import strided
from litecl.delegate.kit.strided import Matrices

_ITEMS = 256  # of a group


class LocalSquare(IntEnum):
    """The tile of transpose_local.cl: SIDE rows and columns."""

    SIDE = 32


def transposed(matrices: Matrices, target: GpuTarget) -> Launch:
    """Return the launch in groups, if matrices are large and the device has room for a group; see ``strided``."""
    m, side = matrices, int(LocalSquare.SIDE)
    local = Local(m.size_bytes * side * (side + 1))
    if 2 * min(m.rows, m.columns) < side or not target.has_room(_ITEMS, local):
        return strided.transposed(m, target)
    count = m.count * -(-m.rows // side) * -(-m.columns // side)
    return groups("transpose_local", "transpose_local", count, _ITEMS, (*m.memory, local, *m.sizes), {"T": m.bits}, 0)
