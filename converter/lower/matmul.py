"""Products of matrices and tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.conv import zero_bias
from litecl.converter.records import Dims
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType


def _matmul(b: Builder) -> Value:
    attrs = b.node.attrs
    return _product(b, b.node.input(0), b.node.input(1), bool(attrs["transpose_a"]), bool(attrs["transpose_b"]))


def _batch_matmul(b: Builder) -> Value:
    attrs = b.node.attrs
    return _product(b, b.node.input(0), b.node.input(1), bool(attrs["adj_x"]), bool(attrs["adj_y"]))


def _product(b: Builder, x: Value, y: Value, adj_x: bool, adj_y: bool, shape: Dims | None = None) -> Value:
    """Return x @ y: FULLY_CONNECTED with weights [out, in] if y is a constant matrix, else BATCH_MATMUL."""
    result = b.node.output.shape if shape is None else shape
    axes = (-2 if adj_x else -1, -1 if adj_y else -2)
    if (x.shape is not None and x.shape[axes[0]] == 0) or (y.shape is not None and y.shape[axes[1]] == 0):
        # LiteRT's FULLY_CONNECTED skips the bias if it is empty; zeros don't change the sums.
        x, y = (_with_zero(b, value, axis) for value, axis in zip((x, y), axes, strict=True))
    if y.data is None or y.rank != 2 or x.data is not None or x.type != TensorType.FLOAT32:
        return b.op(BATCH_MATMUL, [x, y], BatchMatMulOptions(adj_x, adj_y), shape=result)
    if adj_x:
        rank = len(b.shape(x))
        x = b.transpose(x, (*range(rank - 2), rank - 1, rank - 2))
    weights = y if adj_y else b.transpose(y, (1, 0))
    operands = [x, weights, zero_bias(b, weights, 0)]
    return b.op(FULLY_CONNECTED, operands, FullyConnectedOptions(keep_num_dims=x.rank != 2), shape=result)


def lower_dense_of_bytes(b: Builder) -> Value:
    """Lower to FULLY_CONNECTED, which quantizes its input at run time."""
    x, weights = b.node.input(0), b.node.input(1)
    bias = b.const(np.zeros(len(b.known(1, "weights")), np.float32))
    options = FullyConnectedOptions(keep_num_dims=x.rank != 2)
    return b.op(FULLY_CONNECTED, [x, weights, bias], options, shape=b.node.output.shape)


def _with_zero(b: Builder, value: Value, axis: int) -> Value:
    """Add one zero to an operand along an empty axis."""
    rank = len(b.shape(value))
    widths = [[0, int(i == axis % rank)] for i in range(rank)]
    if value.data is not None:
        return b.const(np.pad(value.data, widths))
    shape = tuple(d if i != axis % rank else 1 for i, d in enumerate(b.shape(value)))
    return b.op(PAD, [value, b.const(widths, np.int32)], type=value.type, shape=shape)


_MOST_DIMS = 4  # of a product's dimensions that are not summed over


@dataclass(frozen=True)
class _Einsum:
    x: str
    y: str
    result: str

    @property
    def batch(self) -> str:
        """Labels of both operands and the result, in the result's order."""
        return "".join(c for c in self.result if c in self.x and c in self.y)

    @property
    def contracted(self) -> str:
        """Labels of both operands that are summed over."""
        return "".join(c for c in self.x if c in self.y and c not in self.result)

    def free(self, operand: str) -> str:
        """Labels of one operand and the result, in the result's order."""
        other = self.y if operand is self.x else self.x
        return "".join(c for c in self.result if c in operand and c not in other)


def _einsum(b: Builder) -> Value:
    """Lower to one BATCH_MATMUL (or FULLY_CONNECTED) between transposes and reshapes that group labels."""
    left, right = b.node.attrs["equation"].replace(" ", "").split("->")
    labels = [_without_dots(b, part, value) for part, value in zip(left.split(","), b.node.inputs, strict=True)]
    result = _without_dots(b, right, b.node.output)
    if len(set(result)) != len(result):
        raise b.error(f"{b.node.attrs['equation']!r} makes a diagonal; use tf.linalg.diag")
    if len(labels) == 1:
        return _reduced(b, *_diagonal(b, b.node.input(0), labels[0]), result)
    if any(len(set(part)) != len(part) for part in labels):
        raise b.error(f"{b.node.attrs['equation']!r} takes a diagonal of a factor; use tf.linalg.diag_part first")
    if len(labels) != 2:
        raise b.error(f"{b.node.attrs['equation']!r} has {len(labels)} operands; write it as products of two")
    adjoint = _as_it_is(labels[0], labels[1], result)
    if adjoint is not None:
        return _product(b, b.node.input(0), b.node.input(1), *adjoint)
    values, labels = _without_ones(b, labels)
    operands = []
    for own, other, value in ((labels[0], labels[1], values[0]), (labels[1], labels[0], values[1])):
        kept = "".join(c for c in own if c in other or c in result)
        operands.append((_reduced(b, value, own, kept), kept))
    (x, x_labels), (y, y_labels) = operands
    return _contract(b, x, y, _Einsum(x_labels, y_labels, result))


