"""Tiles for WebAssembly engines."""

from dataclasses import replace

from litecl.delegate.cpu.schedules import DEFAULTS, OF_PRODUCTS
from litecl.delegate.tuning import TileShape, Tuning

# V8 has 15 vector registers on x86, and loads all operands of a step of a loop before it uses the first: the sums of a
# tile must fit beside them. One of six rows, which native code keeps in 16 registers, takes 1.5 times as long.
_ROWS, _ROW = TileShape(4, 2, 1.0), (TileShape(1, 4, 0.3), TileShape(1, 2, 0.3))
WEB_TILES = Tuning(
    schedules={
        **{kernel: replace(DEFAULTS[kernel], tiles=(_ROWS, *_ROW)) for kernel in OF_PRODUCTS},
        **{kernel: replace(DEFAULTS[kernel], tiles=(_ROWS,)) for kernel in ("attention", "winograd")},
    }
)
