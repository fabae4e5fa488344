"""Windows that slide over spatial dimensions: sizes and paddings as in TFLite, and views of arrays through them."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import Padding

# Elements per block of unfolded patches, or of results: 1 MB of floats.
_BLOCK_ELEMENTS = 1 << 18


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
        """The number of elements from the first tap to the last."""
        return (self.size - 1) * self.dilation + 1

    def tap(self, index: int) -> slice:
        """Return the padded elements that one tap meets, one per step."""
        start = index * self.dilation
        return slice(start, start + (self.output - 1) * self.stride + 1, self.stride)


def fit(padding: Padding, length: int, size: int, stride: int, dilation: int = 1) -> Window:
    """Return the window of ``size`` taps over ``length`` elements (TFLite's ComputePaddingHeightWidth)."""
    if min(size, stride, dilation) < 1:
        raise ShapeError(f"expected window, stride and dilation of at least 1, got {size}, {stride}, {dilation}")
    extent = (size - 1) * dilation + 1
    reach = length if padding == Padding.SAME else length - extent + 1
    output = -(-reach // stride)
    if output < 1:
        raise ShapeError(f"expected at least {extent} elements for the window, got {length}")
    padded = max(0, (output - 1) * stride + extent - length)
    return Window(size, stride, dilation, padded // 2, padded - padded // 2, output)


def pad(x: Array, windows: Sequence[Window], value: float = 0.0) -> Array:
    """Return ``x`` [batch, *spatial, channels] with the borders that the windows need."""
    if not any(w.before or w.after for w in windows):
        return x
    lengths = (w.before + n + w.after for w, n in zip(windows, x.shape[1:-1], strict=True))
    shape = (len(x), *lengths, x.shape[-1])
    limits.temporary("an input with borders", shape, x.dtype.itemsize)
    result = np.full(shape, value, x.dtype)
    inside = (slice(w.before, w.before + n) for w, n in zip(windows, x.shape[1:-1], strict=True))
    result[(slice(None), *inside)] = x
    return result


def convolve(x: Array, multiply: Callable[[Array], Array], windows: Sequence[Window], border: float = 0) -> Array:
    """Apply ``multiply`` to every patch of ``x`` [batch, *spatial, channels], given as rows [taps * channels]."""
    if all(w.size == w.stride == 1 and not (w.before or w.after) for w in windows):
        pixels = multiply(x.reshape(-1, x.shape[-1]))
        return pixels.reshape(*x.shape[:-1], pixels.shape[1])
    view = patches(pad(x, windows, border), windows)
    outer, inner = view.shape[: len(windows) + 1], prod(view.shape[len(windows) + 1 :])
    result: Array | None = None
    limits.temporary("a row of patches", view.shape[2:], 8)
    for images, rows in blocks(outer[0], outer[1], prod(view.shape[2:])):
        limits.tick()
        block = multiply(view[images, rows].reshape(-1, inner))
        if result is None:
            result = np.empty((*outer, block.shape[1]), block.dtype)
        result[images, rows] = block.reshape(result[images, rows].shape)
    if result is None:  # no images: only the results' channels and type matter
        block = multiply(np.zeros((0, inner), x.dtype))
        return np.zeros((*outer, block.shape[1]), block.dtype)
    return result


def reduce(x: Array, windows: Sequence[Window], combine: np.ufunc, identity: float) -> Array:
    """Combine each window of ``x`` [batch, *spatial, channels], one dimension after the other."""
    x = pad(x, windows, identity)
    for axis, window in enumerate(windows, start=1):
        head = (slice(None),) * axis
        if window.output == 1:
            x = combine.reduce(x[(*head, slice(0, window.extent, window.dilation))], axis, keepdims=True)
            continue
        result = x[(*head, window.tap(0))]
        for index in range(1, window.size):
            limits.tick()
            result = combine(result, x[(*head, window.tap(index))])
        x = result
    return x


@lru_cache
def counts(windows: tuple[Window, ...], lengths: tuple[int, ...]) -> Array:
    """Count the elements of the unpadded array that each window covers: [*outputs, 1], not to be written to."""
    result = np.ones((), np.float32)
    for window, length in zip(windows, lengths, strict=True):
        first = np.arange(window.output) * window.stride - window.before
        covered = np.minimum(first + window.size, length) - np.maximum(first, 0)
        result = result[..., None] * covered.astype(np.float32)
    return result[..., None]


def patches(x: Array, windows: Sequence[Window]) -> Array:
    """Return a view [batch, *outputs, *taps, channels] of a padded array."""
    x = np.ascontiguousarray(x)
    batch, *spatial, channel = x.strides
    outputs = [(w.output, step * w.stride) for w, step in zip(windows, spatial, strict=True)]
    taps = [(w.size, step * w.dilation) for w, step in zip(windows, spatial, strict=True)]
    shape, strides = zip((len(x), batch), *outputs, *taps, (x.shape[-1], channel), strict=True)
    return np.ndarray(shape, x.dtype, x, strides=strides)


def blocks(images: int, rows: int, row_elements: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of images and rows whose blocks stay within the cache."""
    at_once = max(1, _BLOCK_ELEMENTS // max(1, row_elements))
    if at_once >= rows:
        step = at_once // max(1, rows)
        yield from ((slice(i, i + step), slice(None)) for i in range(0, images, step))
        return
    for i in range(images):
        yield from ((slice(i, i + 1), slice(r, r + at_once)) for r in range(0, rows, at_once))
