"""Operators that read or write elements at computed places."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.framework.tensor_util import constant_value_as_shape

from litecl.converter.importer.stablehlo.shapes import sizes_of
from litecl.converter.importer.stablehlo.values import Rule, body_of, directions, integers, number, plain

_MOST_SLICED = 5  # dimensions of LiteRT's SLICE


def _clamped(starts: Sequence[Any], x: Any, sizes: Sequence[Any]) -> Any:
    """Return a slice's begin in x, moved so that the slice is inside. sizes: of the slice, numbers or tensors."""
    begins = []
    for axis, (start, length, size) in enumerate(zip(starts, x.shape, sizes, strict=True)):
        begin = tf.get_static_value(start)
        if length is not None and isinstance(size, int):
            limit = length - size
            clipped = tf.clip_by_value(start, 0, tf.cast(limit, start.dtype)) if begin is None else None
            begins.append(min(max(int(begin), 0), limit) if clipped is None else clipped)
        elif begin is not None and begin <= 0:
            begins.append(0)
        else:
            begins.append(tf.clip_by_value(start, 0, tf.cast(tf.shape(x)[axis] - size, start.dtype)))
    return tf.stack(begins)


def _dynamic_slice(op: Any, x: Any, *starts: Any) -> Any:
    sizes = integers(op, "slice_sizes")
    return tf.ensure_shape(tf.slice(x, _clamped(starts, x, sizes), sizes), sizes)


def _dynamic_update_slice(op: Any, x: Any, update: Any, *starts: Any) -> Any:
    return tf.ensure_shape(xla.dynamic_update_slice(x, update, _clamped(starts, x, sizes_of(update))), x.shape)


def _gather(op: Any, x: Any, indices: Any) -> Any:
    return _gathered(op, x, indices, integers(op, "slice_sizes"))


def _dynamic_gather(op: Any, x: Any, indices: Any, sizes: Any) -> Any:
    certain = constant_value_as_shape(sizes)
    return _gathered(op, x, indices, [sizes[i] if d is None else d for i, d in enumerate(certain)])


def _gathered(op: Any, x: Any, indices: Any, sizes: Sequence[Any]) -> Any:
    """Gather slices. sizes: of their dimensions, as tensors if unknown."""
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    offsets = list(numbers.offset_dims)
    batch = list(numbers.operand_batching_dims)
    told = [*batch, *numbers.start_index_map]
    rest = [i for i in range(x.shape.rank) if i not in told]
    kept = [i for i in told if i not in numbers.collapsed_slice_dims and i not in batch]
    places = _places(indices, numbers.index_vector_dim, list(numbers.start_indices_batching_dims))
    if places.shape.rank == 1 and x.shape.rank <= _MOST_SLICED:
        begin = [places[told.index(i)] if i in told else tf.zeros([], places.dtype) for i in range(x.shape.rank)]
        taken = tf.slice(x, _clamped(begin, x, sizes), tf.cast(tf.stack(sizes), places.dtype))
        return tf.squeeze(taken, list(numbers.collapsed_slice_dims)) if numbers.collapsed_slice_dims else taken
    if not all(isinstance(sizes[i], int) for i in told):
        raise NotImplementedError("takes slices of a size that is computed")
    if any(sizes[i] is not x.shape[i] and sizes[i] != x.shape[i] for i in rest):
        x = tf.slice(x, [0] * x.shape.rank, [sizes[i] if i in rest else -1 for i in range(x.shape.rank)])
    if x.dtype == tf.uint32:  # LiteRT has no GATHER_ND for it
        return tf.bitcast(_gathered(op, tf.bitcast(x, tf.int32), indices, sizes), x.dtype)
    last = tf.stack([tf.cast(size - sizes[i], places.dtype) for i, size in enumerate(sizes_of(x)) if i in told])
    last = tf.gather(last, [sorted(told).index(i) for i in told])
    places = _boxes(tf.clip_by_value(places, 0, last), [(told.index(i), sizes[i]) for i in kept])
    taken = tf.gather_nd(tf.transpose(x, [*told, *rest]), places)
    inner, rank = [*kept, *rest], taken.shape.rank
    lead = list(range(rank - len(inner)))
    taken = tf.transpose(taken, [*lead, *(len(lead) + inner.index(i) for i in sorted(inner))])
    return tf.transpose(taken, np.argsort([*(i for i in range(rank) if i not in offsets), *offsets]))


