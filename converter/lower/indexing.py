"""Scatters, segments and other operators that place or count elements by computed indices."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression, formula
from litecl.interpreter.op import Op
from litecl.interpreter.ops import compare, reduce, segment
from litecl.interpreter.ops.bucketize import BUCKETIZE, BucketizeOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.one_hot import ONE_HOT, OneHotOptions
from litecl.interpreter.ops.scatter_nd import SCATTER_ND
from litecl.interpreter.ops.select import WHERE
from litecl.interpreter.ops.sparse_to_dense import SPARSE_TO_DENSE
from litecl.interpreter.ops.unique import UNIQUE, UniqueOptions
from litecl.interpreter.schema import TensorType

_INT32 = TensorType.INT32


def _expressions(b: Builder) -> list[Expression]:
    return [Expression(b, b.node.input(i)) for i in range(len(b.node.inputs))]


def _index(x: Expression) -> Expression:
    return x.cast(_INT32)


def _scattered(indices: Expression, updates: Expression, like: Expression) -> Expression:
    """Scatter the updates into zeros, summing those at the same place."""
    operands = [_index(indices).value, updates.value, like.shape().value]
    return Expression(like.b, like.b.op(SCATTER_ND, operands, type=updates.type, shape=like.value.shape))


def _scatter_update(x: Expression, indices: Expression, updates: Expression) -> Expression:
    """Overwrite with the updates; the last of several at one place wins."""
    data = indices.value.data
    if data is not None and len(np.unique(rows := data.reshape(-1, data.shape[-1]), axis=0)) == len(rows):
        written = _scattered(indices, updates.filled(1), x)
        return written.binary(compare.NOT_EQUAL, 0, TensorType.BOOL).select(_scattered(indices, updates, x), x)
    return _last_of_each(x, _index(indices), updates)


def _last_of_each(x: Expression, indices: Expression, updates: Expression) -> Expression:
    """Find each row's last update, by the largest update number, and use it if there is one."""
    b, shape = x.b, x.b.shape(x.value)
    depth = b.shape(indices.value)[-1]
    outer, rest = shape[: depth or 0], [d or 0 for d in shape[depth or 0 :]]
    if depth is None or None in shape[1 if depth == 1 else 0 :]:
        raise b.error("the shape of its operands must be known, as its indices are computed; give input_shapes")
    rows = None if None in outer else int(np.prod([d or 0 for d in outer]))
    limit = b.size(x.value, 0) if rows is None else b.const(rows, np.int32)
    target = [-1 if rows is None else rows]
    strides = np.cumprod([1, *(d or 0 for d in outer[:0:-1])])[::-1]
    places = (indices * indices.constant(strides)).sum([-1]) if depth > 1 else indices
    places = places.reshape([-1], (None,))
    numbers = places.shape().counted()
    operands = [numbers.value, places.value, limit]
    last = Expression(b, b.op(segment.UNSORTED_SEGMENT_MAX, operands, type=_INT32, shape=(rows,)))
    flat = updates.reshape([-1, *rest], (None, *rest))
    taken = [flat.value, last.maximum(0).value]
    latest = Expression(b, b.op(GATHER, taken, GatherOptions(), type=x.type, shape=(rows, *rest)))
    is_written = (last.constant(0)).at_most(last).reshape([*target, *[1] * len(rest)], (rows, *[1] * len(rest)))
    result = is_written.select(latest, x.reshape([*target, *rest], (rows, *rest)))
    return result if depth == 1 else result.reshape([d or 0 for d in shape], shape)


def _as_computed(compute: Callable[..., Expression]) -> Lowering:
    """Return a lowering that computes booleans and narrow integers as int32, as SCATTER_ND needs."""

    def lower(b: Builder) -> Value:
        x, indices, updates = _expressions(b)
        if x.type in (TensorType.FLOAT32, _INT32, TensorType.INT64):
            return compute(x, indices, updates).value
        return compute(x.cast(_INT32), indices, updates.cast(_INT32)).cast(x.type).value

    return lower


def _invert_permutation(x: Expression) -> Expression:
    return _scattered(x.expand(1), x.shape().counted(x.b.shape(x.value)).cast(x.type), x)


