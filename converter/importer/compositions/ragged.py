"""Ragged tensors: concatenated values, and where their rows begin."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, dims, int32, rows_of, splits_of
from litecl.converter.importer.types import tf_type


def _to_tensor(attrs: Mapping[str, Any], shape: Any, values: Any, default: Any, *partitions: Any) -> Any:
    """Place values in a dense tensor filled with the default."""
    first, rowids = _partitioned(attrs["row_partition_types"], [int32(p) for p in partitions], values)
    sizes: list[Any] = [first]
    places: Any = None
    for rows, count in zip(rowids, [first, *(tf.shape(r)[0] for r in rowids[:-1])], strict=True):
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, count)
        column = tf.range(tf.shape(rows)[0]) - tf.gather(splits_of(lengths), rows)
        parents = [rows] if places is None else [tf.gather(part, rows) for part in places]
        places = [*parents, column]
        sizes.append(tf.maximum(tf.reduce_max(lengths), 0))
    sizes = _wanted(shape, sizes)
    total = tf.reduce_prod(tf.stack(sizes))
    inside, index = tf.fill(tf.shape(places[0]), True), tf.zeros_like(places[0])
    for part, size in zip(places, sizes, strict=True):
        inside, index = tf.logical_and(inside, part < size), index * size + part
    index = tf.where(inside, index, total)[:, None]
    numbers = tf.scatter_nd(index, tf.range(1, tf.shape(index)[0] + 1), [total + 1])[:-1]
    numbers = tf.where(numbers > tf.shape(index)[0], 0, numbers)
    inner = tf.shape(values)[1:]
    blank = tf.broadcast_to(default, tf.concat([[1], inner], 0))
    dense = tf.gather(tf.concat([blank, values], 0), numbers)
    return tf.reshape(dense, tf.concat([tf.stack(sizes), inner], 0))


def _partitioned(types: Sequence[str], partitions: Sequence[Any], values: Any) -> tuple[Any, list[Any]]:
    """Return the outermost number of rows, and for every partition the row of each element."""
    if types[0] == "FIRST_DIM_SIZE":
        first, rest = partitions[0], partitions[1:]
    elif types[0] == "ROW_SPLITS":
        first, rest = tf.shape(partitions[0])[0] - 1, partitions
    else:
        raise Unfit(f"it partitions rows by {types[0]}")
    kinds = [kind for kind in types if kind != "FIRST_DIM_SIZE"]
    if any(kind not in ("ROW_SPLITS", "VALUE_ROWIDS") for kind in kinds):
        raise Unfit(f"it partitions rows by {', '.join(kinds)}")
    rows = []
    for position, (kind, part) in enumerate(zip(kinds, rest, strict=True)):
        if kind == "VALUE_ROWIDS":
            rows.append(part)
            continue
        is_last = position == len(kinds) - 1
        rows.append(rows_of(part, tf.shape(values)[0] if is_last else part[-1]))
    return first, rows


def _wanted(shape: Any, sizes: list[Any]) -> list[Any]:
    """Return the sizes that an operand asks for, else the actual ones; it may be longer, or contain -1."""
    if shape.shape.rank == 0:
        return sizes
    asked = tf.unstack(int32(shape))[: len(sizes)]
    return [tf.where(a < 0, size, a) for a, size in zip(asked, sizes, strict=True)]


def _range(attrs: Mapping[str, Any], starts: Any, limits: Any, deltas: Any) -> Any:
    """Return the numbers of several ranges, concatenated, and where each begins."""
    given = [x if x.shape.rank == 1 else tf.reshape(x, [1]) for x in (starts, limits, deltas)]
    rows = tf.zeros_like(given[0]) + tf.zeros_like(given[1]) + tf.zeros_like(given[2])
    starts, limits, deltas = (x + rows for x in given)
    counts = tf.math.ceil(tf.cast(limits - starts, tf.float32) / tf.cast(deltas, tf.float32))
    if starts.dtype.is_integer:
        toward = tf.where(deltas > 0, tf.ones_like(deltas), -tf.ones_like(deltas))
        counts = (limits - starts + deltas - toward) // deltas
    lengths = tf.maximum(int32(counts), 0)
    splits = splits_of(lengths)
    total = splits[-1]
    of_row = rows_of(splits, total)
    step = tf.cast(tf.range(total) - tf.gather(splits, of_row), starts.dtype)
    values = tf.gather(starts, of_row) + step * tf.gather(deltas, of_row)
    return tf.cast(splits, tf_type(attrs["Tsplits"])), values


def _gather(attrs: Mapping[str, Any], *operands: Any) -> Any:
    """Return the selected rows: where each begins, level by level, and the innermost values."""
    *splits, values, indices = operands
    if indices.shape.rank != 1:
        raise Unfit("its indices are no vector; gather by a flat one")
    chosen, starts = int32(indices), []
    for level in splits:
        level32 = int32(level)
        begins = tf.gather(level32, chosen)
        lengths = tf.gather(level32, chosen + 1) - begins
        new = splits_of(lengths)
        of_row = rows_of(new, new[-1])
        chosen = tf.range(new[-1]) + tf.gather(begins - new[:-1], of_row)
        starts.append(tf.cast(new, level.dtype))
    return *starts, tf.gather(values, chosen)


def _to_sparse(attrs: Mapping[str, Any], *operands: Any) -> Any:
    *levels, values = operands
    if len(levels) != 1 or values.shape.rank != 1:
        raise Unfit("it has more than two dimensions")
    splits = int32(levels[0])
    rows = rows_of(splits, dims(values)[0])
    columns = tf.range(tf.shape(values)[0]) - tf.gather(splits, rows)
    lengths = splits[1:] - splits[:-1]
    shape = tf.stack([tf.shape(lengths)[0], tf.maximum(tf.reduce_max(lengths), 0)])
    return tf.cast(tf.stack([rows, columns], 1), tf.int64), values, tf.cast(shape, tf.int64)


COMPOSITIONS: dict[str, Composition] = {
    "RaggedTensorToTensor": _to_tensor,
    "RaggedRange": _range,
    "RaggedGather": _gather,
    "RaggedTensorToSparse": _to_sparse,
}
