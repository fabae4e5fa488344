"""Pooling of images [N,H,W,C] with positions, and projective transforms."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, dims, int32
from litecl.converter.importer.types import tf_type


def _max_with_places(attrs: Mapping[str, Any], x: Any) -> Any:
    """Return the maxima of windows, and their element indices in the image, or in all images."""
    (_, high, wide, _), (_, down, right, _) = attrs["ksize"], attrs["strides"]
    batch, height, width, channels = dims(x)
    rows, before_y, padding_y = _fit(attrs["padding"], height, high, down)
    columns, before_x, padding_x = _fit(attrs["padding"], width, wide, right)
    padded = tf.pad(x, [[0, 0], padding_y, padding_x, [0, 0]], constant_values=x.dtype.min)
    taps = [
        padded[:, v : v + (rows - 1) * down + 1 : down, u : u + (columns - 1) * right + 1 : right]
        for v in range(high)
        for u in range(wide)
    ]
    windows = tf.stack(taps, -1)
    tap = tf.argmax(windows, -1, tf.int32)
    y = tap // wide + (tf.range(rows) * down - before_y)[:, None, None]
    places = (y * width + tap % wide + (tf.range(columns) * right - before_x)[:, None]) * channels
    places += tf.range(channels)
    if attrs["include_batch_in_index"]:
        places += (tf.range(batch) * (height * width * channels))[:, None, None, None]
    return tf.reduce_max(windows, -1), tf.cast(places, tf_type(attrs["Targmax"]))


def _fit(padding: str, size: Any, window: int, stride: int) -> tuple[Any, Any, Any]:
    """Return the number of windows along an axis, the padding before, and the padding on both sides."""
    if padding == "VALID":
        return (size - window + stride) // stride, 0, [0, 0]
    count = (size + stride - 1) // stride
    total = (count - 1) * stride + window - size
    total = max(total, 0) if isinstance(total, int) else tf.maximum(total, 0)
    return count, total // 2, [total // 2, total - total // 2]


def _warped(attrs: Mapping[str, Any], images: Any, transforms: Any, size: Any, fill: Any = 0.0) -> Any:
    """Return projectively transformed images, by each pixel's source row and column."""
    batch, height, width, channels = dims(images)
    y = tf.cast(tf.range(size[0]), tf.float32)[:, None]
    x = tf.cast(tf.range(size[1]), tf.float32)[None]
    transforms = tf.broadcast_to(transforms, tf.stack([batch, 8]))
    a = [transforms[:, i][:, None, None] for i in range(8)]
    depth = a[6] * x + a[7] * y + 1
    is_seen = depth != 0
    depth = tf.where(is_seen, depth, 1.0)
    across = _mapped(attrs, (a[0] * x + a[1] * y + a[2]) / depth, width)
    down = _mapped(attrs, (a[3] * x + a[4] * y + a[5]) / depth, height)
    flat = tf.reshape(tf.cast(images, tf.float32), [batch, height * width, channels])

    def read(row: Any, column: Any) -> Any:
        inside = (row >= 0) & (row < _float(height)) & (column >= 0) & (column < _float(width)) & is_seen
        index = int32(row) * width + int32(column)
        pixels = tf.gather(flat, tf.where(inside, index, 0), axis=1, batch_dims=1)
        return tf.where(inside[..., None], pixels, fill)

    if attrs["interpolation"] == "NEAREST":
        result = read(_rounded(down), _rounded(across))
    else:
        top, left = tf.floor(down), tf.floor(across)
        v, u = (down - top)[..., None], (across - left)[..., None]
        above = (1 - u) * read(top, left) + u * read(top, left + 1)
        below = (1 - u) * read(top + 1, left) + u * read(top + 1, left + 1)
        result = tf.where(is_seen[..., None], (1 - v) * above + v * below, fill)
    return tf.cast(result, images.dtype)


def _mapped(attrs: Mapping[str, Any], position: Any, size: Any) -> Any:
    """Map a place outside an image of ``size`` pixels into it, by the fill mode."""
    mode, count = attrs.get("fill_mode", "CONSTANT"), _float(size)
    if mode == "CONSTANT":
        return position
    if mode == "REFLECT":  # [abcd] to [dcba|abcd|dcba]
        before = position + 2 * count * tf.floor(-position / (2 * count))
        before = tf.where(before < -count, before + 2 * count, -before - 1)
        after = position - 2 * count * tf.floor(position / (2 * count))
        after = tf.where(after >= count, 2 * count - after - 1, after)
        position = tf.where(position < 0, before, tf.where(position > count - 1, after, position))
    if mode == "WRAP":
        before = position + count * (tf.floor(-position / tf.maximum(count - 1, 1)) + 1)
        after = position - count * tf.floor(position / tf.maximum(count - 1, 1))
        position = tf.where(position < 0, before, tf.where(position > count - 1, after, position))
    return tf.clip_by_value(position, 0.0, count - 1)


def _float(size: Any) -> Any:
    return tf.cast(size, tf.float32)


def _rounded(x: Any) -> Any:
    """Round to the nearest integer, ties away from 0."""
    return tf.sign(x) * tf.floor(tf.abs(x) + 0.5)


COMPOSITIONS: dict[str, Composition] = {
    "MaxPoolWithArgmax": _max_with_places,
    "ImageProjectiveTransformV2": _warped,
    "ImageProjectiveTransformV3": _warped,
}
