"""The schedules of kernels on GPUs where no tuning says otherwise, and the tiles that they choose from: data only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from litecl.delegate.gpu.properties import Vendor
from litecl.delegate.tuning import Schedule, TileShape

Tiles = Sequence[tuple[int, Sequence[TileShape]]]


def _rows(rows: int) -> tuple[TileShape, ...]:
    """Return the tile of some rows, one vector wide: neighbours read columns side by side."""
    return (TileShape(rows, 1, 1.0),)


PRODUCTS: Tiles = ((8, _rows(8)), (4, _rows(4)), (0, _rows(1)))
FEW_REGISTERS: Tiles = ((4, _rows(4)), (0, _rows(1)))
"""Tiles of a product from so many rows on; of GPUs whose work-items have few registers."""

_PANELS = Schedule(group=64, wide=32)
_TILES = Schedule(items_per_unit=2)  # groups, of at least 64 work-items each

DEFAULTS: Mapping[str, Schedule] = {
    "product_local": _TILES,
    "gemm": _PANELS,
    "conv_2d": _PANELS,
    "quantized_conv_2d": _PANELS,
    "hybrid_conv_2d": _PANELS,
    "depthwise_conv_2d": Schedule(tiles=_rows(4)),
    "quantized_depthwise_conv_2d": Schedule(tiles=_rows(1)),
    "lstm": Schedule(tiles=_rows(1)),
    "region": Schedule(group=256),
    "quantize_rows": Schedule(pieces=64, least=256),
    "reduce": Schedule(pieces=1024),
}
"""Schedules by kernel file; all others have a plain one."""

FAMILIES: Mapping[tuple[Vendor, int], Mapping[str, Schedule]] = {
    # A compute unit has four SIMDs, each of which needs a wave of its own: of 64 work-items a whole group of a tile.
    # With 32, as NVIDIA's and AMD's newer GPUs have, two groups are four waves.
    ("amd", 64): {"product_local": replace(_TILES, items_per_unit=4)},
}
"""Schedules of GPUs for which they are others, by vendor and the work-items in lockstep: from how these GPUs are made,
not measured.
"""
