"""Convolutions in bytes (kernels_cl/gather_patches.h, patches.h): how patches are gathered, and how patches and columns
are distributed."""

from enum import IntEnum

from litecl.delegate.cl_op import Scratch, Target
from litecl.delegate.kit.schedule import Grid, Tile
from litecl.delegate.matmul.geometry import Geometry, matrix
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_LINE = 64  # bytes of a cache line
_BLOCK_BYTES = 1 << 14  # of a block of lines, half of a first-level cache or less
_FOUR = 4  # bytes that are widened at once where vectors are single numbers
_WIDEST = 16  # lanes of a vector
_MOST_WIDENED = 8  # lanes up to which kernels may widen bytes to words: CPUs with wider vectors multiply bytes


@dataclass(frozen=True)
class Gather:
    """How work-items gather their operands (kernels_cl/patches.h); sizes and steps in bytes.

    group_x, group_out: from one group to the next, in x and, in elements, in the output. widened: the offset in
    a work-item's memory of the gathered bytes as words, if kernels multiply words. size: x's.
    """

    window: Geometry
    group_x: int
    group_out: int
    item_rows: int
    item_columns: int
    row_bytes: int
    row_step: int
    runs: int
    run_bytes: int
    run_step: int
    lines: int
    line_width: int
    line_pixels: int
    line_step: int
    block_lines: int
    plain: int
    item_bytes: int
    widened: int
    size: int


class GatherSize(IntEnum):
    """BLOCK: bytes per lane copied at once; a copy may exceed a work-item's rows by as many."""

    BLOCK = 4


@dataclass(frozen=True)
class Groups:
    """The number of products, and the steps from one to the next: bytes of x, elements of the output."""

    count: int
    x: int
    out: int