def _boxes(places: Any, extents: Sequence[tuple[int, int]]) -> Any:
    """Return the places of all elements of boxes, given the first ones: adds a dimension per extent."""
    count = places.shape[-1]
    for column, size in extents:
        steps = np.zeros((size, count), places.dtype.as_numpy_dtype)
        steps[:, column] = np.arange(size)
        places = tf.expand_dims(places, -2) + steps
    return places


def _places(indices: Any, axis: int, batch: Sequence[int]) -> Any:
    """Return indices with their vectors along the last dimension, after the batches' indices."""
    if axis == indices.shape.rank:
        indices = tf.expand_dims(indices, -1)
    if indices.dtype not in (tf.int32, tf.int64):  # no operator takes other indices
        indices = tf.cast(indices, tf.int64 if indices.dtype in (tf.uint32, tf.uint64) else tf.int32)
    order = [*(i for i in range(indices.shape.rank) if i != axis), axis]
    vectors = tf.transpose(indices, order)
    if not batch:
        return vectors
    lead = sizes_of(vectors)[:-1]
    columns = [tf.broadcast_to(_line(lead, order.index(i), vectors.dtype), lead) for i in batch]
    return tf.concat([tf.stack(columns, -1), vectors], -1)


def _line(shape: Sequence[Any], axis: int, type_: Any) -> Any:
    return tf.reshape(tf.range(tf.cast(shape[axis], type_)), [-1 if i == axis else 1 for i in range(len(shape))])


_COMBINED: Mapping[tuple[str, ...], Callable[[Any, Any], Any]] = {
    (): lambda old, new: new,
    ("add",): lambda old, new: tf.logical_or(old, new) if old.dtype == tf.bool else old + new,
    ("subtract",): lambda old, new: old - new,
    ("multiply",): lambda old, new: tf.logical_and(old, new) if old.dtype == tf.bool else old * new,
    ("maximum",): lambda old, new: tf.logical_or(old, new) if old.dtype == tf.bool else tf.maximum(old, new),
    ("minimum",): lambda old, new: tf.logical_and(old, new) if old.dtype == tf.bool else tf.minimum(old, new),
}
_SCATTERS: Mapping[tuple[str, ...], Callable[[Any, Any, Any], Any]] = {
    (): tf.tensor_scatter_nd_update,
    ("add",): tf.tensor_scatter_nd_add,
    ("subtract",): tf.tensor_scatter_nd_sub,
    ("maximum",): tf.tensor_scatter_nd_max,
    ("minimum",): tf.tensor_scatter_nd_min,
}


def _scatter(op: Any, *operands: Any) -> Any:
    """Write slices, except those that are partly outside the operand."""
    from jaxlib.mlir.dialects import stablehlo

    block, kind = op.regions[0].blocks[0], body_of(op)
    keeps = not kind and block.operations[0].operands[0] != block.arguments[1]
    if len(operands) != 3 or kind not in _COMBINED or keeps:
        raise NotImplementedError(f"writes by {', '.join(kind) or 'what was there'}")
    x, indices, updates = operands
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    batch = list(numbers.input_batching_dims)
    told = [*batch, *numbers.scattered_dims_to_operand_dims]
    rest = [i for i in range(x.shape.rank) if i not in told]
    kept = [i for i in told if i not in numbers.inserted_window_dims and i not in batch]
    windows = dict(zip(sorted([*kept, *rest]), numbers.update_window_dims, strict=True))
    if any(updates.shape[windows[i]] != x.shape[i] for i in rest):
        raise NotImplementedError("writes a part of a dimension that the indices do not cover")
    outer = [i for i in range(updates.shape.rank) if i not in windows.values()]
    values = tf.transpose(updates, [*outer, *(windows[i] for i in (*kept, *rest))])
    places = _places(indices, numbers.index_vector_dim, list(numbers.scatter_indices_batching_dims))
    extents = [(told.index(i), updates.shape[windows[i]]) for i in kept]
    order = [*told, *rest]
    written = _written(tf.transpose(x, order), places, values, extents, kind)
    return tf.transpose(written, np.argsort(order))