def _dynamic_stitch(b: Builder) -> Value:
    """Place rows by their indices; later ones win."""
    count = len(b.node.inputs) // 2
    indices = [b.known(i, "indices") for i in range(count)]
    parts = [Expression(b, b.node.input(count + i)) for i in range(count)]
    rest = tuple(b.shape(parts[0].value)[indices[0].ndim :])
    flat = [
        part.reshape([-1, *(d or 0 for d in rest)], (index.size, *rest))
        for index, part in zip(indices, parts, strict=True)
    ]
    rows = {int(i): row for row, i in enumerate(np.concatenate([index.reshape(-1) for index in indices]))}
    if sorted(rows) != list(range(len(rows))) or None in rest:
        raise b.error("some rows of its result are undefined")
    total = sum(index.size for index in indices)
    joined = b.op(CONCATENATION, [part.value for part in flat], ConcatenationOptions(0), shape=(total, *rest))
    order = b.const([rows[i] for i in range(len(rows))], np.int32)
    return b.op(GATHER, [joined, order], GatherOptions(), shape=(len(rows), *rest))


def _unsorted(op: Op) -> Lowering:
    def lower(b: Builder) -> Value:
        x, ids, count = b.node.input(0), b.int32(b.node.input(1)), b.int32(b.node.input(2))
        return b.op(op, [x, ids, count])

    return lower


def _segments(op: Op) -> Lowering:
    """Return the lowering of an operator with ascending segment ids; the last one gives their number."""

    def lower(b: Builder) -> Value:
        ids = Expression(b, b.int32(b.node.input(1)))
        count = _segment_count(ids)
        result = Expression(b, b.op(op, [b.node.input(0), ids.value, count]))
        if op not in _EXTREMES or _has_no_gaps(ids.value):
            return result.value
        # For empty segments TensorFlow returns 0, TFLite the initial value of its comparison.
        dims = b.shape(result.value)
        rows = b.op(segment.UNSORTED_SEGMENT_SUM, [ids.filled(1).value, ids.value, count], type=_INT32, shape=dims[:1])
        is_empty = Expression(b, rows).equals(0).reshape([-1, *[1] * len(dims[1:])], (dims[0], *[1] * len(dims[1:])))
        return is_empty.select(result.constant(0), result).value

    return lower


def _segment_count(ids: Expression) -> Value:
    """Return one more than the last id."""
    data = ids.value.data
    if data is not None and data.size:
        return ids.b.const(data.max() + 1, np.int32)
    return (ids.reduce(reduce.REDUCE_MAX, [0]) + 1).value


_EXTREMES = (segment.UNSORTED_SEGMENT_MAX, segment.UNSORTED_SEGMENT_MIN)


def _has_no_gaps(ids: Value) -> bool:
    return ids.data is not None and ids.data.size > 0 and set(np.diff(ids.data, prepend=-1).tolist()) <= {0, 1}


def _segment_sum(b: Builder) -> Value:
    """Return the sums of rows. SEGMENT_SUM needs ids without gaps, which only constants can guarantee."""
    ids = b.int32(b.node.input(1))
    if _has_no_gaps(ids):
        return b.op(segment.SEGMENT_SUM, [b.node.input(0), ids])
    return _segments(segment.UNSORTED_SEGMENT_SUM)(b)  # type: ignore[return-value]


def _sparse_to_dense(b: Builder) -> Value:
    indices, shape, values, default = (b.node.input(i) for i in range(4))
    places = [indices, shape] if indices.type == shape.type else [b.int32(indices), b.int32(shape)]
    return b.op(SPARSE_TO_DENSE, [*places, values, default])


def _segment_mean(x: Expression, ids: Expression) -> Expression:
    b, rank = x.b, len(x.b.shape(x.value))
    ids, count = _index(ids), (_index(ids).reduce(reduce.REDUCE_MAX, [0]) + 1).value
    total = Expression(b, b.op(segment.UNSORTED_SEGMENT_SUM, [x.value, ids.value, count]))
    ones = ids.filled(1).cast(x.type)
    shape = (None if b.node.output.shape is None else b.node.output.shape[0],)
    rows = Expression(b, b.op(segment.UNSORTED_SEGMENT_SUM, [ones.value, ids.value, count], type=x.type, shape=shape))
    return total / rows.maximum(1).reshape([-1, *[1] * (rank - 1)], (*shape, *[1] * (rank - 1)))


def _unique(b: Builder) -> Sequence[Value]:
    if len(b.node.inputs) > 1 and b.known(1, "axis").size and b.node.input(0).rank != 1:
        raise b.error("TFLite finds unique elements only of vectors")
    return b.ops(UNIQUE, b.node.inputs[:1], UniqueOptions(b.node.outputs[1].type), b.like())


def _bucketize(b: Builder) -> Value:
    return b.op(BUCKETIZE, b.node.inputs, BucketizeOptions(tuple(b.node.attrs["boundaries"])))


