"""Gradients of CropAndResize with respect to the images and the boxes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, dims, int32, known


@dataclass(frozen=True)
class _Along:
    """Where the pixels of crops are along one dimension: between ``low`` and ``high``, both [boxes, pixels].

    share: distance from ``low``. inside: whether in the image. of_edges: how far a pixel moves with each edge of its
    box.
    """

    low: Any
    high: Any
    share: Any
    inside: Any
    of_edges: tuple[Any, Any]

    @staticmethod
    def of(first: Any, second: Any, size: Any, count: int) -> "_Along":
        """Return the places of ``count`` pixels of boxes from ``first`` to ``second`` in an image of this size."""
        last = tf.cast(size - 1, tf.float32)
        step = tf.range(count, dtype=tf.float32) / (count - 1) if count > 1 else tf.constant([0.5])
        weights = ((1 - step) * last, step * last)
        # Round like TensorFlow: if a pixel falls exactly on one of the image's, the slope depends on the last bit.
        if count > 1:
            scale = (second - first) * last / (count - 1)
            position = first[:, None] * last + tf.range(count, dtype=tf.float32) * scale[:, None]
        else:
            position = 0.5 * (first + second)[:, None] * last
        inside = tf.logical_and(position >= 0, position <= last)
        position = tf.where(inside, position, 0.0)
        low = tf.floor(position)
        return _Along(int32(low), int32(tf.math.ceil(position)), position - low, inside, weights)


def _places(boxes: Any, height: Any, width: Any, rows: int, columns: int) -> tuple[_Along, _Along]:
    y1, x1, y2, x2 = tf.unstack(boxes, axis=1)
    return _Along.of(y1, y2, height, rows), _Along.of(x1, x2, width, columns)


def _numbers(box_of: Any, y: Any, x: Any, height: Any, width: Any) -> Any:
    """Return the indices of pixels [boxes, rows, columns] among the pixels of all images."""
    return (box_of[:, None, None] * height + y[:, :, None]) * width + x[:, None, :]


def _by_image(attrs: Mapping[str, Any], dy: Any, boxes: Any, box_of: Any, size: Any) -> Any:
    if attrs["method"] != "bilinear":
        raise Unfit(f"it resizes by {attrs['method']}; use bilinear")
    batch, height, width, depth = (int(n) for n in known(size, "image size"))
    _, rows, columns, _ = dims(dy)
    down, across = _places(boxes, height, width, int(rows), int(columns))
    inside = tf.logical_and(down.inside[:, :, None], across.inside[:, None, :])
    total = tf.zeros([batch * height * width, depth])
    for y, share_y in ((down.low, 1 - down.share), (down.high, down.share)):
        for x, share_x in ((across.low, 1 - across.share), (across.high, across.share)):
            share = tf.where(inside, share_y[:, :, None] * share_x[:, None, :], 0.0)
            places = tf.reshape(_numbers(int32(box_of), y, x, height, width), [-1])
            parts = tf.reshape(dy * share[..., None], [-1, depth])
            total += tf.math.unsorted_segment_sum(parts, places, batch * height * width)
    return tf.reshape(total, [batch, height, width, depth])


def _by_boxes(attrs: Mapping[str, Any], dy: Any, image: Any, boxes: Any, box_of: Any) -> Any:
    _, height, width, depth = dims(image)
    _, rows, columns, _ = dims(dy)
    down, across = _places(boxes, height, width, int(rows), int(columns))
    flat = tf.reshape(tf.cast(image, tf.float32), [-1, depth])

    def read(y: Any, x: Any) -> Any:
        return tf.gather(flat, _numbers(int32(box_of), y, x, height, width))

    (tl, tr), (bl, br) = (tuple(read(y, x) for x in (across.low, across.high)) for y in (down.low, down.high))
    share_y, share_x = down.share[:, :, None, None], across.share[:, None, :, None]
    inside = tf.logical_and(down.inside[:, :, None], across.inside[:, None, :])[..., None]
    part = tf.where(inside, dy, 0.0)
    by_y = tf.reduce_sum(part * ((1 - share_x) * (bl - tl) + share_x * (br - tr)), [2, 3])
    by_x = tf.reduce_sum(part * ((1 - share_y) * (tr - tl) + share_y * (br - bl)), [1, 3])
    edges = [tf.reduce_sum(g * along.of_edges[k], 1) for k in (0, 1) for g, along in ((by_y, down), (by_x, across))]
    return tf.stack(edges, 1)


COMPOSITIONS: dict[str, Composition] = {
    "CropAndResizeGradImage": _by_image,
    "CropAndResizeGradBoxes": _by_boxes,
}
