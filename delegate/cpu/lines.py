"""The launch of kernels_cl/conv_lines.cl: convolutions that copy the lines that they read."""

import numpy as np

from litecl.delegate.cl_op import Activation, Launch, Operand, Record, Scratch, Target
from litecl.delegate.cpu.target import spread
from litecl.delegate.kit.schedule import Grid, Tile
from litecl.delegate.matmul.geometry import Geometry, Placement
from litecl.delegate.matmul.product import Packed
from litecl.interpreter.dataclass import dataclass

_KERNEL = "conv_lines"
_LEAST_FILLED = 0.7  # share of a line's tiles that its pixels fill


@dataclass(frozen=True)
class LineConvolution(Record):
    """Arguments of conv_lines.cl: the window, where results go, a work-item's share and, in floats, its memory.

    vector_step: elements from a vector of columns of a pixel to the next.
    """

    window: Geometry
    out: Placement
    vector_step: int
    span: int
    item_spans: int
    item_columns: int
    line_floats: int
    item_floats: int


@dataclass(frozen=True)
class Lines:
    """A convolution by lines. tiles: of one line that a work-item takes at once."""

    window: Geometry
    tile: Tile
    tiles: int

    @property
    def span(self) -> int:
        """Pixels of one line that a work-item takes at once."""
        return self.tiles * self.tile.rows

    @property
    def line_floats(self) -> int:
        """Floats from one copied line to the next; a whole tile may be read."""
        g = self.window
        return -(-((self.span - 1) * g.stride_x + g.kernel_width) * g.channels // self.tile.width) * self.tile.width

    @property
    def item_floats(self) -> int:
        """Floats that a work-item copies to, and those that it writes behind them."""
        return self.window.kernel_height * self.line_floats + self.tile.width

    def launch(
        self,
        target: Target,
        x: Operand,
        weights: Packed,
        bias: Packed,
        out: Operand | Scratch,
        place: Placement,
        vector_step: int,
        activation: Activation,
        residual: Operand | None,
    ) -> Launch:
        """Return the launch of activation(conv(x) + bias + residual), for weights and a bias packed for the tile.

        vector_step: elements from a vector of columns of a result's pixel to the next.
        """
        g, tile = self.window, self.tile
        spans, panels = g.images * g.out_height * -(-g.out_width // self.span), -(-g.columns // tile.columns)
        item_spans, item_panels = spread(_KERNEL, target, spans, panels, g.flops)
        shares = item_spans, item_panels * tile.columns, 1
        items = -(-spans // item_spans) * -(-panels // item_panels)
        shape = LineConvolution(g, place, vector_step, self.span, *shares[:2], self.line_floats, self.item_floats)
        copied = Scratch(4 * items * self.item_floats)
        operands = (x, weights.values, bias.values, residual or bias.values, copied, out, shape)
        return Grid(_KERNEL, (spans, g.columns, 1), shares).launch(
            _KERNEL,
            (*operands, np.int32(residual is not None), *activation.bounds),
            tile.defines | weights.defines | activation.defines,
            g.flops,
        )


def lines_of(g: Geometry, target: Target) -> Lines | None:
    """Return how a convolution of a single group is computed by lines, on a device with tiles of them; None if that is
    not for it.
    """
    if g.dilation_x > 1 or not g.flops:
        return None
    tile = target.tile_for(_KERNEL, g.out_width, g.group_columns, narrow=True, among=target.line_tiles[_KERNEL])
    most = -(-g.out_width // tile.rows)
    if g.out_width < _LEAST_FILLED * most * tile.rows:
        return None
    near = target.schedule(_KERNEL).near_bytes // 4
    fits = [n for n in range(1, most + 1) if Lines(g, tile, n).item_floats <= near]
    return Lines(g, tile, -(-most // -(-most // fits[-1]))) if fits else None