def _searched(counted: Op) -> Lowering:
    """Return a lowering that counts, for each value, the elements before its place in its sorted row."""

    def lower(b: Builder) -> Value:
        rows, values = _expressions(b)
        before = rows.expand(-2).binary(counted, values.expand(-1), TensorType.BOOL)
        return before.cast(_INT32).sum([-1]).cast(b.node.output.type).value

    return lower


def _bincount(b: Builder) -> Value:
    """Count each number's occurrences in a tensor by summing one-hot rows.

    A node with weights is a composition.
    """
    values, size = Expression(b, b.int32(b.node.input(0))), b.int32(b.node.input(1))
    rank, to = len(b.shape(values.value)), b.node.output.type
    is_matrix = rank == 2 and b.node.op_name == "DenseBincount"
    on, off = b.const(1, to.dtype), b.const(0, to.dtype)
    operands = [values.value, b.reshape(size, (), ()), on, off]
    shape = (*b.shape(values.value), None if size.data is None else int(size.data))
    rows = Expression(b, b.op(ONE_HOT, operands, OneHotOptions(-1), shape=shape))
    return rows.sum([1] if is_matrix else range(rank)).value


def _partitions(b: Builder) -> Sequence[Value]:
    """Return the rows of every part, in order."""
    x, parts = _expressions(b)
    if parts.value.rank != 1:
        raise b.error("TFLite partitions only rows; reshape its operands")
    results = []
    for part, output in enumerate(b.node.outputs):
        places = b.op(WHERE, [parts.equals(part).value], type=TensorType.INT64, shape=(None, 1))
        rows = b.reshape(b.int32(places), [-1], (None,))
        results.append(b.op(GATHER, [x.value, rows], GatherOptions(), shape=output.shape))
    return results


def _update_slice(b: Builder) -> Value:
    return b.op(DYNAMIC_UPDATE_SLICE, [b.node.input(0), b.node.input(1), b.int32(b.node.input(2))])


def _in_top_k(predictions: Expression, targets: Expression, k: Expression) -> Expression:
    """Return whether fewer than k classes score higher than the target."""
    classes = predictions.b.shape(predictions.value)[-1]
    if classes is None:
        raise predictions.b.error("the number of its classes must be known")
    b = predictions.b
    operands = [_index(targets).value, *(b.const(n, np.int32) for n in (classes, 1, 0))]
    hot = Expression(b, b.op(ONE_HOT, operands, OneHotOptions(-1), type=_INT32, shape=predictions.value.shape))
    own = (predictions * hot.cast(predictions.type)).sum([1], keep=True)
    larger = own.less(predictions).cast(_INT32).sum([1])
    return larger.less(_index(k))


LOWERINGS: dict[str, Lowering] = {
    "TensorScatterUpdate": _as_computed(_scatter_update),
    "TensorScatterAdd": formula(lambda x, indices, updates: x + _scattered(indices, updates, x)),
    "TensorScatterSub": formula(lambda x, indices, updates: x - _scattered(indices, updates, x)),
    "InvertPermutation": formula(_invert_permutation),
    "DynamicStitch": _dynamic_stitch,
    "ParallelDynamicStitch": _dynamic_stitch,
    "UnsortedSegmentSum": _unsorted(segment.UNSORTED_SEGMENT_SUM),
    "UnsortedSegmentProd": _unsorted(segment.UNSORTED_SEGMENT_PROD),
    "UnsortedSegmentMax": _unsorted(segment.UNSORTED_SEGMENT_MAX),
    "UnsortedSegmentMin": _unsorted(segment.UNSORTED_SEGMENT_MIN),
    "SegmentSum": _segment_sum,
    "SparseToDense": _sparse_to_dense,
    "SegmentProd": _segments(segment.UNSORTED_SEGMENT_PROD),
    "SegmentMax": _segments(segment.UNSORTED_SEGMENT_MAX),
    "SegmentMin": _segments(segment.UNSORTED_SEGMENT_MIN),
    "SegmentMean": formula(_segment_mean),
    "Unique": _unique,
    "UniqueV2": _unique,
    "Bucketize": _bucketize,
    "LowerBound": _searched(compare.LESS),
    "UpperBound": _searched(compare.LESS_EQUAL),
    "DynamicPartition": _partitions,
    "Bincount": _bincount,
    "DenseBincount": _bincount,
    "XlaDynamicUpdateSlice": _update_slice,
    "InTopKV2": formula(_in_top_k),
}
