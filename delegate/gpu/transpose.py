"""Transposition of matrices through local memory (kernels_cl/transpose_local.cl)."""

from collections.abc import Callable
from enum import IntEnum

from litecl.delegate.cl_op import Launch, Local
from litecl.delegate.gpu.groups import groups
from litecl.delegate.target import Matrices

_ITEMS = 256  # of a group


class LocalSquare(IntEnum):
    """The tile of transpose_local.cl: SIDE rows and columns."""

    SIDE = 32


def by_squares(matrices: Matrices, has_room: Callable[[int, Local], bool]) -> Launch | None:
    """Return the launch; None if matrices are small, or the device has no room for a group."""
    m, side = matrices, int(LocalSquare.SIDE)
    local = Local(m.size_bytes * side * (side + 1))
    if 2 * min(m.rows, m.columns) < side or not has_room(_ITEMS, local):
        return None
    count = m.count * -(-m.rows // side) * -(-m.columns // side)
    return groups("transpose_local", "transpose_local", count, _ITEMS, (*m.memory, local, *m.sizes), {"T": m.bits}, 0)
