"""A GPU as lowerings know it: many work-items, neighbours side by side, in groups that share local memory."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from importlib import import_module
from typing import Literal, TypeVar

from litecl.delegate.cl_op import CallOn, Local
from litecl.delegate.gpu import schedules
from litecl.delegate.gpu.groups import LEAST_ITEMS, MOST_ITEMS
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.launch import Chunks, Grid, Tile, least_waste
from litecl.delegate.target import ONE_ROW, PLAIN, Macros, Own, TilesByWidth
from litecl.delegate.tuning import Schedule, TileShape, Tuning
from litecl.interpreter.dataclass import dataclass

_Grid = TypeVar("_Grid", bound=Grid)


@dataclass(frozen=True)
class GpuTarget:
    """A GPU. vector_width: 4, elements that a work-item loads at once. gpu: its properties beyond a CPU's. The rest:
    see ``Target``.
    """

    vector_width: int
    compute_units: int
    float64: bool = True
    max_work_group_size: int = 1
    local_mem_bytes: int = 0
    tuning: Tuning = field(default_factory=Tuning)
    gpu: Gpu = field(default_factory=Gpu)

    @property
    def own(self) -> Own:
        """See ``Target``; imported by name, as what is in the table needs this class."""
        table: Own = import_module("litecl.delegate.gpu.own").OWN
        return table

    @property
    def cores(self) -> int:
        """See ``Gpu.cores``."""
        return self.gpu.cores(self.compute_units)

    def has_room(self, items: int, local: Local) -> bool:
        """Return whether the device can run a group of this many work-items with this much local memory."""
        return items <= self.max_work_group_size and local.size_bytes <= self.local_mem_bytes

    def items_for(self, length: int, each: int = 1) -> int:
        """Return the work-items of a group that shares ``length`` elements, ``each`` at a time: a power of two."""
        most = min(MOST_ITEMS, 1 << (max(1, self.max_work_group_size).bit_length() - 1))
        wanted = 1 << max(0, (-(-length // each) - 1).bit_length())
        return max(min(LEAST_ITEMS, most), min(most, wanted))

    @property
    def byte_pairs(self) -> bool:
        """See ``Target``."""
        return False

    @property
    def lanes(self) -> int:
        """See ``Target``."""
        return 1

    @property
    def memory(self) -> Literal["host", "integrated", "own"]:
        """See ``Target``."""
        return "integrated" if self.gpu.integrated else "own"

    @property
    def macros(self) -> Macros:
        """See ``Target``."""
        return {"VW": self.vector_width, "LITECL_GPU": 1, **self.gpu.macros}

    def schedule(self, kernel: str) -> Schedule:
        """See ``Target``."""
        family = schedules.FAMILIES.get((self.gpu.vendor, self.gpu.subgroup), {})
        known = self.tuning.schedules, family, schedules.DEFAULTS
        return next((own[kernel] for own in known if kernel in own), PLAIN)

    def group_size(self, kernel: str) -> int:
        """See ``Target``."""
        return min(self.schedule(kernel).group, self.max_work_group_size)

    def grid(self, kernel: str, counts: tuple[int, ...], shares: tuple[int, ...], order: tuple[int, ...] = ()) -> Grid:
        """See ``Target``."""
        return self._grouped(Grid(kernel, counts, shares, order))

    def chunks(self, kernel: str, n: int, step: int, work: int) -> Chunks:
        """Distribute a few items to each of many work-items."""
        return self._grouped(Chunks(kernel, (n,), (step,)))

    def pixels(self, kernel: str, n: int, channels: int, work: int) -> Chunks:
        """Distribute vectors of channels, in the dimensions (channels, pixels)."""
        return self._grouped(Chunks(kernel, (n, channels), (1, self.vector_width), order=(1, 0)))

    def _grouped(self, grid: _Grid) -> _Grid:
        """Return a launch in groups, first as wide as the first dimension has work-items, then high with the rest."""
        needed, schedule = grid.needed, self.schedule(grid.kernel)
        group = min(schedule.group, self.max_work_group_size)
        if len(needed) == 1:
            return replace(grid, local=(group,))
        wide = min(group, schedule.wide, 1 << (needed[0] - 1).bit_length())
        return replace(grid, local=(wide, group // wide, *(1,) * (len(needed) - 2)))

    def pieces(self, kernel: str, lines: int) -> int:
        """See ``Target``."""
        return self.schedule(kernel).pieces

    @property
    def batches(self) -> Sequence[TileShape]:
        """See ``Target``."""
        return ONE_ROW

    def tile_for(
        self, kernel: str, rows: int, columns: int, *, narrow: bool = False, among: TilesByWidth | None = None
    ) -> Tile:
        """Return the largest tile that keeps half of the units busy; panels are so wide that neighbours read side by
        side.
        """
        products = schedules.FEW_REGISTERS if self.gpu.few_registers else schedules.PRODUCTS
        width, schedule = self.vector_width, self.schedule(kernel)
        fitting = [tiles for least, tiles in products if rows >= least]

        def is_busy(tile: TileShape) -> bool:
            items = -(-rows // tile.rows) * -(-columns // (tile.vectors * width))
            return 2 * items >= self.compute_units * schedule.group

        tiles = next((tiles for tiles in fitting if is_busy(tiles[0])), fitting[-1])
        shapes = schedule.tiles or (among[width] if among else tiles)
        _, shape = least_waste([(width, shape) for shape in shapes], rows, columns)
        return Tile(shape.rows, shape.vectors, width, shape.vectors * width * schedule.wide)

    def product(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Give each work-item a tile; adjacent ones take adjacent panels (``ROW_ITEM`` in kernels_cl/tile.h)."""
        return self._grouped(Grid(kernel, (*size[:2], products), (tile.rows, tile.columns, 1), order=(1, 0, 2)))

    def tile_across(self, rows: int, columns: int, depth: int) -> Tile | None:
        """Return none: work-items are lanes."""
        return None

    @property
    def line_tiles(self) -> Mapping[str, TilesByWidth]:
        """See ``Target``."""
        return {}

    def gathered(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """See ``Target``."""
        return self.product(kernel, tile, size, products)

    def special(self, **flags: bool) -> dict[str, int]:
        """See ``Target``."""
        return {name: 1 for name, on in flags.items() if on}


GpuCall = CallOn[GpuTarget]
"""A node to be lowered for a GPU."""
