"""Convolutions in bytes (kernels_cl/patches.h): their geometry, and how patches and columns are dealt out."""

from dataclasses import astuple, dataclass, replace

from litecl.delegate.cl_op import Scratch, Target
from litecl.delegate.tile import Grid, Tile, flops, grid_for, tile_for
from litecl.interpreter.graph import Shape
from litecl.interpreter.ops.window import Window

_ITEMS_PER_UNIT = 8
_LEAST_ITEM_OPERATIONS = 1e5


@dataclass(frozen=True)
class Geometry:
    """The struct of this name in kernels_cl/patches.h, up to the fields that name columns."""

    height: int
    width: int
    channels: int
    group_channels: int
    kernel_height: int = 1
    kernel_width: int = 1
    stride_y: int = 1
    stride_x: int = 1
    dilation_y: int = 1
    dilation_x: int = 1
    pad_y: int = 0
    pad_x: int = 0
    pixels: int = 1
    out_height: int = 1
    out_width: int = 1
    columns: int = 1
    group_columns: int = 1

    @property
    def words(self) -> "Geometry":
        """The same convolution of 16-bit activations, each of which counts for two channels."""
        return replace(self, channels=2 * self.channels, group_channels=2 * self.group_channels)

    @property
    def patch(self) -> int:
        """Bytes of the dot product that an output element is."""
        return self.kernel_height * self.kernel_width * self.group_channels


def matrix(rows: int, depth: int, columns: int) -> Geometry:
    """A plain product: rows are pixels side by side."""
    return Geometry(1, rows, depth, depth, pixels=rows, out_width=rows, columns=columns, group_columns=columns)


def geometry(windows: tuple[Window, Window], x: Shape, filter_: Shape, out: Shape) -> Geometry:
    """The geometry of a convolution with filters [columns, height, width, channels of a group]."""
    vertical, horizontal = windows
    pixels = out[0] * out[1] * out[2]
    if filter_[1:3] == (1, 1) and filter_[3] == x[3] and vertical.stride == horizontal.stride == 1:
        return matrix(pixels, x[3], filter_[0])
    return Geometry(
        height=x[1],
        width=x[2],
        channels=x[3],
        group_channels=filter_[3],
        kernel_height=filter_[1],
        kernel_width=filter_[2],
        stride_y=vertical.stride,
        stride_x=horizontal.stride,
        dilation_y=vertical.dilation,
        dilation_x=horizontal.dilation,
        pad_y=vertical.before,
        pad_x=horizontal.before,
        pixels=pixels,
        out_height=out[1],
        out_width=out[2],
        columns=filter_[0],
        group_columns=filter_[0] * filter_[3] // x[3],
    )


@dataclass(frozen=True)
class Patches:
    """How the work of a convolution is dealt out: by tiles, and by work-items with memory for the rows of a tile."""

    geometry: Geometry
    tile: Tile
    grid: Grid
    scratch: Scratch

    def sizes(self, x_bytes: int) -> tuple[int, ...]:
        """The struct's fields up to ``size``, for an input of ``x_bytes``."""
        g, row_bytes = self.geometry, _row_bytes(self.geometry)
        plain = int((g.kernel_height, g.height, g.stride_x, row_bytes) == (1, 1, 1, g.channels))
        return *astuple(g), self.grid.item_rows, self.grid.item_columns, row_bytes, plain, x_bytes


def patches(g: Geometry, target: Target) -> Patches:
    """The tiles and work-items of a convolution."""
    groups = g.columns // g.group_columns
    tile = tile_for(target, g.pixels, g.group_columns)
    grid = _grid(tile, target, g, groups)
    items = -(-g.pixels // grid.item_rows) * -(-g.group_columns // grid.item_columns) * groups
    return Patches(g, tile, grid, Scratch(items * (tile.rows * _row_bytes(g) + 4 * target.vector_width)))


def _row_bytes(g: Geometry) -> int:
    return -(-g.patch // 4) * 4


def _grid(tile: Tile, target: Target, g: Geometry, groups: int) -> Grid:
    """Few work-items, each with memory for the rows that it gathers, and all columns where there are rows enough."""
    if target.kind == "gpu":
        return grid_for(tile, target, g.pixels, g.group_columns, g.patch, groups)
    bands, panels = -(-g.pixels // tile.rows), -(-g.group_columns // tile.columns)
    wanted = 1
    if target.compute_units > 1:
        operations = flops(g.pixels, g.group_columns, g.patch)
        wanted = max(1, min(target.compute_units * _ITEMS_PER_UNIT, int(operations / _LEAST_ITEM_OPERATIONS)))
    bands_per_item = -(-bands // min(bands, wanted))
    rows = -(-bands // bands_per_item)
    panels_per_item = -(-panels // min(panels, max(1, wanted // (rows * groups))))
    columns = -(-panels // panels_per_item)
    return Grid(bands_per_item * tile.rows, panels_per_item * tile.columns, (rows, columns, groups), (1, 1, 1))
