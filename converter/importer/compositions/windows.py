"""Gradients of windowed operators on arrays [N, ..., C]: 3-D pooling and convolution, dilation, second-order maxima.

Each element of a window, a tap, is a strided slice of the whole.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, int32, known, sizes

_Tap = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """Windows over the inner dimensions of an array, with one number per dimension.

    rates: distances between a window's elements. before: padding in front. counts: numbers of windows.
    """

    sizes: _Tap
    extent: _Tap
    steps: _Tap
    rates: _Tap
    before: _Tap
    counts: _Tap

    @staticmethod
    def over(attrs: Mapping[str, Any], dims: Sequence[int], extent: Sequence[int]) -> "Windows":
        """Return the windows over dimensions of known sizes, by an operator's attributes."""
        if attrs["padding"] not in ("SAME", "VALID") or not str(attrs.get("data_format", "NHWC")).endswith("C"):
            raise Unfit("it is converted with channels last, and SAME or VALID padding")
        steps = tuple(int(step) for step in attrs["strides"][1:-1])
        rates = tuple(int(rate) for rate in attrs.get("rates", attrs.get("dilations", [1] * 5))[1:-1])[: len(steps)]
        spans = [(e - 1) * rate + 1 for e, rate in zip(extent, rates, strict=True)]
        counts, before = [], []
        for size, span, step in zip(dims, spans, steps, strict=True):
            same = attrs["padding"] == "SAME"
            counts.append(-(-size // step) if same else (size - span + step) // step)
            before.append(max((counts[-1] - 1) * step + span - size, 0) // 2 if same else 0)
        return Windows(tuple(dims), tuple(extent), steps, rates, tuple(before), tuple(counts))

    def taps(self) -> Iterator[_Tap]:
        """Yield the places in a window, row by row."""
        return itertools.product(*map(range, self.extent))

    @property
    def _padded(self) -> list[int]:
        spans = [(e - 1) * rate + 1 for e, rate in zip(self.extent, self.rates, strict=True)]
        reach = [(n - 1) * step + span for n, step, span in zip(self.counts, self.steps, spans, strict=True)]
        return [max(r, size + first) for r, size, first in zip(reach, self.sizes, self.before, strict=True)]

    def padded(self, x: Any, fill: Any) -> Any:
        """Return an array padded as far as windows reach."""
        pads = [(f, p - f - n) for f, p, n in zip(self.before, self._padded, self.sizes, strict=True)]
        return tf.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)

    def _slices(self, tap: _Tap) -> tuple[slice, ...]:
        begins = [t * rate for t, rate in zip(tap, self.rates, strict=True)]
        ends = [first + (n - 1) * step + 1 for first, n, step in zip(begins, self.counts, self.steps, strict=True)]
        return tuple(map(slice, begins, ends, self.steps))

    def at(self, padded: Any, tap: _Tap) -> Any:
        """Return one tap of all windows."""
        return padded[(slice(None), *self._slices(tap))]

    def back(self, part: Any, tap: _Tap) -> Any:
        """Scatter one tap of all windows back to the padded array, with zeros between."""
        shape = tf.concat([tf.shape(part)[:1], self._padded, tf.shape(part)[-1:]], 0)
        slices = self._slices(tap)
        every = 1 | 1 << len(slices) + 1  # the first and the last dimension are whole
        return tf.raw_ops.StridedSliceGrad(
            shape=shape,
            begin=[0, *(s.start for s in slices), 0],
            end=[0, *(s.stop for s in slices), 0],
            strides=[1, *self.steps, 1],
            dy=part,
            begin_mask=every,
            end_mask=every,
        )

    def cropped(self, padded: Any) -> Any:
        """Return an array without its padding."""
        inner = [slice(first, first + size) for first, size in zip(self.before, self.sizes, strict=True)]
        return padded[(slice(None), *inner)]


def _firsts(windows: Windows, scores: Sequence[Any], best: Any) -> list[Any]:
    """Return for every tap whether it is the first with the best score of its window."""
    free, firsts = tf.ones_like(best, tf.bool), []
    for score in scores:
        firsts.append(tf.logical_and(free, score == best))
        free = tf.logical_and(free, tf.logical_not(firsts[-1]))
    return firsts


def _pool(attrs: Mapping[str, Any], x: Any, ksize: Any = None, strides: Any = None) -> tuple[Windows, list[Any]]:
    """Return the windows of max pooling over an image, and their taps."""
    ksize = attrs["ksize"] if ksize is None else known(ksize, "size").tolist()
    attrs = {**attrs, "strides": attrs["strides"] if strides is None else known(strides, "strides").tolist()}
    if ksize[-1] != 1 or ksize[0] != 1:
        raise Unfit("it pools over channels")
    windows = Windows.over(attrs, sizes(x, 1)[:-1], ksize[1:-1])
    padded = windows.padded(x, x.dtype.min)
    return windows, [windows.at(padded, tap) for tap in windows.taps()]


def _given_back(windows: Windows, parts: Sequence[Any]) -> Any:
    given = [windows.back(part, tap) for part, tap in zip(parts, windows.taps(), strict=True)]
    return windows.cropped(tf.add_n(given))


def _maximum_gradient(attrs: Mapping[str, Any], x: Any, y: Any, dy: Any, *window: Any) -> Any:
    windows, taps = _pool(attrs, x, *window)
    zero = tf.zeros([], dy.dtype)
    return _given_back(windows, [tf.where(first, dy, zero) for first in _firsts(windows, taps, y)])


def _maximum_gradient_gradient(attrs: Mapping[str, Any], x: Any, y: Any, dx: Any, *window: Any) -> Any:
    """Return, for each window, the gradient of its largest element."""
    windows, taps = _pool(attrs, x, *window)
    padded, zero = windows.padded(dx, 0), tf.zeros([], dx.dtype)
    firsts = zip(_firsts(windows, taps, y), windows.taps(), strict=True)
    return tf.add_n([tf.where(first, windows.at(padded, tap), zero) for first, tap in firsts])


def _mean_gradient(attrs: Mapping[str, Any], shape: Any, dy: Any) -> Any:
    shape = known(shape, "shape").tolist()
    windows = Windows.over(attrs, shape[1:-1], attrs["ksize"][1:-1])
    axes = zip(windows.sizes, windows.extent, windows.steps, windows.before, windows.counts, strict=True)
    seen = np.ones((), np.float32)
    for size, extent, step, before, count in axes:
        begin = np.arange(count) * step - before
        seen = seen[..., None] * (np.minimum(begin + extent, size) - np.maximum(begin, 0)).astype(np.float32)
    part = dy / seen[None, ..., None]
    return _given_back(windows, [part for _ in windows.taps()])


def _placed_gradient(attrs: Mapping[str, Any], x: Any, dy: Any, places: Any) -> Any:
    """Scatter each maximum's gradient to its place in the image, or in all images."""
    size = tf.size(x)
    flat = tf.reshape(int32(places), [tf.shape(dy)[0], -1])
    if not attrs["include_batch_in_index"]:
        flat += (tf.range(tf.shape(x)[0]) * (size // tf.shape(x)[0]))[:, None]
    return tf.reshape(tf.scatter_nd(tf.reshape(flat, [-1, 1]), tf.reshape(dy, [-1]), size[None]), tf.shape(x))


def _filter_gradient(attrs: Mapping[str, Any], x: Any, shape: Any, dy: Any) -> Any:
    *extent, into, out = known(shape, "filter's shape").tolist()
    windows = Windows.over(attrs, sizes(x, 1)[:-1], extent)
    padded, rows = windows.padded(x, 0), tf.reshape(dy, [-1, out])
    parts = [
        tf.matmul(tf.reshape(windows.at(padded, tap), [-1, into]), rows, transpose_a=True) for tap in windows.taps()
    ]
    return tf.reshape(tf.stack(parts), [*extent, into, out])


def _dilated(attrs: Mapping[str, Any], x: Any, weights: Any) -> tuple[Windows, list[Any]]:
    """Return where each tap is the first with the largest sum of image and filter."""
    windows = Windows.over(attrs, sizes(x, 1)[:-1], sizes(weights)[:-1])
    padded = windows.padded(x, x.dtype.min)
    sums = [windows.at(padded, tap) + weights[tap] for tap in windows.taps()]
    return windows, _firsts(windows, sums, tf.reduce_max(tf.stack(sums), 0))


def _dilation_gradient(attrs: Mapping[str, Any], x: Any, weights: Any, dy: Any) -> Any:
    windows, firsts = _dilated(attrs, x, weights)
    return _given_back(windows, [tf.where(first, dy, tf.zeros([], dy.dtype)) for first in firsts])


def _dilation_filter_gradient(attrs: Mapping[str, Any], x: Any, weights: Any, dy: Any) -> Any:
    _, firsts = _dilated(attrs, x, weights)
    parts = [tf.reduce_sum(tf.where(first, dy, tf.zeros([], dy.dtype)), [0, 1, 2]) for first in firsts]
    return tf.reshape(tf.stack(parts), sizes(weights))


COMPOSITIONS: dict[str, Composition] = {
    "MaxPool3DGrad": _maximum_gradient,
    "MaxPool3DGradGrad": _maximum_gradient_gradient,
    "MaxPoolGradGrad": _maximum_gradient_gradient,
    "MaxPoolGradGradV2": _maximum_gradient_gradient,
    "MaxPoolGradWithArgmax": _placed_gradient,
    "AvgPool3DGrad": _mean_gradient,
    "Conv3DBackpropFilterV2": _filter_gradient,
    "Dilation2DBackpropInput": _dilation_gradient,
    "Dilation2DBackpropFilter": _dilation_filter_gradient,
}
