"""The default schedules of kernels on CPUs, and the tiles that they choose from: data only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum

from litecl.delegate.target import TilesByWidth
from litecl.delegate.tuning import Schedule, TileShape

SUM_OF_LANES = 12
"""Vector instructions needed to add up a vector's lanes, roughly."""


class SharedPanel(IntEnum):
    """A panel of at least LEAST_BYTES is read once for TILES tiles of a CPU's convolution, row by row of the kernel."""

    LEAST_BYTES = 1 << 17
    TILES = 8


_WIDTHS = (1, 2, 4, 8, 16)
_REGISTERS: TilesByWidth = {
    16: (TileShape(7, 2, 0.97), TileShape(7, 3, 1.0), TileShape(14, 1, 0.82)),
    8: (TileShape(6, 2, 1.0), TileShape(4, 3, 0.95), TileShape(12, 1, 0.8)),
    4: (TileShape(6, 2, 1.0), TileShape(12, 1, 0.8)),
    1: (TileShape(4, 4, 1.0),),
}
_REGISTERS_OF_BYTES: TilesByWidth = {
    **_REGISTERS,
    16: (*_REGISTERS[16], TileShape(9, 2, 0.97)),
    1: (TileShape(2, 2, 1.0),),
}
# For few rows that 7 or 6 does not divide, at the cost of another kernel to compile.
_MORE_REGISTERS: TilesByWidth = {
    **_REGISTERS,
    16: (
        *_REGISTERS[16],
        *(TileShape(8, vectors, share) for vectors, share in ((1, 0.72), (2, 0.94), (3, 0.97))),
        *(TileShape(rows, 2, 0.97) for rows in (9, 10)),
    ),
    8: (*_REGISTERS[8], TileShape(5, 2, 0.92)),
}
# Where an operation on a vector of 16 takes as long as two on vectors of 8, fewer sums keep the multipliers busy, and a
# tile of few columns wastes fewer.
_REGISTERS_IN_TURNS: TilesByWidth = {
    **_REGISTERS,
    16: (TileShape(7, 1, 1.0), TileShape(9, 1, 1.0), TileShape(8, 1, 0.98)),
    8: (TileShape(6, 3, 0.9), TileShape(6, 2, 0.85), TileShape(12, 1, 0.75)),
}


def _always(rows: int, vectors: int) -> TilesByWidth:
    return {width: (TileShape(rows, vectors, 1.0),) for width in _WIDTHS}


Products = Sequence[tuple[int, TilesByWidth]]

# Two vectors have half the weights of four where there are few columns.
_ROW_OF_BYTES: TilesByWidth = {width: (TileShape(1, 4, 1.0), TileShape(1, 2, 0.7)) for width in _WIDTHS}
_PAIR: TilesByWidth = {width: (TileShape(2, 4, 1.0), TileShape(2, 2, 0.7)) for width in _WIDTHS}
_FOUR: TilesByWidth = {**_always(4, 2), 16: (TileShape(4, 4, 1.0), TileShape(4, 2, 0.9))}
_FEW: Products = ((2, _PAIR), (0, _always(1, 4)))

PRODUCTS: Products = ((5, _REGISTERS), (3, _FOUR), *_FEW)
"""Tiles of a product by its least number of rows. With few rows a tile has as many columns as it has registers."""

_MORE_PRODUCTS: Products = ((5, _MORE_REGISTERS), (3, _FOUR), *_FEW)
_IN_TURNS: Products = ((5, _REGISTERS_IN_TURNS), (3, _always(4, 2)), *_FEW)
_OF_BYTES: Products = ((5, _REGISTERS_OF_BYTES), (3, _always(4, 2)), (2, _PAIR), (0, _ROW_OF_BYTES))
PRODUCTS_BY_KERNEL: Mapping[str, Products] = {
    "gemm": _MORE_PRODUCTS,
    "conv_2d": _MORE_PRODUCTS,
    "winograd": _MORE_PRODUCTS,
    "quantized_conv_2d": _OF_BYTES,
    "hybrid_conv_2d": _OF_BYTES,
}
PRODUCTS_IN_TURNS: Mapping[str, Products] = {**PRODUCTS_BY_KERNEL, "gemm": _IN_TURNS, "winograd": _IN_TURNS}
"""Kernels with other tiles; the second where vectors take turns (``CpuTarget.takes_turns``)."""

AT_ONCE: TilesByWidth = {16: (TileShape(16, 1, 1.0),)}
"""Tiles that read a panel of large weights once for all patches of a small image, so that memory is never idle."""

PANELS: Mapping[str, int] = {"hybrid_conv_2d": 4}
"""Vectors in a panel of kernels whose products read the same weights for any number of rows; else a tile's."""

