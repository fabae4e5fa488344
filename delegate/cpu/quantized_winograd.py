"""3x3 convolutions of bytes on CPUs by Winograd's F(4x4, 3x3), exactly (kernels_cl/quantized_winograd.cl)."""

from math import prod

import numpy as np

from litecl.delegate.cl_op import CallOn, Const, Launch, Record, Scratch, Target
from litecl.delegate.cpu.target import by_unit, items
from litecl.delegate.cpu.winograd import SIDE, apart
from litecl.delegate.kit.claims import C_TYPES
from litecl.delegate.kit.schedule import Grid, Tile
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.quantized.integers import Bounds, Weights, bounds_of, packed, unsigned_zero
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_KERNEL = "quantized_winograd"
_POINTS = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 1]])  # of G, as integers
_LEAST_FILLED = 8  # pixels of a patch
_LEAST_PATCHES = 16  # of large weights, which take eight times as much memory
_LARGE_WEIGHTS_BYTES = 1 << 19
_LINE = 64  # bytes of a cache line
_MOST_SUM = 1 << 25  # 64 of which fit in 32 bits


@dataclass(frozen=True)
class QuantizedWinograd(Record):
    """Arguments of quantized_winograd.cl.

    tiles_y, tiles_x: patches of an image. item_patches, item_columns: a work-item's share, in whole panels. block:
    patches computed at once. slot_step, product_step: words and sums from one of the 36 points of a block to the next.
    border_bytes: of a patch, which come first in a work-item's item_bytes. x_zero: represents zero in signed
    activations.
    """

    window: Geometry
    tiles_y: int
    tiles_x: int
    item_patches: int
    item_columns: int
    block: int
    slot_step: int
    product_step: int
    border_bytes: int
    item_bytes: int
    x_zero: int
    bounds: Bounds


def quantized_winograd(call: CallOn[Target], g: Geometry, weights: Weights) -> Launch | None:
    """Return the launch of a CONV_2D of bytes; None where another kernel is faster or its sums might overflow."""
    x, out, target = call.input(0), call.outputs[0], call.target
    tiles = -(-g.out_height // SIDE), -(-g.out_width // SIDE)
    patches = g.images * prod(tiles)
    large = 2 * 36 * g.columns * g.channels > _LARGE_WEIGHTS_BYTES
    least = max(target.tuning.winograd_channels, 2 * target.lanes)
    enough = min(g.channels, g.columns) >= least and g.channels % 2 == 0 and g.pixels >= _LEAST_FILLED * patches
    if not enough or (large and patches < _LEAST_PATCHES):
        return None
    if weights.factor or weights.bits != 8 or _largest(weights) >= _MOST_SUM:
        return None
    tile = target.tile_for(_KERNEL, patches, g.columns)
    rows, parts = by_unit(target, patches, _LEAST_PATCHES) if large else (items(_KERNEL, target, g.flops), 1)
    columns = -(-g.columns // (tile.panel * parts)) * tile.panel
    bands = -(-patches // (tile.rows * rows))
    slot_bytes = 36 * (2 * g.channels + 4 * columns)
    near = target.schedule(_KERNEL).near_bytes
    block = min(bands, max(1, near // (slot_bytes * tile.rows))) * tile.rows
    item_patches = -(-bands * tile.rows // block) * block
    steps = apart(block * g.channels), apart(block * columns)
    grid = Grid(_KERNEL, (patches, g.columns), (item_patches, columns))
    border = -(-36 * g.channels // _LINE) * _LINE
    item_bytes = border + 36 * (2 * steps[0] + 4 * steps[1])
    zero, bounds = unsigned_zero(x.spec) - 128, bounds_of(call.options, out.spec)
    share = item_patches, columns, block
    shape = QuantizedWinograd(g, *tiles, *share, *steps, border, item_bytes, zero, bounds)
    stage = weights.stage(tile.panel, target.vector_width, zero, bounds)
    scratch = Scratch(item_bytes * prod(grid.needed))
    operands = (x, Const(_by_point(weights.values, columns, tile)), Const(stage.fields), out, scratch, shape)
    defines = tile.defines | stage.defines | {"T": C_TYPES[out.spec.type]} | bounds.defines(out.spec.type)
    return grid.launch(_KERNEL, operands, defines, g.flops)


def _largest(weights: Weights) -> int:
    """Return a bound of the absolute sums of products with signed bytes."""
    return int(np.abs(weights.values.astype(np.int64)).sum(axis=2).max(initial=0)) * 128


def _by_point(values: Array, columns: int, tile: Tile) -> Array:
    """Return weights [1, columns, 9 channels] as words [parts, 36, panels, channels / 2, panel, 2]: at the 36 points,
    for parts of so many columns.
    """
    taps = values.reshape(values.shape[1], 3, 3, -1).astype(np.int32)
    points = np.einsum("ia,jb,nabc->ijnc", _POINTS, _POINTS, taps).astype(np.int16)
    points = points.reshape(36, *points.shape[2:])
    parts = -(-points.shape[1] // columns)
    padded = np.pad(points, ((0, 0), (0, parts * columns - points.shape[1]), (0, 0)))
    split = padded.reshape(36, parts, columns, -1).swapaxes(0, 1).reshape(parts * 36, columns, -1)
    return packed(split, tile.panel)
