"""Convolutions in bytes (kernels_cl/patches.h): their geometry, and how patches and columns are dealt out."""

from dataclasses import astuple, dataclass, replace

from litecl.delegate.cl_op import Pads, Scratch, Target
from litecl.delegate.matmul.tile import Grid, Tile, flops, grid_for, tile_for
from litecl.interpreter.graph import Shape
from litecl.interpreter.kit.window import Window

_ITEMS_PER_UNIT = 8
_LEAST_ITEM_OPERATIONS = 1e5
_LINE = 64  # bytes of a line of the cache


@dataclass(frozen=True)
class Geometry:
    """The struct of this name in kernels_cl/patches.h, up to the fields that name groups."""

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
    groups: int = 1
    group_x: int = 0
    group_out: int = 0

    @property
    def words(self) -> "Geometry":
        """The same convolution of 16-bit activations, each of which counts for two channels."""
        channels, group_channels, group_x = 2 * self.channels, 2 * self.group_channels, 2 * self.group_x
        return replace(self, channels=channels, group_channels=group_channels, group_x=group_x)

    @property
    def patch(self) -> int:
        """Bytes of the dot product that an output element is."""
        return self.kernel_height * self.kernel_width * self.group_channels


def matrix(rows: int, depth: int, columns: int) -> Geometry:
    """A plain product: rows are pixels side by side."""
    return Geometry(1, rows, depth, depth, pixels=rows, out_width=rows, columns=columns, group_columns=columns)


def geometry(windows: tuple[Window, Window], x: Shape, filter_: Shape, out: Shape, pads: Pads) -> Geometry:
    """The geometry of a convolution with filters [columns, height, width, channels of a group].

    pads: zeros around ``x``, beside those that the windows ask for.
    """
    vertical, horizontal = windows
    pixels = out[0] * out[1] * out[2]
    pointwise = filter_[1:3] == (1, 1) and vertical.stride == horizontal.stride == 1
    if pointwise and filter_[3] == x[3] and pads == Pads():
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
        pad_y=vertical.before + pads.top,
        pad_x=horizontal.before + pads.left,
        pixels=pixels,
        out_height=out[1],
        out_width=out[2],
        columns=filter_[0],
        group_columns=filter_[0] * filter_[3] // x[3],
        groups=x[3] // filter_[3],
        group_x=filter_[3],
        group_out=filter_[0] * filter_[3] // x[3],
    )


@dataclass(frozen=True)
class Patches:
    """How the work of a convolution is dealt out: by tiles, and by work-items with memory for what a tile sees.

    lines: whether the pixels of a tile lie in one line of the output and share the lines of the input that they see.
    """

    geometry: Geometry
    tile: Tile
    grid: Grid
    lines: bool
    item_bytes: int
    scratch: Scratch

    @property
    def runs(self) -> int:
        """Of how many runs a patch consists."""
        return self.geometry.kernel_height if self.lines else 1

    def sizes(self, x_bytes: int) -> tuple[int, ...]:
        """The struct's fields up to ``size``, for an input of ``x_bytes``."""
        g, row_bytes = self.geometry, _row_bytes(self.geometry, self.lines)
        # Lines are counted in whole tiles, and pads move what a pixel sees: then rows are not where pixels are.
        pixelwise = not self.lines and (g.kernel_height, g.kernel_width, g.groups, g.pad_y, g.pad_x) == (1, 1, 1, 0, 0)
        plain = int(pixelwise and (g.out_height, g.out_width, row_bytes) == (g.height, g.width, g.channels))
        row_step = g.stride_x * g.channels if self.lines else row_bytes
        runs = (row_bytes, row_step, self.runs, row_bytes // self.runs, _run_step(g, self.tile) if self.lines else 0)
        width = g.out_width if self.lines else g.pixels
        lines = (int(self.lines), width, -(-width // self.tile.rows) * self.tile.rows)
        return *astuple(g), self.grid.item_rows, self.grid.item_columns, *runs, *lines, plain, self.item_bytes, x_bytes


# Rows and vectors of the tiles that take a line, and the share of the peak that each reaches; by vector width.
_LINE_TILES: dict[int, tuple[tuple[int, int, float], ...]] = {
    16: ((16, 1, 0.94), (8, 2, 1.0), (6, 4, 1.0)),
    8: ((12, 1, 0.9), (6, 2, 1.0)),
    4: ((12, 1, 0.9), (6, 2, 1.0)),
}
_LEAST_SHARE = 0.6  # of the pixels of tiles that a line must fill


def patches(g: Geometry, target: Target, *, words: bool = False) -> Patches:
    """The tiles and work-items of a convolution; ``words`` are gathered patch by patch."""
    dense = g.dilation_x == 1 and g.groups == 1 and g.height * g.kernel_height * g.kernel_width * g.stride_x > 1
    line_tile = _line_tile(g, target) if dense and not words and target.kind == "cpu" else None
    lines = line_tile is not None
    tile = line_tile or tile_for(target, g.pixels, g.group_columns)
    width = g.out_width if lines else g.pixels
    pixels = g.pixels // width * -(-width // tile.rows) * tile.rows
    grid = _grid(tile, target, replace(g, pixels=pixels))
    items = -(-pixels // grid.item_rows) * -(-g.group_columns // grid.item_columns) * g.groups
    rows = g.kernel_height * _run_step(g, tile) if lines else tile.rows * _row_bytes(g, False)
    item_bytes = rows + 4 * target.vector_width
    return Patches(g, tile, grid, lines, item_bytes, Scratch(items * item_bytes))


def _line_tile(g: Geometry, target: Target) -> Tile | None:
    """The tile that takes the lines of the output with the least waste, if that is little enough."""
    width = target.vector_width

    def waste(rows: int, vectors: int, share: float) -> float:
        return -(-g.out_width // rows) * rows * -(-g.columns // (vectors * width)) * vectors / share

    rows, vectors, _ = min(_LINE_TILES[width], key=lambda tile: waste(*tile))
    fits = g.out_width >= _LEAST_SHARE * -(-g.out_width // rows) * rows
    return Tile(rows, vectors, width, vectors * width) if fits else None


def _run_step(g: Geometry, tile: Tile) -> int:
    """Bytes from one of the lines that a tile sees to the next."""
    return -(-((tile.rows - 1) * g.stride_x + g.kernel_width) * g.channels // _LINE) * _LINE


def _row_bytes(g: Geometry, lines: bool) -> int:
    """Bytes of a patch, each run of it padded to whole ints."""
    runs = g.kernel_height if lines else 1
    return -(-(g.patch // runs) // 4) * 4 * runs


def _grid(tile: Tile, target: Target, g: Geometry) -> Grid:
    """Few work-items, each with memory for the rows that it gathers, and all columns where there are rows enough."""
    if target.kind == "gpu":
        return grid_for(tile, target, g.pixels, g.group_columns, g.patch, g.groups)
    bands, panels = -(-g.pixels // tile.rows), -(-g.group_columns // tile.columns)
    wanted = 1
    if target.compute_units > 1:
        operations = flops(g.pixels, g.group_columns, g.patch)
        wanted = max(1, min(target.compute_units * _ITEMS_PER_UNIT, int(operations / _LEAST_ITEM_OPERATIONS)))
    bands_per_item = -(-bands // min(bands, wanted))
    rows = -(-bands // bands_per_item)
    panels_per_item = -(-panels // min(panels, max(1, wanted // (rows * g.groups))))
    columns = -(-panels // panels_per_item)
    return Grid(bands_per_item * tile.rows, panels_per_item * tile.columns, (rows, columns, g.groups), (1, 1, 1))
