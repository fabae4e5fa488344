"""The default schedules of kernels on GPUs, and the tiles that they choose from: data only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from litecl.delegate.gpu.properties import Vendor
from litecl.delegate.tuning import Schedule, TileShape

Tiles = Sequence[tuple[int, Sequence[TileShape]]]


def _rows(rows: int) -> tuple[TileShape, ...]:
    """Return a tile of ``rows``, one vector wide: neighbours read columns side by side."""
    return (TileShape(rows, 1, 1.0),)


PRODUCTS: Tiles = ((8, _rows(8)), (4, _rows(4)), (0, _rows(1)))
FEW_REGISTERS: Tiles = ((4, _rows(4)), (0, _rows(1)))
"""Tiles of a product by its least number of rows; the second on GPUs whose work-items have few registers."""

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
"""Schedules by kernel file; others have the plain one."""

FAMILIES: Mapping[tuple[Vendor, int], Mapping[str, Schedule]] = {
    # Each of a compute unit's four SIMDs needs its own wave: with 64 work-items, a tile's whole group. With 32, as on
    # NVIDIA's and AMD's newer GPUs, two groups are four waves.
    ("amd", 64): {"product_local": replace(_TILES, items_per_unit=4)},
}
"""Other schedules of GPU families, by vendor and work-items in lockstep: derived from the hardware, not measured."""