def _as_it_is(x: str, y: str, result: str) -> tuple[bool, bool] | None:
    """Return which operands are adjoint if a matrix product with broadcast batches suffices, else None."""
    if min(map(len, (x, y, result))) < 2:
        return None
    batch, row, column = result[:-2], result[-2], result[-1]
    summed = "".join(c for c in x[-2:] if c in y[-2:] and c not in result)
    pairs = {row + summed: False, summed + row: True}, {summed + column: False, column + summed: True}
    if x[-2:] not in pairs[0] or y[-2:] not in pairs[1] or len(summed) != 1:
        return None
    outer = (x[:-2], y[:-2])
    if max(map(len, outer)) != len(batch) or not all(batch.endswith(part) for part in outer):
        return None
    return pairs[0][x[-2:]], pairs[1][y[-2:]]


def _without_ones(b: Builder, labels: Sequence[str]) -> tuple[list[Value], list[str]]:
    """Drop dimensions of size 1 that broadcast against the other operand; return operands and remaining labels."""
    values, left = [], []
    sizes = [dict(zip(part, b.shape(b.node.input(i)), strict=True)) for i, part in enumerate(labels)]
    for i, part in enumerate(labels):
        kept = "".join(c for c in part if not (sizes[i][c] == 1 and sizes[1 - i].get(c, 1) != 1))
        value = b.node.input(i)
        values.append(value if kept == part else _reshaped(b, value, list(kept), sizes[i]))
        left.append(kept)
    return values, left


def _contract(b: Builder, x: Value, y: Value, e: _Einsum) -> Value:
    free_x, free_y, depth = e.free(e.x), e.free(e.y), e.contracted
    if e.result != e.batch + free_x + free_y and e.result == e.batch + free_y + free_x:
        x, y, e = y, x, _Einsum(e.y, e.x, e.result)
        free_x, free_y = free_y, free_x
    sizes = _sizes(x, e.x, y, e.y)
    # Without a batch the product keeps the dimensions of x; otherwise it has one of each kind.
    kept = [*e.batch, *(free_x if free_x and not e.batch and len(free_x) < _MOST_DIMS else [free_x])]
    groups = (*kept, free_y)
    left, adj_x = _side(b, x, e.x, [*kept, depth], [*e.batch, depth, free_x], sizes)
    right, adj_y = _side(b, y, e.y, [*e.batch, depth, free_y], [*e.batch, free_y, depth], sizes)
    shape = tuple(_size_of(group, sizes) for group in groups)
    product = _product(b, left, right, adj_x, adj_y, shape)
    order = e.batch + free_x + free_y
    if any(len(group) != 1 for group in groups):
        product = _reshaped(b, product, list(order), sizes)
    return b.transpose(product, [order.index(c) for c in e.result])


def _side(
    b: Builder,
    value: Value,
    labels: str,
    plain: Sequence[str],
    adjoint: Sequence[str],
    sizes: dict[str, int | None],
) -> tuple[Value, bool]:
    """Return an operand of the product, and whether it is adjoint: the order that needs no transposition."""
    is_adjoint = labels != "".join(plain) and labels == "".join(adjoint) and len(plain) == len(adjoint)
    return _grouped(b, value, labels, adjoint if is_adjoint else plain, sizes), is_adjoint


def _grouped(b: Builder, value: Value, labels: str, groups: Sequence[str], sizes: dict[str, int | None]) -> Value:
    """Return the operand with labels in the order of the groups, each group merged to one dimension."""
    order = "".join(groups)
    moved = b.transpose(value, [labels.index(c) for c in order])
    if all(len(group) == 1 for group in groups):
        return moved
    return _reshaped(b, moved, groups, sizes)


