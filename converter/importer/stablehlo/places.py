"""Operators that take or put elements at computed places."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

from litecl.converter.importer.stablehlo.values import Rule, body_of, directions, integers, number, plain


def _clamped(starts: Sequence[Any], limits: Sequence[int]) -> Any:
    """Return where a slice begins, moved so that it lies within."""
    known = [tf.get_static_value(start) for start in starts]
    return tf.stack(
        [
            tf.clip_by_value(start, 0, tf.cast(limit, start.dtype))
            if number is None
            else min(max(int(number), 0), limit)
            for start, number, limit in zip(starts, known, limits, strict=True)
        ]
    )


def _dynamic_slice(op: Any, x: Any, *starts: Any) -> Any:
    sizes = integers(op, "slice_sizes")
    begin = _clamped(starts, [d - n for d, n in zip(x.shape, sizes, strict=True)])
    return tf.ensure_shape(tf.slice(x, begin, sizes), sizes)


def _dynamic_update_slice(op: Any, x: Any, update: Any, *starts: Any) -> Any:
    begin = _clamped(starts, [d - n for d, n in zip(x.shape, update.shape, strict=True)])
    return tf.ensure_shape(xla.dynamic_update_slice(x, update, begin), x.shape)


def _gather(op: Any, x: Any, indices: Any) -> Any:
    """Return slices: whole along dimensions of which indices say nothing."""
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes, offsets = integers(op, "slice_sizes"), list(numbers.offset_dims)
    batch = list(numbers.operand_batching_dims)
    told = [*batch, *numbers.start_index_map]
    rest = [i for i in range(x.shape.rank) if i not in told]
    kept = [i for i in told if i not in numbers.collapsed_slice_dims and i not in batch]
    if any(sizes[i] != x.shape[i] for i in rest):
        raise NotImplementedError("takes a part of a dimension that the indices do not cover")
    places = _places(indices, numbers.index_vector_dim, list(numbers.start_indices_batching_dims))
    places = tf.clip_by_value(places, 0, tf.constant([x.shape[i] - sizes[i] for i in told], places.dtype))
    places = _boxes(places, [(told.index(i), sizes[i]) for i in kept])
    taken = tf.gather_nd(tf.transpose(x, [*told, *rest]), places)
    inner, rank = [*kept, *rest], taken.shape.rank
    lead = list(range(rank - len(inner)))
    taken = tf.transpose(taken, [*lead, *(len(lead) + inner.index(i) for i in sorted(inner))])
    return tf.transpose(taken, np.argsort([*(i for i in range(rank) if i not in offsets), *offsets]))


def _boxes(places: Any, extents: Sequence[tuple[int, int]]) -> Any:
    """Return the places of all elements of boxes, given the first: one more dimension for each extent of the box."""
    count = places.shape[-1]
    for column, size in extents:
        steps = np.zeros((size, count), places.dtype.as_numpy_dtype)
        steps[:, column] = np.arange(size)
        places = tf.expand_dims(places, -2) + steps
    return places


def _places(indices: Any, axis: int, batch: Sequence[int]) -> Any:
    """Return indices with their vectors along the last dimension, in front of them those of batches."""
    if axis == indices.shape.rank:
        indices = tf.expand_dims(indices, -1)
    order = [*(i for i in range(indices.shape.rank) if i != axis), axis]
    vectors = tf.transpose(indices, order)
    if not batch:
        return vectors
    lead = list(vectors.shape[:-1])
    columns = [np.broadcast_to(_line(lead, order.index(i)), lead) for i in batch]
    return tf.concat([tf.constant(np.stack(columns, -1), vectors.dtype), vectors], -1)


def _line(shape: Sequence[int], axis: int) -> Any:
    return np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])


_SCATTERS = {
    (): tf.tensor_scatter_nd_update,
    ("add",): tf.tensor_scatter_nd_add,
    ("subtract",): tf.tensor_scatter_nd_sub,
}


def _scatter(op: Any, *operands: Any) -> Any:
    from jaxlib.mlir.dialects import stablehlo

    block = op.regions[0].blocks[0]
    keeps = not body_of(op) and block.operations[0].operands[0] != block.arguments[1]
    if len(operands) != 3 or body_of(op) not in _SCATTERS or keeps:
        raise NotImplementedError(f"writes by {', '.join(body_of(op))}")
    x, indices, updates = operands
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    batch = list(numbers.input_batching_dims)
    told = [*batch, *numbers.scattered_dims_to_operand_dims]
    rest = [i for i in range(x.shape.rank) if i not in told]
    kept = [i for i in told if i not in numbers.inserted_window_dims and i not in batch]
    windows = dict(zip(sorted([*kept, *rest]), numbers.update_window_dims, strict=True))
    if any(updates.shape[windows[i]] != x.shape[i] for i in rest):
        raise NotImplementedError("writes a part of a dimension that the indices do not cover")
    places = _places(indices, numbers.index_vector_dim, list(numbers.scatter_indices_batching_dims))
    places = _boxes(places, [(told.index(i), updates.shape[windows[i]]) for i in kept])
    outer = [i for i in range(updates.shape.rank) if i not in windows.values()]
    values = tf.transpose(updates, [*outer, *(windows[i] for i in (*kept, *rest))])
    order = [*told, *rest]
    return tf.transpose(_SCATTERS[body_of(op)](tf.transpose(x, order), places, values), np.argsort(order))


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
    "dynamic_slice": plain(_dynamic_slice),
    "dynamic_update_slice": plain(_dynamic_update_slice),
    "gather": plain(_gather),
    "scatter": plain(_scatter),
    "sort": plain(_sort),
}
