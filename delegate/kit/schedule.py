"""Deals out work: how many work-items a launch has, what each of them computes, and how they are grouped. All of it
follows from the ``Schedule`` of a kernel, which a tuning may replace. A CPU gets a few long shares, each a group of its
own; a GPU gets many short ones, neighbours side by side along the first dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from litecl.delegate.cl_op import Arg, Launch, Target
from litecl.delegate.tuning import Schedule, TileShape

# Tiles by the width of a CPU's vectors: of a product, as its registers hold them; of pixels in one line, which share
# what they see; of rows of a batch, which share the weights that they meet; of pixels of a depthwise convolution.
_REGISTER_TILES: Mapping[int, tuple[TileShape, ...]] = {
    16: (TileShape(7, 2, 0.97), TileShape(7, 3, 1.0), TileShape(14, 1, 0.82)),
    8: (TileShape(6, 2, 1.0), TileShape(4, 3, 0.95), TileShape(12, 1, 0.8)),
    4: (TileShape(6, 2, 1.0), TileShape(12, 1, 0.8)),
}
_LINE_TILES: Mapping[int, tuple[TileShape, ...]] = {
    16: (TileShape(16, 1, 0.94), TileShape(8, 2, 1.0), TileShape(6, 4, 1.0)),
    8: (TileShape(12, 1, 0.9), TileShape(6, 2, 1.0)),
    4: (TileShape(12, 1, 0.9), TileShape(6, 2, 1.0)),
}
_BATCH_TILES: Mapping[int, tuple[TileShape, ...]] = {
    16: (TileShape(4, 1, 1.0), TileShape(2, 1, 0.6), TileShape(1, 1, 0.55)),
    8: (TileShape(2, 1, 1.0), TileShape(1, 1, 0.55)),
    4: (TileShape(2, 1, 1.0), TileShape(1, 1, 0.55)),
}
_PIXEL_TILES = tuple(TileShape(pixels, 1, 1.0) for pixels in (4, 5, 6, 3))

# Schedules of kernels for which the defaults of ``Schedule`` are not the best. On a CPU, near_bytes are the panels that
# all rows of a tile share, the rows of a block of channels, the transformed patches if weights are small; far_bytes are
# weights, or the transformed patches if weights are large.
_PRODUCT = Schedule(items_per_unit=8, least=5e4, most=1e6, near_bytes=1 << 15, far_bytes=1 << 19)
_BYTES = Schedule(items_per_unit=8, least=1e5)
_CPU: Mapping[str, Schedule] = {
    "gemm": _PRODUCT,
    "conv_2d": _PRODUCT,
    "quantized_conv_2d": _BYTES,
    "hybrid_conv_2d": _BYTES,
    "depthwise_conv_2d": Schedule(
        items_per_unit=8, items_alone=8, least=1, most=3e5, near_bytes=24576, tiles=_PIXEL_TILES
    ),
    "quantized_depthwise_conv_2d": Schedule(items_per_unit=8, least=1e5, tiles=_PIXEL_TILES),
    "winograd": Schedule(near_bytes=1 << 19, far_bytes=1 << 20),
    "fully_connected": Schedule(tiles=(TileShape(4, 1, 1.0),)),
    "quantize_rows": Schedule(pieces=64),
}
_PANELS = Schedule(group=64, wide=32)
_GPU: Mapping[str, Schedule] = {
    "gemm": _PANELS,
    "conv_2d": _PANELS,
    "quantized_conv_2d": _PANELS,
    "hybrid_conv_2d": _PANELS,
    "depthwise_conv_2d": Schedule(tiles=_PIXEL_TILES[:1]),
    "quantized_depthwise_conv_2d": Schedule(group=1, tiles=_PIXEL_TILES),
    "lstm": Schedule(tiles=(TileShape(1, 1, 1.0),)),
    "quantize_rows": Schedule(pieces=64, least=256),
    "reduce": Schedule(pieces=1024),
}
_BUSY_GROUPS = 4  # of results, which keep a GPU busy
_FEW_ROWS = 4  # of a product, for which a tile has as many columns as it has registers


def schedule_of(kernel: str, target: Target) -> Schedule:
    """Return the schedule of a kernel file: the one that was tuned, or else the default for the kind of device."""
    tuned = target.tuning.schedules.get(kernel)
    return tuned or (_CPU if target.kind == "cpu" else _GPU).get(kernel, Schedule())


def product_tile(kernel: str, target: Target, rows: int, columns: int, width: int) -> TileShape:
    """Return the tile of a matrix product of ``rows`` x ``columns``, with vectors of ``width``."""
    own = schedule_of(kernel, target).tiles
    if target.kind == "gpu" and not own:
        return TileShape(next(height for height in (8, 4, 1) if rows >= height), -(-4 // width), 1.0)
    if rows <= _FEW_ROWS and not own:
        return TileShape(1, 4, 1.0) if rows == 1 else TileShape(_FEW_ROWS, 2, 1.0)
    return best(own or _REGISTER_TILES[width], rows, columns, width)


def line_tile(kernel: str, target: Target, pixels: int, columns: int) -> TileShape:
    """Return the tile that takes ``pixels`` of one line of an image, and ``columns``."""
    width = target.vector_width
    return best(schedule_of(kernel, target).tiles or _LINE_TILES[width], pixels, columns, width)


def rows_of(kernel: str, target: Target, count: int) -> int:
    """Return how many of ``count`` rows, or of a row's pixels, a work-item computes at once."""
    own = schedule_of(kernel, target).tiles
    return best(own or _BATCH_TILES[target.vector_width], count, 1, 1).rows


