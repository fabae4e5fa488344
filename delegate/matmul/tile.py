"""Register tiles of matrix products (kernels_cl/tile.h): their size for a device, and how they are dealt out."""

from dataclasses import dataclass
from math import prod

from litecl.delegate.cl_op import Target

_LEAST_ITEM_FLOPS = 5e4
_ITEMS_PER_UNIT = 8
_PANEL_CACHE_BYTES = 32768  # panels this small stay in the first-level cache while a tile's rows pass them all
_WEIGHTS_CACHE_BYTES = 1 << 19  # weights this small stay in the second-level cache
_GPU_GROUP = 64
_GPU_PANEL_ITEMS = 32


@dataclass(frozen=True)
class Tile:
    """Accumulators of a work-item: ``rows`` x ``vectors`` vectors of ``width`` floats; weights lie ``panel`` wide."""

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


# Rows and vectors of the tiles that the registers hold, and the share of the peak that each reaches; by vector width.
_TILES: dict[int, tuple[tuple[int, int, float], ...]] = {
    16: ((7, 2, 0.97), (7, 3, 1.0), (14, 1, 0.82)),
    8: ((6, 2, 1.0), (4, 3, 0.95), (12, 1, 0.8)),
    4: ((6, 2, 1.0), (12, 1, 0.8)),
}
_NARROWEST = 4


def tile_for(target: Target, rows: int, columns: int, *, narrow: bool = False) -> Tile:
    """The tile that computes a product of ``rows`` x ``columns`` with the least waste.

    narrow: its vectors may be narrower than the device's, where there are so few columns.
    """
    width = target.vector_width
    while narrow and width > _NARROWEST and columns <= width // 2:
        width //= 2
    if target.kind == "gpu":
        height = next(h for h in (8, 4, 1) if rows >= h)
        vectors = -(-4 // width)
        return Tile(height, vectors, width, vectors * width * _GPU_PANEL_ITEMS)
    if rows == 1:
        return Tile(1, 4, width, 4 * width)
    if rows <= 4:
        return Tile(4, 2, width, 2 * width)
    height, vectors, _ = min(_TILES[width], key=lambda t: _padded(rows, t[0]) * _padded(columns, t[1] * width) / t[2])
    return Tile(height, vectors, width, vectors * width)


@dataclass(frozen=True)
class Grid:
    """A work-item's share of every product, and the launch that covers ``products`` of them."""

    item_rows: int
    item_columns: int
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]


def grid_for(tile: Tile, target: Target, rows: int, columns: int, depth: int, products: int = 1) -> Grid:
    """Deals out ``products`` products of ``rows`` x ``depth`` and ``depth`` x ``columns``."""
    if target.kind == "gpu":
        return _gpu_grid(tile, target, rows, columns, products)
    bands, panels = -(-rows // tile.rows), -(-columns // tile.columns)
    panels_per_item = min(panels, max(1, _PANEL_CACHE_BYTES // (4 * max(1, depth) * tile.columns)))
    if 4 * depth * columns <= _WEIGHTS_CACHE_BYTES and bands >= target.compute_units * _ITEMS_PER_UNIT:
        panels_per_item = panels  # whole rows, which the unit that computes them has at hand for the next operator
    flops = 2 * tile.rows * tile.columns * max(1, depth) * panels_per_item
    total = flops * bands * products * -(-panels // panels_per_item)
    wanted = target.tuning.item_flops
    if target.compute_units > 1:
        wanted = max(_LEAST_ITEM_FLOPS, min(wanted, total / (target.compute_units * _ITEMS_PER_UNIT)))
    bands_per_item = min(bands, max(1, round(wanted / flops)))
    items = (-(-bands // bands_per_item), -(-panels // panels_per_item), products)
    return Grid(bands_per_item * tile.rows, panels_per_item * tile.columns, items, (1, 1, 1))


def _gpu_grid(tile: Tile, target: Target, rows: int, columns: int, products: int) -> Grid:
    """One tile a work-item, neighbours side by side along the columns."""
    bands, panels = -(-rows // tile.rows), -(-columns // tile.columns)
    group = min(_GPU_GROUP, target.max_work_group_size)
    wide = min(group, _GPU_PANEL_ITEMS, 1 << (panels - 1).bit_length())
    local = (wide, group // wide, 1)
    return Grid(tile.rows, tile.columns, (_padded(panels, local[0]), _padded(bands, local[1]), products), local)


def _padded(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def flops(*dims: int) -> int:
    """Arithmetic operations of products whose dimensions these are: a multiplication and an addition each."""
    return 2 * prod(dims)