ROWS_ACROSS = TileShape(4, 1, 1.0), TileShape(2, 1, 0.9), TileShape(1, 1, 0.6)
"""Rows that share the weights of a column, where an instruction sums across vectors."""

_LINES_OF_BYTES: TilesByWidth = {
    16: (TileShape(16, 1, 0.94), TileShape(8, 2, 1.0), TileShape(6, 4, 1.0)),
    8: (TileShape(4, 2, 0.9), TileShape(12, 1, 0.9), TileShape(6, 2, 1.0)),
    4: (TileShape(12, 1, 0.9), TileShape(6, 2, 1.0)),
    1: _REGISTERS_OF_BYTES[1],
}
_LINES_OF_FLOATS: TilesByWidth = {
    16: (TileShape(7, 2, 0.97), TileShape(8, 2, 1.0), TileShape(14, 1, 0.85), TileShape(16, 1, 0.88)),
    8: (TileShape(4, 2, 0.9), TileShape(6, 2, 1.0), TileShape(7, 1, 0.8), TileShape(12, 1, 0.9)),
    4: (TileShape(4, 2, 0.9), TileShape(6, 2, 1.0), TileShape(7, 1, 0.8), TileShape(12, 1, 0.9)),
    1: _REGISTERS[1],
}
_LINES_IN_TURNS: TilesByWidth = {**_LINES_OF_FLOATS, 16: (TileShape(8, 1, 1.0), TileShape(7, 1, 0.98))}
LINES: Mapping[str, TilesByWidth] = {
    "conv_lines": _LINES_OF_FLOATS,
    "quantized_conv_2d": _LINES_OF_BYTES,
    "hybrid_conv_2d": _LINES_OF_BYTES,
}
LINES_IN_TURNS: Mapping[str, TilesByWidth] = {**LINES, "conv_lines": _LINES_IN_TURNS}
"""Tiles by kernel whose pixels are in one line of an image and share inputs; the second where vectors take turns."""

BAND_BYTES = 1 << 19
"""Bytes of an image that a unit computes before it reads them: half of a second-level cache, or less."""

BATCHES: TilesByWidth = {
    16: (TileShape(4, 1, 1.0), TileShape(2, 1, 0.6), TileShape(1, 1, 0.55)),
    8: (TileShape(2, 1, 1.0), TileShape(1, 1, 0.55)),
    4: (TileShape(2, 1, 1.0), TileShape(1, 1, 0.55)),
    1: (TileShape(2, 1, 1.0), TileShape(1, 1, 0.55)),
}
"""Rows of a batch, which share weights."""

# Pixels of a depthwise convolution: four except for short lines, as another number is another kernel to compile.
_PIXELS = (TileShape(4, 1, 1.0), TileShape(5, 1, 0.8), TileShape(6, 1, 0.9), TileShape(3, 1, 0.9))
_PIXELS_OF_BYTES = (TileShape(4, 1, 1.0), TileShape(5, 1, 0.8), TileShape(3, 1, 0.9))

# near_bytes are the panels that all rows of a tile share, the rows of a block of channels, the transformed
# patches if weights are small; far_bytes are weights, or the transformed patches if weights are large.
_PRODUCT = Schedule(items_per_unit=8, least=5e4, most=1e6, near_bytes=1 << 15, far_bytes=1 << 19)
_BYTES = Schedule(items_per_unit=2, least=1e5)

DEFAULTS: Mapping[str, Schedule] = {
    "attention": replace(_PRODUCT, tiles=(TileShape(6, 2, 1.0),)),
    "gemm": _PRODUCT,
    "conv_2d": _PRODUCT,
    "conv_3d": _PRODUCT,
    "conv_lines": Schedule(items_per_unit=8, least=5e4, near_bytes=1 << 14),
    "quantized_conv_2d": _BYTES,
    "hybrid_conv_2d": _BYTES,
    "depthwise_conv_2d": Schedule(items_per_unit=8, least=1e5, near_bytes=1 << 15, tiles=_PIXELS),
    "quantized_depthwise_conv_2d": Schedule(items_per_unit=8, least=1e5, tiles=_PIXELS_OF_BYTES),
    "quantized_depthwise_lines": Schedule(items_per_unit=2, least=2e4),
    "winograd": Schedule(near_bytes=1 << 19, far_bytes=1 << 20),
    "quantized_winograd": Schedule(items_per_unit=1, least=1e5, near_bytes=1 << 16),
    "weight_only": Schedule(tiles=(TileShape(4, 1, 1.0),)),
    "quantize_rows": Schedule(pieces=64),
}
"""Schedules by kernel file; others have the plain one."""

OF_PRODUCTS = "gemm", "conv_2d", "conv_3d", "conv_lines", "quantized_conv_2d", "hybrid_conv_2d"
"""The kernels whose tiles an export chooses: those of a machine, or small ones."""
