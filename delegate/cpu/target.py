"""A CPU as lowerings know it: few work-items, each a group of its own, with tiles in registers and long runs."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import inf
from typing import ClassVar, Literal

from litecl.delegate.cl_op import CallOn
from litecl.delegate.cpu import schedules
from litecl.delegate.cpu.schedules import SharedPanel
from litecl.delegate.launch import Chunks, Grid, Tile, least_waste
from litecl.delegate.target import PLAIN, Macros, Own, Target, TilesByWidth
from litecl.delegate.tuning import Schedule, TileShape, Tuning
from litecl.interpreter.dataclass import dataclass

_NARROWEST = 4  # floats in a vector
_FOUR = 4  # bytes that a lane multiplies at once
_ITEMS_OF_UNIT = 4  # at least, where tiles share panels


@dataclass(frozen=True)
class CpuTarget:
    """A CPU. vector_width: floats in a register, 8 with AVX2, 16 with AVX-512. compute_units: threads. takes_turns:
    whether an operation on a vector of 16 takes as long as two on vectors of 8. sums_across: whether an instruction
    adds up the products of two vectors of bytes. The rest: see ``Target``.
    """

    vector_width: int
    compute_units: int
    float64: bool = True
    max_work_group_size: int = 1
    local_mem_bytes: int = 0
    tuning: Tuning = field(default_factory=Tuning)
    takes_turns: bool = False
    sums_across: bool = False
    byte_pairs: bool = False
    own: ClassVar[Own] = {}  # what is shared is a CPU's way

    @property
    def lanes(self) -> int:
        """See ``Target``."""
        return self.vector_width

    @property
    def memory(self) -> Literal["host", "integrated", "own"]:
        """See ``Target``."""
        return "host"

    @property
    def macros(self) -> Macros:
        """See ``Target``."""
        return {"VW": self.vector_width, "LITECL_CPU": 1}

    def schedule(self, kernel: str) -> Schedule:
        """See ``Target``."""
        return self.tuning.schedules.get(kernel) or schedules.DEFAULTS.get(kernel, PLAIN)

    def group_size(self, kernel: str) -> int:
        """See ``Target``."""
        return 1

    def grid(self, kernel: str, counts: tuple[int, ...], shares: tuple[int, ...], order: tuple[int, ...] = ()) -> Grid:
        """See ``Target``."""
        return Grid(kernel, counts, shares, order)

    def chunks(self, kernel: str, n: int, step: int, work: int) -> Chunks:
        """Distribute long runs to few work-items."""
        return Chunks(kernel, (n,), (-(-n // (items(kernel, self, n * work) * step)) * step,))

    def pixels(self, kernel: str, n: int, channels: int, work: int) -> Chunks:
        """Distribute runs of pixels with all their channels."""
        return self.chunks(kernel, n, 1, work)

    def pieces(self, kernel: str, lines: int) -> int:
        """See ``Target``."""
        return -(-items(kernel, self) // lines)

    @property
    def batches(self) -> Sequence[TileShape]:
        """See ``Target``."""
        return schedules.BATCHES[self.vector_width]

    def tile_for(
        self, kernel: str, rows: int, columns: int, *, narrow: bool = False, among: TilesByWidth | None = None
    ) -> Tile:
        """See ``Target``."""
        by_kernel = schedules.PRODUCTS_IN_TURNS if self.takes_turns else schedules.PRODUCTS_BY_KERNEL
        products = by_kernel.get(kernel, schedules.PRODUCTS)
        tiles = among or next(tiles for least, tiles in products if rows >= least)
        width = self.vector_width
        while narrow and width > _NARROWEST and columns <= width // 2:
            width //= 2
        halves = narrow and self.takes_turns and not among and width == self.vector_width
        shapes = [(w, s) for w in (width, width // 2)[: 1 + halves] for s in self.schedule(kernel).tiles or tiles[w]]
        panel = 0 if among else schedules.PANELS.get(kernel, 0)
        fitting = [(w, s) for w, s in shapes if panel and panel % s.vectors == 0]
        width, shape = least_waste(fitting or shapes, rows, columns)
        return Tile(shape.rows, shape.vectors, width, (panel if fitting else shape.vectors) * width)

    def tile_across(self, rows: int, columns: int, depth: int) -> Tile | None:
        """See ``Target``."""
        width = self.vector_width
        if self.sums_across:
            _, shape = least_waste([(width, shape) for shape in schedules.ROWS_ACROSS], rows, columns)
            return Tile(shape.rows, 1, width, width, across=True)
        if rows > 1:
            return None
        plain = self.tile_for("", 1, columns).columns
        packed = -(-columns // plain) * (plain // width) * -(-depth // _FOUR)
        across = columns * (-(-depth // (_FOUR * width)) + schedules.SUM_OF_LANES)
        return Tile(1, 1, width, width, across=True) if columns <= width and across < packed else None

    @property
    def line_tiles(self) -> Mapping[str, TilesByWidth]:
        """See ``Target``."""
        return schedules.LINES_IN_TURNS if self.takes_turns else schedules.LINES

    def product(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Distribute whole rows, if there are enough: they stay in their unit's cache for the next operator."""
        schedule, (rows, columns, depth) = self.schedule(kernel), size
        bands, panels = -(-rows // tile.rows), -(-columns // tile.columns)
        whole = bands >= self.compute_units * schedule.items_per_unit and 4 * depth * columns <= schedule.far_bytes
        near = max(1, schedule.near_bytes // (4 * max(1, depth) * tile.columns))
        own_panels = panels if whole else min(panels, near)
        work = 2 * tile.rows * tile.columns * max(1, depth) * own_panels
        own_bands = filled(kernel, self, bands, products * -(-panels // own_panels), work)
        if 4 * depth * tile.columns >= SharedPanel.LEAST_BYTES:
            own_bands = max(own_bands, sharing(self, bands, panels * products))
        return Grid(kernel, (rows, columns, products), (own_bands * tile.rows, own_panels * tile.columns, 1))

    def gathered(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Use few work-items, as each has memory for its rows, and all columns if there are enough rows."""
        rows, columns, depth = size
        bands, panels = -(-rows // tile.rows), -(-columns // tile.columns)
        own_bands, own_panels = spread(kernel, self, bands, panels, 2 * rows * columns * depth, products)
        return Grid(kernel, (rows, columns, products), (own_bands * tile.rows, own_panels * tile.columns, 1))

    def special(self, **flags: bool) -> dict[str, int]:
        """Return none: another kernel costs more to compile than it gains."""
        return {}


CpuCall = CallOn[CpuTarget]
"""A node to be lowered for a CPU."""


def items(kernel: str, target: Target, work: float = inf) -> int:
    """Return how many work-items a CPU gets for ``work`` operations."""
    schedule = target.schedule(kernel)
    most = schedule.items_alone if target.compute_units == 1 else target.compute_units * schedule.items_per_unit
    count = most if work >= most * schedule.least else int(work / schedule.least)
    return max(1, count - count % target.compute_units if count > target.compute_units else count)


def filled(kernel: str, target: Target, count: int, others: int, work: float) -> int:
    """Return how many of ``count`` items give a CPU's work-item enough to do. others: how many work-items share each
    item. work: operations on one item in one of them.
    """
    schedule = target.schedule(kernel)
    total = work * count * others
    wanted = min(schedule.most, max(schedule.least, total / items(kernel, target)))
    return max(1, min(count, round(wanted / work))) if work else count


def sharing(target: Target, bands: int, panels: int) -> int:
    """Return how many bands of tiles share a large panel, in equal parts, if all of a CPU's units still get work."""
    units = target.compute_units
    most = min(SharedPanel.TILES, bands if units == 1 else max(1, bands * panels // (_ITEMS_OF_UNIT * units)))
    return -(-bands // -(-bands // most))


def spread(kernel: str, target: Target, rows: int, columns: int, work: float, groups: int = 1) -> tuple[int, int]:
    """Return how many rows and columns a CPU's work-item computes: all columns, if there are enough rows.

    work: operations of a group of ``rows`` x ``columns``.
    """
    wanted = items(kernel, target, work)
    item_rows, unit_rows = -(-rows // min(rows, wanted)), -(-rows // target.compute_units)
    if item_rows < unit_rows:  # a unit gets whole items
        item_rows = -(-unit_rows // (unit_rows // item_rows))
    parts = max(1, wanted // (-(-rows // item_rows) * groups))
    return item_rows, -(-columns // min(columns, parts))


def by_unit(target: Target, rows: int, least: int) -> tuple[int, int]:
    """Return how many parts of rows, of ``least`` or more, and of columns give each of a CPU's units one part."""
    row_parts = max(1, min(target.compute_units, rows // least))
    return row_parts, target.compute_units // row_parts


def bands(target: Target, rows: int, size_bytes: int) -> int:
    """Return how many bands to divide rows into, so that each CPU unit's part of a band fits in its second-level
    cache.
    """
    return max(1, min(rows, -(-size_bytes // (schedules.BAND_BYTES * target.compute_units))))
