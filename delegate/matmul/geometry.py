"""The window of a convolution or a pool over images: one record for all kernels, filled in one place."""

from dataclasses import dataclass, replace

from litecl.delegate.cl_op import Pads
from litecl.interpreter.graph import Shape
from litecl.interpreter.kit.window import Window


@dataclass(frozen=True)
class Geometry:
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
    kernel_height: int
    kernel_width: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    pad_y: int
    pad_x: int
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
        """Length of the dot product that an output element is."""
        return self.taps * self.group_channels

    @property
    def strides(self) -> tuple[int, int]:
        """Rows and columns from one position of the window to the next."""
        return self.stride_y, self.stride_x

    @property
    def dense(self) -> bool:
        """Whether the window's taps are adjacent."""
        return self.dilation_y == self.dilation_x == 1

    @property
    def is_matrix(self) -> bool:
        """Whether each output pixel depends on one input pixel only, with all channels, so that pixels are rows
        of a product.
        """
        alone = (self.taps, self.stride_y, self.stride_x, self.pad_y, self.pad_x) == (1, 1, 1, 0, 0)
        return alone and self.group_channels == self.channels and self.pixels == self.images * self.height * self.width

    @property
    def words(self) -> "Geometry":
        """The same window over 16-bit activations, each counted as two channels of bytes."""
        return replace(self, channels=2 * self.channels, group_channels=2 * self.group_channels)


def geometry(
    windows: tuple[Window, Window], x: Shape, group_channels: int, columns: int, pads: Pads | None = None
) -> Geometry:
    """Return the geometry of vertical and horizontal windows over images of shape ``x``.

    pads: zeros around ``x``, in addition to those of the windows.
    """
    vertical, horizontal = windows
    images, height, width, channels = x
    pads = pads or Pads()
    return Geometry(
        images=images,
        height=height,
        width=width,
        channels=channels,
        group_channels=group_channels,
        kernel_height=vertical.size,
        kernel_width=horizontal.size,
        stride_y=vertical.stride,
        stride_x=horizontal.stride,
        dilation_y=vertical.dilation,
        dilation_x=horizontal.dilation,
        pad_y=vertical.before + pads.top,
        pad_x=horizontal.before + pads.left,
        out_height=vertical.output,
        out_width=horizontal.output,
        columns=columns,
        group_columns=columns * group_channels // channels,
    )


def matrix(rows: int, depth: int, columns: int) -> Geometry:
    """Return the geometry of a plain product, whose rows are adjacent pixels."""
    along, down = Window(1, 1, 1, 0, 0, rows), Window(1, 1, 1, 0, 0, 1)
    return geometry((down, along), (1, 1, rows, depth), depth, columns)
