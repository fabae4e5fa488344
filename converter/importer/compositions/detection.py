"""Non-maximum suppression over all classes."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, dims, known, sizes


def _combined_suppression(
    attrs: Mapping[str, Any],
    boxes: Any,
    scores: Any,
    per_class: Any,
    total: Any,
    overlap: Any,
    threshold: Any,
) -> Any:
    """Suppress in every class of every image, boxes [B,N,1 or C,4], and return the best over all classes."""
    most, wanted = int(known(per_class, "max_output_size_per_class")), int(known(total, "max_total_size"))
    classes, kinds = sizes(scores, 2)[0], sizes(boxes, 2)[0]
    batch, count, _ = dims(scores)
    of_kind = tf.reshape(tf.transpose(boxes, [0, 2, 1, 3]), [-1, count, 4])
    of_class = tf.reshape(tf.transpose(scores, [0, 2, 1]), [-1, count])
    lowest = tf.float32.min

    def suppress(index: Any) -> Any:
        kind = index if kinds > 1 else index // classes
        boxes, scores = tf.gather(of_kind, kind), tf.gather(of_class, index)
        chosen, valid = tf.raw_ops.NonMaxSuppressionV4(
            boxes=boxes,
            scores=scores,
            max_output_size=most,
            iou_threshold=overlap,
            score_threshold=threshold,
            pad_to_max_output_size=True,
        )
        chosen = tf.ensure_shape(chosen, [most])
        return tf.gather(boxes, chosen), tf.where(tf.range(most) < valid, tf.gather(scores, chosen), lowest)

    specs = (tf.TensorSpec((most, 4)), tf.TensorSpec((most,)))
    places, values = tf.map_fn(suppress, tf.range(batch * classes), fn_output_signature=specs)
    places, values = tf.reshape(places, [-1, classes * most, 4]), tf.reshape(values, [-1, classes * most])
    size = min(wanted, classes * most)
    best, order = tf.math.top_k(values, size)
    counts = best > lowest
    result = tf.where(counts[..., None], tf.gather(places, order, batch_dims=1), 0.0)
    if attrs["clip_boxes"]:
        result = tf.clip_by_value(result, 0.0, 1.0)
    labels = tf.where(counts, tf.cast(order // most, tf.float32), 0.0)
    missing = 0 if attrs["pad_per_class"] else wanted - size
    padded = [_padded(value, missing) for value in (result, tf.where(counts, best, 0.0), labels)]
    return *padded, tf.reduce_sum(tf.cast(counts, tf.int32), 1)


def _padded(x: Any, missing: int) -> Any:
    return tf.pad(x, [[0, 0], [0, missing], [0, 0]][: x.shape.rank]) if missing else x


COMPOSITIONS: dict[str, Composition] = {"CombinedNonMaxSuppression": _combined_suppression}
