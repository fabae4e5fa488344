"""Register tiles of matrix products (kernels_cl/tile.h): their size for a device, and how they are dealt out."""

from dataclasses import dataclass
from math import prod

from litecl.delegate.cl_op import Target
from litecl.delegate.kit.schedule import Grid, filled, grid, is_busy, product_tile, schedule_of


@dataclass(frozen=True)
class Tile:
    """Accumulators of a work-item: ``rows`` x ``vectors`` vectors of ``width`` floats; weights are packed
    ``panel`` wide.
    """

    rows: int
    vectors: int
    width: int
    panel: int

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        return self.vectors * self.width

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of tile.h."""
        return {"MR": self.rows, "NV": self.vectors, "PANEL": self.panel, "WIDTH": self.width}


_NARROWEST = 4


def tile_for(kernel: str, target: Target, rows: int, columns: int, *, narrow: bool = False) -> Tile:
    """Return the tile with which a kernel computes a product of ``rows`` x ``columns`` with the least waste.

    narrow: its vectors may be narrower than the device's if there are few columns.
    """
    width = target.vector_width
    while narrow and width > _NARROWEST and columns <= width // 2:
        width //= 2
    shape = product_tile(kernel, target, rows, columns, width)
    # On a GPU a panel is wider than a tile, so that neighbours read side by side.
    tiles = schedule_of(kernel, target).wide if target.kind == "gpu" else 1
    return Tile(shape.rows, shape.vectors, width, shape.vectors * width * tiles)


def grid_for(kernel: str, tile: Tile, target: Target, rows: int, columns: int, depth: int, products: int = 1) -> Grid:
    """Deal out ``products`` products of ``rows`` x ``depth`` and ``depth`` x ``columns``; shares are rows, columns."""
    bands, panels = -(-rows // tile.rows), -(-columns // tile.columns)
    if target.kind == "gpu":
        return tiled(kernel, tile, target, (bands, panels, products), (1, 1))
    schedule = schedule_of(kernel, target)
    panel_bytes = 4 * max(1, depth) * tile.columns
    per_item = min(panels, max(1, schedule.near_bytes // panel_bytes))
    if 4 * depth * columns <= schedule.far_bytes and is_busy(kernel, target, bands):
        per_item = panels  # whole rows, which stay in the cache of the unit that computes them for the next operator
    work = 2 * tile.rows * tile.columns * max(1, depth) * per_item
    own_bands = filled(kernel, target, bands, products * -(-panels // per_item), work)
    return tiled(kernel, tile, target, (bands, panels, products), (own_bands, per_item))


def tiled(kernel: str, tile: Tile, target: Target, counts: tuple[int, int, int], shares: tuple[int, int]) -> Grid:
    """Return the launch that covers bands, panels and products, of which a work-item owns bands and panels.

    Adjacent work-items of a GPU take adjacent panels (``ROW_ITEM`` in kernels_cl/tile.h).
    """
    order = (1, 0, 2) if target.kind == "gpu" else (0, 1, 2)
    owned = (*shares, 1)
    found = grid(kernel, target, [counts[i] for i in order], [owned[i] for i in order])
    return Grid(kernel, (shares[0] * tile.rows, shares[1] * tile.columns), found.global_size, found.local_size)


def flops(*dims: int) -> int:
    """Return the operations of products with these dimensions: a multiplication and an addition per term."""
    return 2 * prod(dims)