def _written(x: Any, places: Any, values: Any, extents: Sequence[tuple[int, int]], kind: tuple[str, ...]) -> Any:
    """Write boxes; ``places`` are their first elements (see ``_boxes``)."""
    depth = places.shape[-1]
    lengths = [dict(extents).get(i, 1) for i in range(depth)]
    sizes = tf.shape(x, places.dtype) if None in x.shape[:depth] else tf.constant(list(x.shape[:depth]), places.dtype)
    inside = tf.reduce_all((places >= 0) & (places <= sizes[:depth] - lengths), -1)
    count = places.shape[:-1].num_elements()
    if count == 1 or kind not in _SCATTERS or (x.dtype == tf.bool and kind):
        return _one_by_one(x, places, values, lengths, inside, _COMBINED[kind])
    certain = tf.get_static_value(inside)
    if certain is not None and certain.all():
        return _SCATTERS[kind](x, _boxes(places, extents), values)
    # Writes outside go to an extra row, which is cut off.
    outside = tf.concat([sizes[:1], tf.zeros([depth - 1], places.dtype)], 0)
    for _ in range(len(extents) + 1):
        inside = tf.expand_dims(inside, -1)
    places = tf.where(inside, _boxes(places, extents), outside)
    longer = tf.concat([x, tf.zeros([1, *sizes_of(x)[1:]], x.dtype)], 0)
    return tf.ensure_shape(_SCATTERS[kind](longer, places, values)[:-1], x.shape)


def _one_by_one(
    x: Any, places: Any, values: Any, lengths: list[int], inside: Any, combined: Callable[[Any, Any], Any]
) -> Any:
    """Write boxes one by one, since several may write to one place."""
    count, depth = places.shape[:-1].num_elements(), places.shape[-1]
    if count is None or not x.shape.is_fully_defined():
        raise NotImplementedError("writes in an unknown number of places: give every dimension a size")
    size = [*lengths, *x.shape[depth:]]
    last = tf.constant([d - n for d, n in zip(x.shape, size, strict=True)], places.dtype)
    begins = tf.pad(tf.reshape(places, [count, depth]), [[0, 0], [0, len(size) - depth]])
    begins = tf.clip_by_value(begins, tf.zeros([], places.dtype), last)
    values, inside = tf.reshape(values, [count, *size]), tf.reshape(inside, [count])

    def write(i: Any, x: Any) -> Any:
        old = tf.slice(x, begins[i], size)
        new = tf.where(inside[i], combined(old, values[i]), old)
        return i + 1, tf.ensure_shape(xla.dynamic_update_slice(x, new, begins[i]), x.shape)

    if count <= 1:
        return write(0, x)[1] if count else x
    return tf.while_loop(lambda i, _: i < count, write, (0, x))[1]


def _sort(op: Any, *operands: Any) -> Any:
    strict = [direction for direction in directions(op) if direction in ("LT", "GT")]
    if len(strict) != 1:
        raise NotImplementedError("does not sort by the first operand")
    (direction,) = strict
    axis = number(op, "dimension", -1) % operands[0].shape.rank
    order = tf.argsort(operands[0], axis, "DESCENDING" if direction == "GT" else "ASCENDING", stable=True)
    return [
        tf.gather(x, order, axis=axis, batch_dims=axis) if x.shape.rank == axis + 1 else _along(x, order, axis)
        for x in operands
    ]


def _along(x: Any, order: Any, axis: int) -> Any:
    last = [i for i in range(x.shape.rank) if i != axis] + [axis]
    taken = tf.gather(tf.transpose(x, last), tf.transpose(order, last), batch_dims=x.shape.rank - 1)
    return tf.transpose(taken, np.argsort(last))


RULES: Mapping[str, Rule] = {
    "dynamic_gather": plain(_dynamic_gather),
    "dynamic_slice": plain(_dynamic_slice),
    "dynamic_update_slice": plain(_dynamic_update_slice),
    "gather": plain(_gather),
    "real_dynamic_slice": plain(lambda op, x, begin, end, strides: tf.strided_slice(x, begin, end, strides)),
    "scatter": plain(_scatter),
    "sort": plain(_sort),
}
