"""The launch of kernels_cl/conv_lines.cl: convolutions that copy the lines that they read."""

from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Activation, Launch, Operand, Record, Scratch, Target
from litecl.delegate.kit.schedule import Grid, Tile, flops, schedule_of, spread, tile_for
from litecl.delegate.matmul.geometry import Geometry, Placement
from litecl.delegate.matmul.product import Packed

_KERNEL = "conv_lines"
_LEAST_FILLED = 0.7  # share of a line's tiles that its pixels fill


@dataclass(frozen=True)
class LineConvolution(Record):
    """Arguments of conv_lines.cl: the window, where results go, a work-item's share and, in floats, its memory."""

    window: Geometry
    out: Placement
    span: int
    item_spans: int
    item_columns: int
    line_floats: int
    item_floats: int


def suits(g: Geometry, target: Target) -> bool:
    """Return whether a CPU computes a convolution by lines."""
    if target.kind != "cpu" or g.dilation_x > 1 or g.groups > 1 or g.is_matrix or not g.flops:
        return False
    tile = line_tile(g, target)
    filled = g.out_width / (-(-g.out_width // tile.rows) * tile.rows)
    return filled >= _LEAST_FILLED and _span(g, tile, target) > 0


def line_tile(g: Geometry, target: Target) -> Tile:
    """Return the tile that covers output lines with the least waste."""
    return tile_for(_KERNEL, target, g.out_width, g.group_columns, narrow=True, lines=True)


def by_lines(
    g: Geometry,
    place: Placement,
    tile: Tile,
    target: Target,
    x: Operand,
    weights: Packed,
    bias: Packed,
    out: Operand | Scratch,
    activation: Activation,
    residual: Operand | None,
) -> Launch:
    """Return the launch of activation(conv(x) + bias + residual), for weights and a bias packed for ``tile``."""
    span = _span(g, tile, target)
    spans, panels = g.images * g.out_height * -(-g.out_width // span), -(-g.columns // tile.columns)
    item_spans, item_panels = spread(_KERNEL, target, spans, panels, flops(g.pixels, g.columns, g.depth))
    shares = item_spans, item_panels * tile.columns, 1
    items = -(-spans // item_spans) * -(-panels // item_panels)
    line = _line_floats(g, span, tile)
    item_floats = g.kernel_height * line + target.vector_width
    shape = LineConvolution(g, place, span, *shares[:2], line, item_floats)
    operands = (x, weights.values, bias.values, residual or bias.values, Scratch(4 * items * item_floats), out, shape)
    return Grid(_KERNEL, target, (spans, g.columns, 1), shares).launch(
        _KERNEL,
        (*operands, np.int32(residual is not None), *activation.bounds),
        tile.defines | weights.defines | activation.defines,
        g.flops,
    )


def _span(g: Geometry, tile: Tile, target: Target) -> int:
    """Return how many pixels of a line a work-item takes at once: whole tiles, as many as stay in the cache."""
    near = schedule_of(_KERNEL, target).near_bytes // 4
    tiles = -(-g.out_width // tile.rows)
    fits = [n for n in range(1, tiles + 1) if g.kernel_height * _line_floats(g, n * tile.rows, tile) <= near]
    if not fits:
        return 0
    parts = -(-tiles // fits[-1])
    return -(-tiles // parts) * tile.rows


def _line_floats(g: Geometry, span: int, tile: Tile) -> int:
    """Return the floats from one line to the next; a whole tile may be read."""
    return -(-((span - 1) * g.stride_x + g.kernel_width) * g.channels // tile.width) * tile.width
