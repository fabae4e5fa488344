"""TensorFlow functions that move elements by numbers computed as the model runs, or in unusual ranks."""

from typing import Any

import tensorflow as tf

from support.tf_functions import TfFunction

raw = tf.raw_ops
_OPEN = ((None, 6),)
_STATIC = ((3, 6),)


def _number(x: Any) -> Any:
    return tf.cast(tf.abs(x[0, 0]) * 0.0, tf.int32)


def _resized(rows: int) -> Any:
    def resize(x: Any) -> Any:
        made = raw.TensorListFromTensor(tensor=x, element_shape=[6])
        made = raw.TensorListResize(input_handle=made, size=_number(x) + rows)
        return raw.TensorListLength(input_handle=made), raw.TensorListStack(
            input_handle=made, element_shape=[6], element_dtype=tf.float32
        )

    return resize


def _rolled(x: Any) -> Any:
    some, none = tf.stack([_number(x) + 2, _number(x) - 7]), tf.cast(_number(x), tf.int64)
    return tf.roll(x, some, [0, 1]), tf.roll(x, some, [1, 1]), tf.roll(x, none, 0), tf.roll(x > 0, some[1], 1)


def _rolled_along(x: Any) -> Any:
    """Along computed axes, of which some name a dimension twice."""
    first, both = _number(x), tf.stack([_number(x) - 2, _number(x)])
    return tf.roll(x, 4, first + 1), tf.roll(x, [2, -7], both), tf.roll(x > 0, both + 5, [first - 1, first + 1])


def _reduced(x: Any) -> Any:
    shapes = tf.stack([_number(x) + 4, 1]), tf.stack([_number(x) + 4, _number(x) + 1]), tf.stack([1, 1])
    made = [raw.BroadcastGradientArgs(s0=shapes[0], s1=other) for other in shapes]
    return [*made, raw.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(x))]


def _blocks(x: Any) -> Any:
    rank_5 = tf.reshape(x, [1, 3, 2, 1, 3])
    spread = tf.space_to_batch(rank_5, [2, 2], [[1, 0], [0, 2]])
    rank_2 = tf.space_to_batch(x[:, :5], [2], [[1, 0]])
    return spread, tf.batch_to_space(spread, [2, 2], [[1, 0], [0, 1]]), rank_2, tf.batch_to_space(rank_2, [2], [[0, 1]])


def _rows(x: Any) -> Any:
    """One row, that of the beginning although the masks say that there is none."""
    masks = {"begin_mask": 1, "end_mask": 1, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 1}
    begin = tf.reshape(_number(x) + 2, [1])
    computed = raw.StridedSlice(input=x, begin=begin, end=[0], strides=[1], **masks)
    known = raw.StridedSlice(input=x, begin=[1, 0], end=[0, 5], strides=[1, 2], **masks)
    return (
        computed,
        known,
        raw.StridedSlice(input=x, begin=[2, 0], end=[0, 0], strides=[1, 1], **masks | {"new_axis_mask": 2}),
    )


def _expanded(x: Any) -> Any:
    """Computed indices next to ... and new axes: those of what an ellipsis covers and of new axes do not count."""
    cube = tf.reshape(x, [-1, 3, 2])
    rows = (0, 1, -1), (9, 0, 0), (1, 4, -1)
    begin, end, strides = (tf.stack([_number(x) + n for n in numbers]) for numbers in rows)
    whole = {"input": cube, "begin": begin, "end": end, "strides": strides}
    one = whole | {"strides": strides * 0 + 1}
    short = {"input": cube, "begin": begin[:2], "end": end[:2], "strides": one["strides"][:2]}
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    return (
        raw.StridedSlice(**whole, **masks | {"ellipsis_mask": 2, "new_axis_mask": 1}),
        raw.StridedSlice(**whole, **masks | {"ellipsis_mask": 2, "new_axis_mask": 5}),
        raw.StridedSlice(**one, **masks | {"ellipsis_mask": 2, "new_axis_mask": 1, "shrink_axis_mask": 4}),
        raw.StridedSlice(**whole, **masks | {"ellipsis_mask": 2, "end_mask": 4}),
        raw.StridedSlice(**short, **masks | {"new_axis_mask": 2}),
        raw.StridedSlice(**short, **masks | {"new_axis_mask": 1, "shrink_axis_mask": 2}),
    )


PLACES = (
    TfFunction("computed indices with new axes", _expanded, _OPEN),
    TfFunction("rows with masks", _rows, _OPEN),
    *(TfFunction(f"list resized to {rows} rows", _resized(rows), _STATIC) for rows in (2, 5)),
    TfFunction("roll by computed shifts", _rolled, _OPEN),
    TfFunction("roll along computed axes", _rolled_along, _OPEN),
    TfFunction("axes of gradients of broadcasts", _reduced, _OPEN),
    TfFunction("blocks of other ranks", _blocks, _STATIC),
    TfFunction("mirror along an open batch", lambda x: tf.pad(x, [[2, 1], [5, 0]], "REFLECT"), _OPEN),
    TfFunction("one hot of bytes", lambda x: tf.one_hot(tf.cast(tf.abs(x) * 2, tf.uint8), 4), _OPEN),
    TfFunction("stack of one", lambda x: [tf.stack([x], axis) for axis in (0, 1, -1)], _OPEN),
    TfFunction("invert of int64", lambda x: tf.bitwise.invert(tf.cast(x * 100, tf.int64)), _OPEN),
)