@dataclass(frozen=True)
class Patches:
    """How a convolution is distributed: into tiles, and to work-items with memory for a tile's patches.

    lines: whether a tile's pixels are in one line of the output and share the input lines that they read. block_lines:
    how many output lines' input lines are gathered at once, 0 for those of a tile. special: whether rows that need no
    gathering get their own kernels.
    """

    geometry: Geometry
    groups: Groups
    tile: Tile
    grid: Grid
    lines: bool
    block_lines: int
    item_bytes: int
    widened: int
    scratch: Scratch
    special: bool

    @property
    def runs(self) -> int:
        """The number of runs in a patch."""
        return self.geometry.kernel_height if self.lines else 1

    @property
    def plain(self) -> bool:
        """True if rows are pixels of the image, one after another."""
        g = self.geometry
        # Lines are counted in whole tiles, and pads shift the window: then rows of patches are not pixels of the image.
        pixelwise = not self.lines and (g.taps, self.groups.count, g.pad_y, g.pad_x) == (1, 1, 0, 0)
        return pixelwise and (g.out_height, g.out_width, _row_bytes(g, False)) == (g.height, g.width, g.channels)

    def signed_row(self, values: Array, bits: int, target: Target) -> dict[str, str | int | float]:
        """Return the macro of a PLAIN row that is multiplied as signed bytes, by weights that fit in ``bits``."""
        above = int(values.min(initial=0)) > -1 << (bits - 1)
        return {"SIGNED_ROW": 1} if target.byte_pairs and "PLAIN" in self.defines and above else {}

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of the tile, PLAIN for a row that no work-item gathers, ADJACENT for pixels that share loads."""
        g, tile = self.geometry, self.tile
        if self.special and self.plain and (g.pixels, tile.rows) == (1, 1):
            return tile.defines | {"PLAIN": 1}
        # One vector of columns takes as long to load its operands as to multiply them.
        waits = self.lines and g.is_3x3 and g.channels % _FOUR == 0 and (tile.vectors, tile.width) == (1, _WIDEST)
        return tile.defines | ({"ADJACENT": g.kernel_width} if waits else {})

    def gather(self, x_bytes: int) -> Gather:
        """Return the kernel's argument, for an input of ``x_bytes``."""
        g, row_bytes = self.geometry, _row_bytes(self.geometry, self.lines)
        width = g.out_width if self.lines else g.pixels
        line_pixels = -(-width // self.tile.rows) * self.tile.rows
        run_step = _run_step(g, line_pixels if self.block_lines else self.tile.rows) if self.lines else 0
        return Gather(
            window=g,
            group_x=self.groups.x,
            group_out=self.groups.out,
            item_rows=self.grid.shares[0],
            item_columns=self.grid.shares[1],
            row_bytes=row_bytes,
            row_step=g.stride_x * g.channels if self.lines else row_bytes,
            runs=self.runs,
            run_bytes=row_bytes // self.runs,
            run_step=run_step,
            lines=int(self.lines),
            line_width=width,
            line_pixels=line_pixels,
            line_step=min(g.stride_y, g.kernel_height) * run_step,
            block_lines=self.block_lines,
            plain=int(self.plain),
            item_bytes=self.item_bytes,
            widened=self.widened,
            size=x_bytes,
        )


_LEAST_SHARE = 0.6  # share of its tiles' pixels that a line must fill


def patches(
    kernel: str,
    g: Geometry,
    target: Target,
    groups: Groups | None = None,
    *,
    words: bool = False,
    across: bool = False,
) -> Patches:
    """Return the tiles and work-items of a convolution; ``words`` are gathered patch by patch.

    groups: products other than groups of channels. across: whether the weights may be packed for ``Tile.across``.
    """
    g = matrix(g.pixels, g.depth, g.columns) if g.is_product else g
    groups = groups or Groups(g.groups, g.group_channels, g.group_columns)
    is_across = across and groups.count == 1
    few = target.tile_across(g.pixels, g.group_columns, g.depth) if is_across else None
    dense = (
        not few
        and g.dilation_x == 1
        and groups.count == 1
        and g.height * g.kernel_height * g.kernel_width * g.stride_x > 1
    )
    own_lines = _line_tile(kernel, g, target) if dense and not words else None
    lines = own_lines is not None
    tile = own_lines or few or target.tile_for(kernel, g.pixels, g.group_columns)
    width = g.out_width if lines else g.pixels
    line_pixels = -(-width // tile.rows) * tile.rows
    pixels = g.pixels // width * line_pixels
    grid = target.gathered(kernel, tile, (pixels, g.group_columns, g.depth), groups.count)
    items = -(-pixels // grid.shares[0]) * -(-g.group_columns // grid.shares[1]) * groups.count
    block_lines = _block_lines(g, line_pixels, grid.shares[0]) if lines and target.vector_width > 1 else 0
    if lines:
        rows = _gathered_lines(g, block_lines or 1) * _run_step(g, line_pixels if block_lines else tile.rows)
    else:
        rows = tile.rows * _row_bytes(g, False)
    widened = rows + GatherSize.BLOCK * target.vector_width
    special = bool(target.line_tiles)
    item_bytes = widened + (2 * rows if special and tile.rows > 1 and tile.width <= _MOST_WIDENED else 0)
    return Patches(g, groups, tile, grid, lines, block_lines, item_bytes, widened, Scratch(items * item_bytes), special)


def _line_tile(kernel: str, g: Geometry, target: Target) -> Tile | None:
    """Return the tile that covers output lines with the least waste; None if that is too much."""
    among = target.line_tiles.get(kernel)
    if among is None or (target.vector_width == 1 and g.stride_x * g.channels % _FOUR):
        return None
    tile = target.tile_for(kernel, g.out_width, g.columns, among=among)
    return tile if g.out_width >= _LEAST_SHARE * -(-g.out_width // tile.rows) * tile.rows else None


def _block_lines(g: Geometry, line_pixels: int, item_pixels: int) -> int:
    """Return how many of an item's output lines have input lines that fit in the first-level cache, 0 if none."""
    step = _run_step(g, line_pixels)
    most = min(item_pixels // line_pixels, g.out_height if g.dilation_y == 1 else 1)
    return next((n for n in range(most, 0, -1) if _gathered_lines(g, n) * step <= _BLOCK_BYTES), 0)


def _gathered_lines(g: Geometry, lines: int) -> int:
    """Return how many input lines to gather for adjacent output lines."""
    return (lines - 1) * min(g.stride_y, g.kernel_height) + g.kernel_height


def _run_step(g: Geometry, pixels: int) -> int:
    """Return the bytes from one gathered input line, for ``pixels`` of an output line, to the next."""
    return -(-((pixels - 1) * g.stride_x + g.kernel_width) * g.channels // _LINE) * _LINE


def _row_bytes(g: Geometry, lines: bool) -> int:
    """Return the bytes of a patch, with each run padded to whole ints."""
    runs = g.kernel_height if lines else 1
    return -(-(g.depth // runs) // 4) * 4 * runs
