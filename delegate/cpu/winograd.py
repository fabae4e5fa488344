"""3x3 convolutions of stride 1 on CPUs by Winograd's F(4x4, 3x3) (kernels_cl/winograd.cl)."""

from math import prod, sqrt

import numpy as np

from litecl.delegate.cl_op import Arg, Const, Launch, Record, Scratch
from litecl.delegate.cpu import schedules
from litecl.delegate.cpu.target import CpuCall, CpuTarget, by_unit, items
from litecl.delegate.kit.schedule import Grid, Tile
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.matmul.product import packed, panels
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

SIDE = 4
"""Output pixels of a patch, along each side."""

_POINTS = (0.0, 1 / sqrt(2), -1 / sqrt(2), sqrt(2), -sqrt(2))
_BLOCK = 16  # columns
_LINE = 16  # floats, of a cache
_LEAST_PATCHES = 16  # with fewer, weights four times as large cost more than is gained
_LARGE_WEIGHTS_BYTES = 1 << 20  # weights too large for the second-level cache are read once for every block
_FAR_WEIGHTS_BYTES = 1 << 22  # weights whose reading takes longer than a tile loses that is one vector wide


@dataclass(frozen=True)
class Winograd(Record):
    """Arguments of winograd.cl. tiles_y, tiles_x: patches of an image. item_patches, item_columns: a work-item's share,
    in whole panels. block: patches computed at once. slot_step, product_step: floats from one of the 36 points of a
    block to the next, before and after the products.
    """

    window: Geometry
    out_step: int
    tiles_y: int
    tiles_x: int
    item_patches: int
    item_columns: int
    block: int
    slot_step: int
    product_step: int


def winograd(call: CpuCall, g: Geometry) -> list[Launch] | None:
    """Return the launches of a CONV_2D with constant weights [columns, 3, 3, channels].

    None where another kernel is faster, and for weights that are not finite.
    """
    (x, filter_, bias), out, target = call.weighted, call.outputs[0], call.target
    tiles = -(-g.out_height // SIDE), -(-g.out_width // SIDE)
    patches = g.images * prod(tiles)
    enough = min(g.columns, g.channels) >= max(target.tuning.winograd_channels, target.vector_width)
    if not enough or patches < _LEAST_PATCHES:
        return None
    share = _share(patches, g, target)
    tile = share.tile
    parts = -(-g.columns // share.columns)
    missing = parts * share.columns - g.columns
    points = transformed(np.pad(filter_.value, ((0, missing), (0, 0), (0, 0), (0, 0))))
    if points is None:
        return None
    weights = panels(points.reshape(36, parts, share.columns, g.channels).swapaxes(0, 1), tile.panel)
    added = packed(bias, 1, g.columns, tile.panel, target)
    widths = g.channels, share.columns
    steps = [apart(share.block * width) for width in widths]
    grid = Grid("winograd", (patches, g.columns), (share.patches, share.columns))
    scratch = Scratch(4 * 36 * sum(steps) * prod(grid.needed))
    shape = Winograd(g, out.step, *tiles, share.patches, share.columns, share.block, *steps)
    operands: tuple[Arg, ...] = (x, Const(weights), added.values, call.residual or added.values, out, scratch, shape)
    launch = grid.launch(
        "winograd",
        (*operands, np.int32(call.residual is not None), *call.activation.bounds),
        tile.defines | call.activation.defines,
        g.flops,
    )
    return [*added.steps, launch]


def apart(floats: int) -> int:
    """Return a step of at least ``floats`` floats that spreads 36 lines over many sets of a cache."""
    return _LINE * (-(-floats // _LINE) | 1)


def transformed(weights: Array) -> Array | None:
    """Compute G w G^T of filters [columns, 3, 3, channels], as [36, columns, channels].

    None if any element is not finite: infinite results would become NaN.
    """
    columns, _, _, channels = weights.shape
    points: Array = np.empty((6, 6, columns, channels), np.float32)
    for n in range(0, columns, _BLOCK):  # in blocks, so that float64 takes little memory
        taps = weights[n : n + _BLOCK].transpose(1, 2, 0, 3).astype(np.float64)
        with np.errstate(all="ignore"):
            points[:, :, n : n + _BLOCK] = _at_points(_at_points(taps).swapaxes(0, 1)).swapaxes(0, 1)
    return points.reshape(36, columns, channels) if np.isfinite(points).all() else None


def _at_points(taps: Array) -> Array:
    """Compute G t of three taps: single operations, as BLAS rounds differently on each processor."""
    constant, linear, square = taps
    result: Array = np.empty((6, *constant.shape))
    result[5] = square
    for i, point in enumerate(_POINTS):
        factor = 1 / prod(point - other for other in _POINTS if other != point)
        if point == 0:
            result[i] = constant * factor
        elif point > 0:
            even, odd = constant * factor, linear * (point * factor)
            even += square * (point * point * factor)
            np.add(even, odd, out=result[i])
            np.subtract(even, odd, out=result[i + 1])  # the next point is its negative, with the same factor
    return result


@dataclass(frozen=True)
class _Share:
    """What a work-item computes: patches, ``block`` of them at a time, x columns."""

    tile: Tile
    patches: int
    columns: int
    block: int


def _share(patches: int, g: Geometry, target: CpuTarget) -> _Share:
    """Divide the patches among work-items; with large weights also the columns, so that each unit reads its own."""
    schedule = target.schedule("winograd")
    if 4 * 36 * g.columns * g.channels > _LARGE_WEIGHTS_BYTES:
        scratch_bytes, (rows, parts) = schedule.far_bytes, by_unit(target, patches, _LEAST_PATCHES)
        tile = _streaming(-(-patches // rows), g, target)
    else:
        scratch_bytes, (rows, parts) = schedule.near_bytes, (items("winograd", target), 1)
        tile = target.tile_for("winograd", patches, g.columns)
    panels = -(-g.columns // tile.panel)
    columns = -(-panels // parts) * tile.panel
    bands = -(-patches // (tile.rows * rows))
    slot_bytes = 4 * 36 * (g.channels + columns)
    block = min(bands, max(1, scratch_bytes // (slot_bytes * tile.rows))) * tile.rows
    return _Share(tile, -(-bands * tile.rows // block) * block, columns, block)


def _streaming(patches: int, g: Geometry, target: CpuTarget) -> Tile:
    """Return the tile for weights that come from memory: a tall one, which reads them least often, if it fits."""
    at_once = schedules.AT_ONCE.get(target.vector_width, ())
    far = 4 * 36 * g.columns * g.channels > _FAR_WEIGHTS_BYTES
    tall = not target.takes_turns and any(patches == n or (far and patches % n == 0) for n in (t.rows for t in at_once))
    return target.tile_for("winograd", patches, g.columns, among=schedules.AT_ONCE if tall else None)