def best(tiles: Sequence[TileShape], rows: int, columns: int, width: int) -> TileShape:
    """Return the tile that covers ``rows`` x ``columns`` with the least waste; its vectors are ``width`` wide."""

    def waste(tile: TileShape) -> float:
        return _padded(rows, tile.rows) * _padded(columns, tile.vectors * width) / tile.share

    return min(tiles, key=waste)


@dataclass(frozen=True)
class Grid:
    """The shape of a kernel file's launch, whose work-items each own a share of every dimension."""

    kernel: str
    shares: tuple[int, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]

    def launch(
        self, entry: str, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int = 0
    ) -> Launch:
        """Return a launch of this shape."""
        return Launch(self.kernel, entry, tuple(args), self.global_size, self.local_size, defines, flops)


@dataclass(frozen=True)
class Chunks(Grid):
    """``n`` items dealt out in runs: work-item i owns [i * per_item, min((i + 1) * per_item, n))."""

    n: int

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
        per_item = _padded(-(-n // items(kernel, target, n * work)), step)
    shape = grid(kernel, target, (n,), (per_item,))
    return Chunks(kernel, shape.shares, shape.global_size, shape.local_size, n)


def elements(kernel: str, n: int, target: Target, work: int = 1) -> Chunks:
    """Deal out the elements of an array, in whole vectors."""
    return chunks(kernel, n, target, step=target.vector_width, work=work)


def grid(kernel: str, target: Target, counts: Sequence[int], shares: Sequence[int]) -> Grid:
    """Return the launch that covers ``counts`` items in each dimension, of which a work-item owns ``shares``."""
    needed = [-(-count // share) for count, share in zip(counts, shares, strict=True)]
    local = (1,) * len(needed) if target.kind == "cpu" else _group(kernel, target, needed)
    return Grid(kernel, tuple(shares), tuple(_padded(n, size) for n, size in zip(needed, local, strict=True)), local)


def groups(kernel: str, target: Target, count: int, share: int) -> Grid:
    """Return the launch of one group for every ``share`` of ``count`` items, whose work-items wait for each other."""
    size = group_of(kernel, target)
    return Grid(kernel, (1, share), (size, -(-count // share)), (size, 1))


def group_of(kernel: str, target: Target) -> int:
    """Return the work-items of a group."""
    return 1 if target.kind == "cpu" else min(schedule_of(kernel, target).group, target.max_work_group_size)


def _group(kernel: str, target: Target, needed: Sequence[int]) -> tuple[int, ...]:
    """Return a GPU's local size: as wide as there are work-items along the first dimension, the rest of the group
    along the others.
    """
    group = group_of(kernel, target)
    if len(needed) == 1:
        return (group,)
    wide = min(group, schedule_of(kernel, target).wide, 1 << (needed[0] - 1).bit_length())
    return (wide, group // wide, *(1,) * (len(needed) - 2))


def _most_items(kernel: str, target: Target) -> int:
    schedule = schedule_of(kernel, target)
    return schedule.items_alone if target.compute_units == 1 else target.compute_units * schedule.items_per_unit


def items(kernel: str, target: Target, work: float = inf, *, once: bool = False) -> int:
    """Return how many work-items a CPU gets for ``work`` operations. once: at most one for each unit."""
    most = _most_items(kernel, target)
    if once:
        most = min(most, target.compute_units)
    least = schedule_of(kernel, target).least
    return max(1, most if work >= most * least else int(work / least))


def filled(kernel: str, target: Target, count: int, others: int, work: float) -> int:
    """Return how many of ``count`` items a work-item of a CPU takes, so that it has enough to do. others: how many
    work-items share each item. work: operations on one item in one of them.
    """
    schedule = schedule_of(kernel, target)
    total = work * count * others
    wanted = min(schedule.most, max(schedule.least, total / _most_items(kernel, target)))
    return max(1, min(count, round(wanted / work))) if work else count


def is_busy(kernel: str, target: Target, count: int) -> bool:
    """Return whether ``count`` items are enough for all work-items that a CPU should have."""
    return count >= target.compute_units * schedule_of(kernel, target).items_per_unit


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
    wanted = schedule.pieces if target.kind == "gpu" else -(-_most_items(kernel, target) // lines)
    return max(1, min(wanted, schedule.pieces, int(length / schedule.least)))


def even_pieces(kernel: str, target: Target, lines: int, length: int) -> int:
    """Return the number of equal pieces that a GPU splits each of a few long lines into."""
    schedule = schedule_of(kernel, target)
    if target.kind == "cpu" or lines > _BUSY_GROUPS * schedule.group or length < schedule.least:
        return 1
    return max(part for part in range(1, schedule.pieces + 1) if length % part == 0)


def _padded(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple
