"""The launch of kernels_cl/conv_lines.cl: convolutions that copy the input lines that they read."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Activation, Launch, Operand, Record, Scratch, Target
from litecl.delegate.cpu.target import spread
from litecl.delegate.kit.schedule import Grid, Tile
from litecl.delegate.matmul.geometry import Geometry, Placement
from litecl.delegate.matmul.product import Packed
from litecl.interpreter.dataclass import dataclass

_KERNEL = "conv_lines"
_LEAST_FILLED = 0.7  # share of a line's tiles that its pixels fill
_LEAST_FILLED_DEEP = 0.9  # the same with _DEEP channels: conv_2d.cl, whose tiles span lines, then gathers at no cost
_DEEP = 32


@dataclass(frozen=True)
class LineConvolution(Record):
    """Arguments of conv_lines.cl: the window, where results go, a work-item's share and, in floats, its memory.

    second: the window of a second image, whose convolution is added. depth: products per element. vector_step:
    elements from a vector of a pixel's columns to the next. block_lines: output lines whose input is copied at once.
    line_floats, second_floats: from an image's copied line to the next.
    """

    window: Geometry
    second: Geometry
    depth: int
    out: Placement
    vector_step: int
    span: int
    item_spans: int
    item_columns: int
    block_lines: int
    line_floats: int
    second_floats: int
    item_floats: int


@dataclass(frozen=True)
class Lines:
    """A convolution by lines, or the sum of two. tiles: of one line, which a work-item computes at once."""

    windows: tuple[Geometry, ...]
    tile: Tile
    tiles: int

    @property
    def span(self) -> int:
        """Pixels of one line that a work-item computes at once."""
        return self.tiles * self.tile.rows

    @property
    def line_floats(self) -> list[int]:
        """Floats from one copied line of each image to the next; a whole tile may be read."""
        width = self.tile.width
        floats = (((self.span - 1) * g.stride_x + g.kernel_width) * g.channels for g in self.windows)
        return [-(-count // width) * width for count in floats]

    def item_floats(self, block: int = 1) -> int:
        """Floats of a work-item's memory: what ``block`` lines read, and a vector that copies may write behind it."""
        read = ((block - 1) * g.stride_y + g.kernel_height for g in self.windows)
        return sum(n * floats for n, floats in zip(read, self.line_floats, strict=True)) + self.tile.width

    def block(self, most: int, near: int) -> int:
        """Return how many lines of the output, at most ``most``, to copy the input of at once, in ``near`` floats."""
        g = self.windows[0]
        whole = self.span >= g.out_width and all(window.dilation_y == 1 for window in self.windows)
        if not whole or sum(window.height * window.width * window.channels for window in self.windows) > near:
            return 1
        return max((n for n in range(1, min(most, g.out_height) + 1) if self.item_floats(n) <= near), default=1)

    def launch(
        self,
        target: Target,
        images: Sequence[Operand],
        weights: Packed,
        bias: Packed,
        out: Operand | Scratch,
        placement: Placement,
        activation: Activation,
        residual: Operand | None = None,
        vector_step: int | None = None,
    ) -> Launch:
        """Return the launch of activation(conv(x) + bias + residual), for weights and a bias packed for the tile.

        weights: those of the first image, then those of the second. vector_step: elements from a vector of a pixel's
        columns to the next; without gaps by default.
        """
        g, tile, flops = self.windows[0], self.tile, sum(window.flops for window in self.windows)
        spans, panels = g.images * g.out_height * -(-g.out_width // self.span), -(-g.columns // tile.columns)
        item_spans, item_panels = spread(_KERNEL, target, spans, panels, flops)
        shares = item_spans, item_panels * tile.columns, 1
        items = -(-spans // item_spans) * -(-panels // item_panels)
        block = self.block(item_spans, target.schedule(_KERNEL).near_bytes // 4)
        shape = LineConvolution(
            window=g,
            second=self.windows[-1],
            depth=sum(window.depth for window in self.windows),
            out=placement,
            vector_step=tile.width if vector_step is None else vector_step,
            span=self.span,
            item_spans=shares[0],
            item_columns=shares[1],
            block_lines=block,
            line_floats=self.line_floats[0],
            second_floats=self.line_floats[-1],
            item_floats=self.item_floats(block),
        )
        copied = Scratch(4 * items * self.item_floats(block))
        operands = (images[0], images[-1], weights.values, bias.values, residual or bias.values, copied, out, shape)
        second = {"SECOND": 1} if len(self.windows) > 1 else {}
        return Grid(_KERNEL, (spans, g.columns, 1), shares).launch(
            _KERNEL,
            (*operands, np.int32(residual is not None), *activation.bounds),
            tile.defines | activation.defines | second,
            flops,
        )


def lines_of(g: Geometry, target: Target, second: Geometry | None = None) -> Lines | None:
    """Return how to compute a convolution of a single group by lines, on a device with tiles for lines; None if that
    doesn't suit it. second: another convolution, which is added.
    """
    windows = (g,) if second is None else (g, second)
    if any(window.dilation_x > 1 or not window.flops for window in windows):
        return None
    tile = target.tile_for(_KERNEL, g.out_width, g.group_columns, narrow=True, among=target.line_tiles[_KERNEL])
    most = -(-g.out_width // tile.rows)
    least = _LEAST_FILLED_DEEP if second is None and g.channels >= _DEEP else _LEAST_FILLED
    if g.out_width < least * most * tile.rows:
        return None
    near = target.schedule(_KERNEL).near_bytes // 4
    fits = [n for n in range(1, most + 1) if Lines(windows, tile, n).item_floats() <= near]
    return Lines(windows, tile, -(-most // -(-most // fits[-1]))) if fits else None
