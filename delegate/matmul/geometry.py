"""The window of a convolution or a pool over images: one record for all kernels, filled in one place."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from litecl.delegate.cl_op import Pads, Record, Refusal, Specs, Target
from litecl.delegate.kit.claims import given
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Shape, TensorSpec

_LEAST_ROWS, _MOST_DEPTH = 16, 512  # of a product with several pixels to a row
_COUNTED = 1 << 31  # elements that kernels can index


@dataclass(frozen=True, kw_only=True)
class Geometry(Record):
    """A window over images [images, height, width, channels], and the output columns computed from it.

    pad_y, pad_x: zeros before the first row and column. out_height, out_width: positions of the window in an image.
    group_channels: channels that an output element depends on; each such group makes ``group_columns`` of the
    ``columns``. A depthwise convolution or a pool has as many groups as channels.
    """

    images: int
    height: int
    width: int
    channels: int
    group_channels: int
    kernel_height: int = 1
    kernel_width: int = 1
    stride_y: int = 1
    stride_x: int = 1
    dilation_y: int = 1
    dilation_x: int = 1
    pad_y: int = 0
    pad_x: int = 0
    out_height: int
    out_width: int
    columns: int
    group_columns: int

    @property
    def pixels(self) -> int:
        """The number of positions of the window in all images."""
        return self.images * self.out_height * self.out_width

    @property
    def groups(self) -> int:
        """The number of groups of channels."""
        return self.columns // self.group_columns

    @property
    def taps(self) -> int:
        """Elements of the window in one channel."""
        return self.kernel_height * self.kernel_width

    @property
    def depth(self) -> int:
        """Length of an output element's dot product."""
        return self.taps * self.group_channels

    @property
    def flops(self) -> int:
        """Arithmetic operations of all output elements: a multiplication and an addition for each tap and channel."""
        return 2 * self.pixels * self.columns * self.depth

    @property
    def strides(self) -> tuple[int, int]:
        """Rows and columns from one position of the window to the next."""
        return self.stride_y, self.stride_x

    def guarded(self, pixels: int) -> dict[str, str | int | float]:
        """Return the macro GUARDED of kernels that compute ``pixels`` adjacent pixels of a line at once, of which the
        last run overlaps the one before: 1 if every run reaches beyond the image's sides, 0 if none does, else absent.
        """
        firsts = (max(0, min(first, self.out_width - pixels)) for first in range(0, self.out_width, pixels))
        lefts = {first * self.stride_x - self.pad_x for first in firsts}
        reach = (pixels - 1) * self.stride_x + (self.kernel_width - 1) * self.dilation_x
        beyond = {left < 0 or left + reach >= self.width for left in lefts}
        return {"GUARDED": int(beyond.pop())} if len(beyond) == 1 else {}

    @property
    def near(self) -> bool:
        """True if no window reaches farther beyond the image's sides than half a window."""
        last = (self.out_width - 1) * self.stride_x - self.pad_x + (self.kernel_width - 1) * self.dilation_x
        return max(self.pad_x, last + 1 - self.width) <= self.kernel_width // 2

    @property
    def dense(self) -> bool:
        """True if the window's taps are adjacent."""
        return self.dilation_y == self.dilation_x == 1

    @property
    def is_3x3(self) -> bool:
        """True for an ungrouped window of 3x3 adjacent pixels with stride 1."""
        size, strides = (self.kernel_height, self.kernel_width), self.strides
        return self.groups == 1 and self.dense and (size, strides) == ((3, 3), (1, 1))

    @property
    def is_matrix(self) -> bool:
        """True if each output pixel depends on all channels of one input pixel, so that pixels are a product's rows."""
        alone = (self.taps, self.stride_y, self.stride_x, self.pad_y, self.pad_x) == (1, 1, 1, 0, 0)
        return alone and self.group_channels == self.channels and self.pixels == self.images * self.height * self.width

    @property
    def is_product(self) -> bool:
        """True if windows are consecutive rows of a product: single pixels, or whole images."""
        sizes = (self.kernel_height, self.kernel_width), (self.out_height, self.out_width), (self.pad_y, self.pad_x)
        whole = sizes == ((self.height, self.width), (1, 1), (0, 0)) and self.dense
        return self.is_matrix or (whole and self.group_channels == self.channels)

    @property
    def lying(self) -> "Geometry":
        """The same window with an image one pixel wide as a row: the memory is the same, and its taps are adjacent."""
        if (self.width, self.kernel_width, self.out_width, self.pad_x) != (1, 1, 1, 0):
            return self
        return replace(
            self,
            height=1,
            width=self.height,
            kernel_height=1,
            kernel_width=self.kernel_height,
            stride_y=1,
            stride_x=self.stride_y,
            dilation_y=1,
            dilation_x=self.dilation_y,
            pad_y=0,
            pad_x=self.pad_y,
            out_height=1,
            out_width=self.out_height,
        )

    @property
    def words(self) -> "Geometry":
        """The same window over 16-bit activations, each counted as two channels of bytes."""
        return replace(self, channels=2 * self.channels, group_channels=2 * self.group_channels)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The pixels of a ``height`` x ``width`` image that results are written to: every step-th from first on.

    pixel_step: elements from one pixel to the next.
    """

    height: int
    width: int
    step_y: int = 1
    step_x: int = 1
    first_y: int = 0
    first_x: int = 0
    pixel_step: int


def geometry(options: Any, x: Shape, kernel: Sequence[int], group_channels: int, out: Shape, pads: Pads) -> Geometry:
    """Return the geometry of a convolution or a pool with these options: images of shape ``x`` become ``out``.

    kernel: height and width of the window. pads: zeros around ``x`` in addition to the options' padding. The latter
    covers what the windows reach beyond the image, half of it before the image (TensorFlow Lite's ComputePadding).
    """
    images, height, width, channels = x
    # The stride of a single position and the dilation of a single tap are unused, and may be any number in a file.
    strides = [step if n > 1 else 1 for step, n in zip((options.stride_h, options.stride_w), out[1:3], strict=True)]
    apart = getattr(options, "dilation_h_factor", 1), getattr(options, "dilation_w_factor", 1)
    dilations = [step if n > 1 else 1 for step, n in zip(apart, kernel, strict=True)]
    lengths = pads.top + height + pads.bottom, pads.left + width + pads.right
    reach = [(out[i + 1] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(2)]
    window = Geometry(
        images=images,
        height=height,
        width=width,
        channels=channels,
        group_channels=group_channels,
        kernel_height=kernel[0],
        kernel_width=kernel[1],
        stride_y=strides[0],
        stride_x=strides[1],
        dilation_y=dilations[0],
        dilation_x=dilations[1],
        pad_y=max(0, reach[0] - lengths[0]) // 2 + pads.top,
        pad_x=max(0, reach[1] - lengths[1]) // 2 + pads.left,
        out_height=out[1],
        out_width=out[2],
        columns=out[3],
        group_columns=out[3] * group_channels // channels,
    )
    return window.lying


def reached(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    """Refuse dilations so large that kernels cannot index an image with its borders."""
    x, kernel, out = (spec.static_shape for spec in (given(inputs, 0), given(inputs, 1), outputs[0]))
    g = geometry(options, x, kernel[1:3], x[3], out, Pads())
    rows, columns = g.height + 2 * g.pad_y + 1, g.width + 2 * g.pad_x + 1
    if rows * columns * g.channels < _COUNTED:
        return None
    return Refusal(f"dilations that enlarge the image to {rows} x {columns}, borders included")


def abreast(g: Geometry, target: Target) -> int:
    """Return how many adjacent pixels of an integer product to join into one row, so that its columns fill a CPU's
    vector; 1 if they do anyway. (With floats, an infinite pixel times its neighbours' zeros would be NaN.)
    """
    if not g.is_matrix or not g.columns:
        return 1
    counts = [n for n in (2, 4, 8, 16) if n * g.columns <= target.lanes and g.pixels % n == 0]
    return max((n for n in counts if g.pixels >= n * _LEAST_ROWS and n * g.depth <= _MOST_DEPTH), default=1)


def side_by_side(g: Geometry, pixels: int) -> Geometry:
    """Return the product with ``pixels`` pixels to a row and block-diagonal weights, a block for each pixel."""
    return matrix(g.pixels // pixels, pixels * g.depth, pixels * g.columns)


def matrix(rows: int, depth: int, columns: int) -> Geometry:
    """Return the geometry of a plain product: rows are pixels side by side."""
    shape = {"height": 1, "width": rows, "channels": depth, "group_channels": depth}
    return Geometry(images=1, **shape, out_height=1, out_width=rows, columns=columns, group_columns=columns)
