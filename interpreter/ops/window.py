"""Windows that slide over spatial dimensions: sizes and paddings as TFLite has them, arrays seen through them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import Padding

# Elements of a block of unfolded patches: 32 MB of floats.
_BLOCK_ELEMENTS = 1 << 23


@dataclass(frozen=True)
class Window:
    """A window along one dimension: ``size`` taps, ``dilation`` apart, that takes ``output`` steps of ``stride``."""

    size: int
    stride: int
    dilation: int
    before: int
    after: int
    output: int

    @property
    def extent(self) -> int:
        """Elements from the first tap to the last."""
        return (self.size - 1) * self.dilation + 1

    def tap(self, index: int) -> slice:
        """The padded elements that one tap meets, one a step."""
        start = index * self.dilation
        return slice(start, start + (self.output - 1) * self.stride + 1, self.stride)


def fit(op: str, padding: Padding, length: int, size: int, stride: int, dilation: int = 1) -> Window:
    """The window of ``size`` taps over ``length`` elements (TFLite's ComputePaddingHeightWidth)."""
    if min(size, stride, dilation) < 1:
        raise ShapeError(f"{op}: expected window, stride and dilation of at least 1, got {size}, {stride}, {dilation}")
    extent = (size - 1) * dilation + 1
    reach = length if padding == Padding.SAME else length - extent + 1
    output = -(-reach // stride)
    if output < 1:
        raise ShapeError(f"{op}: expected at least {extent} elements for the window, got {length}")
    padded = max(0, (output - 1) * stride + extent - length)
    return Window(size, stride, dilation, padded // 2, padded - padded // 2, output)


def pad(x: Array, windows: Sequence[Window], value: float = 0.0) -> Array:
    """``x`` [batch, *spatial, channels] with the borders that the windows need."""
    if not any(w.before or w.after for w in windows):
        return x
    return np.pad(x, [(0, 0), *((w.before, w.after) for w in windows), (0, 0)], constant_values=value)


def convolve(x: Array, multiply: Callable[[Array], Array], windows: Sequence[Window], border: float = 0) -> Array:
    """``multiply`` of every patch of ``x`` [batch, *spatial, channels], given as rows [taps * channels]."""
    patches = _patches(pad(x, windows, border), windows)
    outer, inner = patches.shape[: len(windows) + 1], prod(patches.shape[len(windows) + 1 :])
    result: Array | None = None
    for images, rows in _blocks(outer[0], outer[1], max(1, prod(patches.shape[2:]))):
        block = multiply(patches[images, rows].reshape(-1, inner))
        if result is None:
            result = np.empty((*outer, block.shape[1]), block.dtype)
        result[images, rows] = block.reshape(result[images, rows].shape)
    return np.zeros((*outer, 0), x.dtype) if result is None else result


def reduce(x: Array, windows: Sequence[Window], combine: Callable[[Array, Array], Array], identity: float) -> Array:
    """Combines each window of ``x`` [batch, *spatial, channels], one dimension after the other."""
    x = pad(x, windows, identity)
    for axis, window in enumerate(windows, start=1):
        head = (slice(None),) * axis
        result = x[(*head, window.tap(0))]
        for index in range(1, window.size):
            result = combine(result, x[(*head, window.tap(index))])
        x = result
    return x


def counts(windows: Sequence[Window], lengths: Sequence[int]) -> Array:
    """How many elements of the unpadded array each window covers: [*outputs, 1]."""
    result = np.ones((), np.float32)
    for window, length in zip(windows, lengths, strict=True):
        first = np.arange(window.output) * window.stride - window.before
        covered = np.minimum(first + window.size, length) - np.maximum(first, 0)
        result = result[..., None] * covered.astype(np.float32)
    return result[..., None]


def _patches(x: Array, windows: Sequence[Window]) -> Array:
    """A view [batch, *outputs, *taps, channels] of a padded array."""
    spatial = tuple(range(1, len(windows) + 1))
    view = np.lib.stride_tricks.sliding_window_view(x, [w.extent for w in windows], axis=spatial)
    steps = tuple(w.tap(0) for w in windows)
    taps = tuple(slice(None, None, w.dilation) for w in windows)
    return np.moveaxis(view[(slice(None), *steps, slice(None), *taps)], len(windows) + 1, -1)


def _blocks(images: int, rows: int, row_elements: int) -> Iterator[tuple[slice, slice]]:
    """Slices of images and rows, so that a block of unfolded patches stays small."""
    at_once = max(1, _BLOCK_ELEMENTS // row_elements)
    if at_once >= rows:
        step = at_once // rows
        yield from ((slice(i, i + step), slice(None)) for i in range(0, images, step))
        return
    for i in range(images):
        yield from ((slice(i, i + 1), slice(r, r + at_once)) for r in range(0, rows, at_once))
