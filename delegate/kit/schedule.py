"""Deals out work: how many work-items a launch has, what each of them computes, and how they are grouped.

All of it follows from a ``Schedule`` for each kernel (``schedules.py``), which a tuning may replace. A CPU gets a few
long shares, each a group of its own; a GPU gets many short ones, neighbours side by side along the first dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from litecl.delegate.cl_op import Arg, Launch, Target
from litecl.delegate.kit import schedules
from litecl.delegate.tuning import Schedule, Tiled, TileShape

_BUSY_GROUPS = 4  # of results, which keep a GPU busy
_NARROWEST = 4


def schedule_of(kernel: str, target: Target) -> Schedule:
    """Return the schedule of a kernel file: the one that was tuned, or else that of the family of GPUs, or else the
    default for the kind of device.
    """
    gpu = target.gpu
    family = {} if gpu is None else schedules.FAMILIES.get((gpu.vendor, gpu.subgroup), {})
    known = target.tuning.schedules, family, schedules.DEFAULTS[target.kind]
    return next((own[kernel] for own in known if kernel in own), schedules.PLAIN)


@dataclass(frozen=True)
class Grid:
    """A launch of a kernel file that covers ``counts`` items, of which a work-item owns ``shares``, by dimension.

    order: the dimensions in the order in which work-items are numbered; as they are where it is empty.
    local: the work-items of a group; as the schedule has them where it is empty. tiled: what they are a choice of,
        where they need nothing of each other all the same.
    """

    kernel: str
    target: Target
    counts: tuple[int, ...]
    shares: tuple[int, ...]
    order: tuple[int, ...] = ()
    local: tuple[int, ...] = ()
    tiled: Tiled | None = None

    def launch(
        self, entry: str, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int = 0
    ) -> Launch:
        """Return a launch of this shape."""
        needed = [-(-self.counts[i] // self.shares[i]) for i in self.order or range(len(self.counts))]
        local = self.local or _group(self.kernel, self.target, needed)
        size = tuple(-(-n // own) * own for n, own in zip(needed, local, strict=True))
        apart = not self.local or self.tiled is not None
        return Launch(self.kernel, entry, tuple(args), size, local, defines, flops, apart=apart, tiled=self.tiled)


def _group(kernel: str, target: Target, needed: Sequence[int]) -> tuple[int, ...]:
    """Return a local size: of a GPU as wide as there are work-items along the first dimension, the rest of the group
    along the others.
    """
    if target.kind == "cpu":
        return (1,) * len(needed)
    schedule = schedule_of(kernel, target)
    group = min(schedule.group, target.max_work_group_size)
    if len(needed) == 1:
        return (group,)
    wide = min(group, schedule.wide, 1 << (needed[0] - 1).bit_length())
    return (wide, group // wide, *(1,) * (len(needed) - 2))


def group_of(kernel: str, target: Target) -> int:
    """Return the work-items of a group."""
    return 1 if target.kind == "cpu" else min(schedule_of(kernel, target).group, target.max_work_group_size)


def groups(kernel: str, target: Target, count: int, share: int) -> Grid:
    """Return the launch of one group for every ``share`` of ``count`` items, whose work-items wait for each other."""
    size = group_of(kernel, target)
    return Grid(kernel, target, (size, count), (1, share), local=(size, 1))


@dataclass(frozen=True)
class Chunks(Grid):
    """``n`` items dealt out in runs: work-item i owns [i * per_item, min((i + 1) * per_item, n))."""

    @property
    def n(self) -> int:
        """The items."""
        return self.counts[0]

    @property
    def args(self) -> tuple[np.int32, np.int32]:
        """The kernel arguments ``n, per_item``."""
        return np.int32(self.n), np.int32(self.shares[0])


def chunks(kernel: str, n: int, target: Target, *, step: int = 1, work: int = 1) -> Chunks:
    """Deal out ``n`` items: long runs to few work-items on a CPU, ``step`` items to each of many on a GPU.

    step: items that a work-item handles at once (the vector width where an item is an element).
    work: the number of elements in an item.
    """
    per_item = step
    if target.kind == "cpu":
        per_item = -(-n // (items(kernel, target, n * work) * step)) * step
    return Chunks(kernel, target, (n,), (per_item,))


def pixels(kernel: str, n: int, channels: int, target: Target, work: int) -> Chunks:
    """Deal out ``n`` pixels: on a CPU runs of them with all channels, on a GPU a vector of channels at a time, in
    dimensions of channels and of pixels. work: operations on a pixel.
    """
    if target.kind == "cpu":
        return chunks(kernel, n, target, work=work)
    return Chunks(kernel, target, (n, channels), (1, target.vector_width), order=(1, 0))


def aligned(target: Target, *steps: int) -> dict[str, int]:
    """Return the macro by which a GPU moves whole vectors at once, where all of these steps, of elements from pixel to
    pixel, are whole vectors.
    """
    width = target.vector_width
    return {"ALIGNED": 1} if target.kind == "gpu" and not any(step % width for step in steps) else {}


def elements(kernel: str, n: int, target: Target, work: int = 1) -> Chunks:
    """Deal out the elements of an array, in whole vectors."""
    return chunks(kernel, n, target, step=target.vector_width, work=work)


def items(kernel: str, target: Target, work: float = inf, *, once: bool = False) -> int:
    """Return how many work-items a CPU gets for ``work`` operations. once: at most one for each unit."""
    schedule = schedule_of(kernel, target)
    most = schedule.items_alone if target.compute_units == 1 else target.compute_units * schedule.items_per_unit
    if once:
        most = min(most, target.compute_units)
    return max(1, most if work >= most * schedule.least else int(work / schedule.least))


def filled(kernel: str, target: Target, count: int, others: int, work: float) -> int:
    """Return how many of ``count`` items a work-item of a CPU takes, so that it has enough to do. others: how many
    work-items share each item. work: operations on one item in one of them.
    """
    schedule = schedule_of(kernel, target)
    total = work * count * others
    wanted = min(schedule.most, max(schedule.least, total / items(kernel, target)))
    return max(1, min(count, round(wanted / work))) if work else count


def spread(kernel: str, target: Target, rows: int, columns: int, work: float, groups: int = 1) -> tuple[int, int]:
    """Return how many rows and columns a work-item of a CPU takes: all columns, where there are rows enough.

    work: operations of a group of ``rows`` x ``columns``.
    """
    wanted = items(kernel, target, work)
    item_rows = -(-rows // min(rows, wanted))
    parts = max(1, wanted // (-(-rows // item_rows) * groups))
    return item_rows, -(-columns // min(columns, parts))


def pieces(kernel: str, target: Target, lines: int, length: int) -> int:
    """Return the number of pieces that each of ``lines`` is split into, so that there are enough work-items."""
    schedule = schedule_of(kernel, target)
    wanted = schedule.pieces if target.kind == "gpu" else -(-items(kernel, target) // lines)
    return max(1, min(wanted, schedule.pieces, int(length / schedule.least)))


def even_pieces(kernel: str, target: Target, lines: int, length: int) -> int:
    """Return the number of equal pieces that a GPU splits each of a few long lines into."""
    schedule = schedule_of(kernel, target)
    if target.kind == "cpu" or lines > _BUSY_GROUPS * schedule.group or length < schedule.least:
        return 1
    return max(part for part in range(1, schedule.pieces + 1) if length % part == 0)


def rows_of(kernel: str, target: Target, count: int, lines: int = 0) -> int:
    """Return how many of ``count`` rows, or of a row's pixels, a work-item computes at once.

    lines: how often there are so many rows; then a work-item computes one where units of a GPU would have nothing to do
    otherwise.
    """
    schedule = schedule_of(kernel, target)
    tiles = schedule.tiles or schedules.BATCHES[target.vector_width]
    rows = min(tiles, key=lambda tile: -(-count // tile.rows) * tile.rows / tile.share).rows
    is_few = -(-count // rows) * lines < target.compute_units * min(schedule.group, target.max_work_group_size)
    return 1 if lines and target.kind == "gpu" and is_few else rows


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


def tile_for(
    kernel: str, target: Target, rows: int, columns: int, *, narrow: bool = False, lines: bool = False
) -> Tile:
    """Return the tile with which a kernel computes a product of ``rows`` x ``columns`` with the least waste.

    narrow: its vectors may be narrower than the device's, if there are few columns.
    lines: its rows are pixels of one line of an image, which share what they read.
    """
    width, schedule = target.vector_width, schedule_of(kernel, target)
    while narrow and width > _NARROWEST and columns <= width // 2:
        width //= 2

    def waste(tile: TileShape) -> float:
        padded = -(-rows // tile.rows) * tile.rows * -(-columns // (tile.vectors * width)) * tile.vectors * width
        return padded / tile.share

    kind = schedules.FEW_REGISTERS if target.gpu is not None and target.gpu.few_registers else target.kind
    products = schedules.PRODUCTS.get(f"{kernel} on a {kind}", schedules.PRODUCTS[kind])
    by_rows = schedules.LINES[kernel] if lines else products
    fitting = [tiles[width] for least, tiles in by_rows if rows >= least]
    if target.kind == "gpu":  # the largest tile that keeps half of the units busy
        fitting = [own for own in fitting if _busy(target, schedule, own[0], width, rows, columns)] or fitting[-1:]
    shape = min(schedule.tiles or fitting[0], key=waste)
    # On a GPU a panel is wider than a tile, so that neighbours read side by side.
    tiles = schedule.wide if target.kind == "gpu" else 1
    return Tile(shape.rows, shape.vectors, width, shape.vectors * width * tiles)


def _busy(target: Target, schedule: Schedule, tile: TileShape, width: int, rows: int, columns: int) -> bool:
    items = -(-rows // tile.rows) * -(-columns // (tile.vectors * width))
    return 2 * items >= target.compute_units * schedule.group


def grid_for(kernel: str, tile: Tile, target: Target, rows: int, columns: int, depth: int, products: int = 1) -> Grid:
    """Deal out ``products`` products of ``rows`` x ``depth`` and ``depth`` x ``columns``: rows, columns, products.

    A work-item of a CPU takes whole rows if there are enough of them: they stay in the cache of the unit that computes
    them for the next operator. Adjacent work-items of a GPU take adjacent panels (``ROW_ITEM`` in kernels_cl/tile.h).
    """
    counts = rows, columns, products
    if target.kind == "gpu":
        return Grid(kernel, target, counts, (tile.rows, tile.columns, 1), order=(1, 0, 2))
    schedule = schedule_of(kernel, target)
    bands, panels = -(-rows // tile.rows), -(-columns // tile.columns)
    whole = bands >= target.compute_units * schedule.items_per_unit and 4 * depth * columns <= schedule.far_bytes
    near = max(1, schedule.near_bytes // (4 * max(1, depth) * tile.columns))
    own_panels = panels if whole else min(panels, near)
    work = 2 * tile.rows * tile.columns * max(1, depth) * own_panels
    own_bands = filled(kernel, target, bands, products * -(-panels // own_panels), work)
    return Grid(kernel, target, counts, (own_bands * tile.rows, own_panels * tile.columns, 1))


def flops(*dims: int) -> int:
    """Return the arithmetic operations of products of these dimensions: a multiplication and an addition each."""
    return 2 * prod(dims)