def _reshaped(b: Builder, value: Value, groups: Sequence[str], sizes: dict[str, int | None]) -> Value:
    shape = tuple(_size_of(group, sizes) for group in groups)
    target = [-1 if d is None else d for d in shape]
    if value.data is not None:
        return b.const(value.data.reshape(target))
    if target.count(-1) <= 1:
        return b.reshape(value, target, shape)
    return b.op(RESHAPE, [value, _target(b, groups, shape)], ReshapeOptions(), type=value.type, shape=shape)


def _target(b: Builder, groups: Sequence[str], shape: Dims) -> Value:
    """Return the shape of a result with several unknown dimensions, computed from the operands at run time."""
    entries = []
    for group, size in zip(groups, shape, strict=True):
        if size is not None:
            entries.append(b.const(size, np.int32))
        elif not any(entry.data is not None and entry.data == -1 for entry in entries):
            entries.append(b.const(-1, np.int32))
        else:
            entries.append(_runtime_size(b, group))
    return b.op(PACK, entries, PackOptions(len(entries), 0), type=TensorType.INT32, shape=(len(entries),))


def _runtime_size(b: Builder, label: str) -> Value:
    if len(label) != 1:
        raise b.error(f"{b.node.attrs['equation']!r} merges dimensions of unknown size; give input_shapes")
    sides = b.node.attrs["equation"].replace(" ", "").split("->")[0].split(",")
    labels = [_without_dots(b, part, value) for part, value in zip(sides, b.node.inputs, strict=True)]
    position = 0 if label in labels[0] else 1
    x, axis = b.node.input(position), labels[position].index(label)
    return b.size(x, axis)


def _size_of(labels: str, sizes: dict[str, int | None]) -> int | None:
    extents = [sizes[c] for c in labels]
    return None if None in extents else int(np.prod([n for n in extents if n is not None], dtype=np.int64))


def _sizes(x: Value, x_labels: str, y: Value, y_labels: str) -> dict[str, int | None]:
    pairs = [*zip(x_labels, x.shape or (), strict=True), *zip(y_labels, y.shape or (), strict=True)]
    return dict(pairs) | {label: size for label, size in pairs if size is not None}


def _diagonal(b: Builder, value: Value, labels: str) -> tuple[Value, str]:
    """Take the diagonal of repeated labels; return it, and the labels with each of these once, at the end."""
    for label in sorted({c for c in labels if labels.count(c) > 1}):
        rest = [i for i, c in enumerate(labels) if c != label]
        both = [i for i, c in enumerate(labels) if c == label]
        size = b.shape(value)[both[0]]
        if len(both) != 2 or size is None or [b.shape(value)[i] for i in rest].count(None) > 1:
            raise b.error(f"{b.node.attrs['equation']!r} takes a diagonal of unknown size; use tf.linalg.diag_part")
        turned = b.transpose(value, [*rest, *both])
        shape = (*b.shape(turned)[:-2], size * size)
        flat = b.reshape(turned, [-1 if d is None else d for d in shape], shape)
        places = b.const(np.arange(size) * (size + 1), np.int32)
        options = GatherOptions(len(rest))
        value = b.op(GATHER, [flat, places], options, type=value.type, shape=(*shape[:-1], size))
        labels = "".join(labels[i] for i in rest) + label
    return value, labels


def _reduced(b: Builder, value: Value, labels: str, kept: str) -> Value:
    """Sum over labels that are not kept, and order the result like ``kept``."""
    axes = [i for i, c in enumerate(labels) if c not in kept]
    if axes:
        shape = tuple(size for i, size in enumerate(b.shape(value)) if i not in axes)
        value = b.op(SUM, [value, b.const(axes, np.int32)], ReducerOptions(False), shape=shape)
    left = "".join(c for c in labels if c in kept)
    return b.transpose(value, [left.index(c) for c in kept])


def _without_dots(b: Builder, labels: str, value: Value | None) -> str:
    """Return the labels with capitals for the dimensions under an ellipsis."""
    if "..." not in labels or value is None:
        return labels
    count = len(b.shape(value)) - len(labels.replace("...", ""))
    spare = [c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in b.node.attrs["equation"]]
    return labels.replace("...", "".join(reversed(spare[:count])))


LOWERINGS: dict[str, Lowering] = {
    "MatMul": _matmul,
    "BatchMatMul": _batch_matmul,
    "BatchMatMulV2": _batch_matmul,
    "BatchMatMulV3": _batch_matmul,
    "Einsum": _einsum,
}
