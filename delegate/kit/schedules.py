"""The schedules of kernels where no tuning says otherwise, and the tiles that they choose from: data only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from litecl.delegate.gpu import Vendor
from litecl.delegate.tuning import Schedule, TileShape

Tiles = Mapping[int, Sequence[TileShape]]
"""What a work-item may hold in registers, by the width of the device's vectors."""

_WIDTHS = (1, 2, 4, 8, 16)
_REGISTERS: Tiles = {
    16: (TileShape(7, 2, 0.97), TileShape(7, 3, 1.0), TileShape(14, 1, 0.82)),
    8: (TileShape(6, 2, 1.0), TileShape(4, 3, 0.95), TileShape(12, 1, 0.8)),
    4: (TileShape(6, 2, 1.0), TileShape(12, 1, 0.8)),
}
# Another kernel to compile, for few rows that 7 does not divide.
_MORE_REGISTERS: Tiles = {**_REGISTERS, 16: (*_REGISTERS[16], TileShape(8, 2, 0.94), TileShape(8, 3, 0.97))}


def _always(rows: int, vectors: int) -> Tiles:
    return {width: (TileShape(rows, vectors, 1.0),) for width in _WIDTHS}


def _columns(rows: int, columns: int) -> Tiles:
    return {width: (TileShape(rows, -(-columns // width), 1.0),) for width in _WIDTHS}


FEW_REGISTERS = "a gpu of few registers"

PRODUCTS: Mapping[str, Sequence[tuple[int, Tiles]]] = {
    "cpu": ((5, _REGISTERS), (2, _always(4, 2)), (0, _always(1, 4))),
    "gemm on a cpu": ((5, _MORE_REGISTERS), (2, _always(4, 2)), (0, _always(1, 4))),
    "gpu": ((8, _columns(8, 4)), (4, _columns(4, 4)), (0, _columns(1, 4))),
    FEW_REGISTERS: ((4, _columns(4, 4)), (0, _columns(1, 4))),
}
"""Tiles of a product from so many rows on, by the kind of device, and perhaps the kernel. With few rows a tile has as
many columns as it has registers.
"""

_LINES_OF_BYTES: Tiles = {
    16: (TileShape(16, 1, 0.94), TileShape(8, 2, 1.0), TileShape(6, 4, 1.0)),
    8: (TileShape(12, 1, 0.9), TileShape(6, 2, 1.0)),
    4: (TileShape(12, 1, 0.9), TileShape(6, 2, 1.0)),
}
_LINES_OF_FLOATS: Tiles = {
    16: (TileShape(7, 2, 0.97), TileShape(8, 2, 1.0), TileShape(14, 1, 0.85), TileShape(16, 1, 0.88)),
    8: (TileShape(4, 2, 0.9), TileShape(6, 2, 1.0), TileShape(7, 1, 0.8), TileShape(12, 1, 0.9)),
    4: (TileShape(4, 2, 0.9), TileShape(6, 2, 1.0), TileShape(7, 1, 0.8), TileShape(12, 1, 0.9)),
}
LINES: Mapping[str, Sequence[tuple[int, Tiles]]] = {
    "conv_lines": ((0, _LINES_OF_FLOATS),),
    "quantized_conv_2d": ((0, _LINES_OF_BYTES),),
    "hybrid_conv_2d": ((0, _LINES_OF_BYTES),),
}
"""Tiles of pixels in one line of an image, which share what they read; by the kernel, on a CPU."""

BATCHES: Tiles = {
    16: (TileShape(4, 1, 1.0), TileShape(2, 1, 0.6), TileShape(1, 1, 0.55)),
    8: (TileShape(2, 1, 1.0), TileShape(1, 1, 0.55)),
    4: (TileShape(2, 1, 1.0), TileShape(1, 1, 0.55)),
}
"""Rows of a batch, which share weights; on a CPU."""

# Pixels of a depthwise convolution on a CPU: four but for short lines, as another number is another kernel to compile.
_PIXELS = (TileShape(4, 1, 1.0), TileShape(5, 1, 0.8), TileShape(6, 1, 0.9), TileShape(3, 1, 0.9))

# On a CPU, near_bytes are the panels that all rows of a tile share, the rows of a block of channels, the transformed
# patches if weights are small; far_bytes are weights, or the transformed patches if weights are large.
_PRODUCT = Schedule(items_per_unit=8, least=5e4, most=1e6, near_bytes=1 << 15, far_bytes=1 << 19)
_BYTES = Schedule(items_per_unit=8, least=1e5)
_PANELS = Schedule(group=64, wide=32)

PLAIN = Schedule()
_TILES = Schedule(items_per_unit=2)  # groups, of at least 64 work-items each
DEFAULTS: Mapping[str, Mapping[str, Schedule]] = {
    "cpu": {
        "attention": replace(_PRODUCT, tiles=(TileShape(6, 2, 1.0),)),
        "gemm": _PRODUCT,
        "conv_2d": _PRODUCT,
        "conv_lines": Schedule(items_per_unit=8, least=5e4, near_bytes=1 << 14),
        "quantized_conv_2d": _BYTES,
        "hybrid_conv_2d": _BYTES,
        "depthwise_conv_2d": Schedule(
            items_per_unit=8, items_alone=8, least=1, most=3e5, near_bytes=24576, tiles=_PIXELS
        ),
        "quantized_depthwise_conv_2d": Schedule(items_per_unit=8, least=1e5, tiles=_PIXELS),
        "winograd": Schedule(near_bytes=1 << 19, far_bytes=1 << 20),
        "fully_connected": Schedule(tiles=(TileShape(4, 1, 1.0),)),
        "quantize_rows": Schedule(pieces=64),
    },
    "gpu": {
        "product_local": _TILES,
        "gemm": _PANELS,
        "conv_2d": _PANELS,
        "quantized_conv_2d": _PANELS,
        "hybrid_conv_2d": _PANELS,
        "depthwise_conv_2d": Schedule(tiles=_PIXELS[:1]),
        "quantized_depthwise_conv_2d": Schedule(tiles=(TileShape(1, 1, 1.0),)),
        "lstm": Schedule(tiles=(TileShape(1, 1, 1.0),)),
        "region": Schedule(group=256),
        "quantize_rows": Schedule(pieces=64, least=256),
        "reduce": Schedule(pieces=1024),
    },
}
"""Schedules by the kind of device and the kernel file; ``PLAIN`` is that of all others."""

FAMILIES: Mapping[tuple[Vendor, int], Mapping[str, Schedule]] = {
    # A compute unit has four SIMDs, each of which needs a wave of its own: of 64 work-items a whole group of a tile.
    # With 32, as NVIDIA's and AMD's newer GPUs have, two groups are four waves.
    ("amd", 64): {"product_local": replace(_TILES, items_per_unit=4)},
}
"""Schedules of GPUs for which they are others, by vendor and the work-items in lockstep: from how these GPUs are made,
not measured.
"""
