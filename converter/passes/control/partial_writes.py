"""Turns partial writes of a variable into a read, an update of that part, and a write of the whole.

A .tflite file can only write variables whole; a device's planner may find in-place writes.
"""

from collections.abc import Callable, Mapping

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.own_ops import UPDATE_SLICE
from litecl.converter.records import Dims, Variable
from litecl.interpreter.schema import TensorType

_INT32 = TensorType.INT32
_SCATTERS = {kind: f"TensorScatter{kind}" for kind in ("Update", "Add", "Sub", "Max", "Min")}


def widen_writes(function: Function) -> None:
    """Replace the known partial writes in a function; other kinds stay, to be refused later."""
    for node in list(function.nodes):
        rule = _RULES.get(node.op_name)
        variable = node.input(0).variable if rule is not None else None
        if rule is not None and variable is not None:
            before = _Write(function, node, variable)
            whole = rule(before)
            if whole is not None:
                before.finish(whole)
    function.tidy()


class _Write:
    """A partial write of a variable."""

    def __init__(self, function: Function, node: Node, variable: Variable) -> None:
        self.function = function
        self.node = node
        self.shape: tuple[int, ...] = variable.data.shape
        self.type = TensorType.of(variable.data.dtype)
        self.made: list[Node] = []

    def emit(self, op: object, inputs: list[Value], type_: TensorType, shape: Dims | None, **attrs: object) -> Value:
        """Create a node; ``finish`` inserts all of them before the write."""
        result = Value(type_, shape, self.node.name)
        self.made.append(Node(op, inputs, [result], attrs, self.node.name))  # type: ignore[arg-type]
        return result

    def before(self) -> Value:
        """Return the variable's value before the write."""
        return self.emit("ReadVariableOp", [self.node.input(0)], self.type, self.shape)

    def finish(self, whole: Value) -> None:
        """Write the whole value in place of the node."""
        handle, position = self.node.input(0), self.function.nodes.index(self.node)
        self.made.append(Node("AssignVariableOp", [handle, whole], [], {}, self.node.name))
        self.function.nodes[position:position] = self.made
        self.function.replace_node(self.node, ())

    def const(self, data: object) -> Value:
        """Return an int32 constant."""
        return constant(np.asarray(data, np.int32), self.node.name)


def _scatter(kind: str) -> Callable[[_Write], Value | None]:
    """Return the rule for writing rows, whose indices lack the last dimension that a scatter has."""

    def rule(w: _Write) -> Value | None:
        indices, updates = w.node.input(1), _rows(w)
        if updates is None or indices.shape is None:
            return None
        places = w.emit("ExpandDims", [indices, w.const(-1)], indices.type, (*indices.shape, 1))
        return w.emit(_SCATTERS[kind], [w.before(), places, updates], w.type, w.shape)

    return rule


def _scatter_factors(op: Callable[[TensorType], str]) -> Callable[[_Write], Value | None]:
    """Return the rule that multiplies or divides rows by the products of their updates."""

    def rule(w: _Write) -> Value | None:
        indices, updates = w.node.input(1), _rows(w)
        if updates is None:
            return None
        rows = w.emit("Reshape", [updates, w.const([-1, *w.shape[1:]])], w.type, (None, *w.shape[1:]))
        places = w.emit("Reshape", [indices, w.const([-1])], indices.type, (None,))
        factors = w.emit("UnsortedSegmentProd", [rows, places, w.const(w.shape[0])], w.type, w.shape)
        return w.emit(op(w.type), [w.before(), factors], w.type, w.shape)

    return rule


def _rows(w: _Write) -> Value | None:
    """Return the updates of the rows, broadcast if they are a scalar; None if they don't fit the indices."""
    indices, updates = w.node.input(1), w.node.input(2)
    if indices.shape is None or updates.rank is None:
        return None
    if updates.rank == len(indices.shape) + len(w.shape) - 1:
        return updates
    shape = (*indices.shape, *w.shape[1:])
    if updates.rank or None in shape:
        return None
    return w.emit("BroadcastTo", [updates, w.const(shape)], w.type, shape)


def _scatter_nd(kind: str) -> Callable[[_Write], Value | None]:
    def rule(w: _Write) -> Value | None:
        return w.emit(_SCATTERS[kind], [w.before(), w.node.input(1), w.node.input(2)], w.type, w.shape)

    return rule


def _slice(w: _Write) -> Value | None:
    """Replace a box, if its size along every dimension is known."""
    begin, strides, value = (w.node.input(i) for i in (1, 3, 4))
    masks = w.node.attrs
    count = None if begin.shape is None else begin.shape[0]
    steps = strides.data
    if count is None or steps is None or np.any(steps != 1) or masks["ellipsis_mask"] or masks["new_axis_mask"]:
        return None
    sizes = [_extent(w, i, count) for i in range(len(w.shape))]
    kept = [i for i in range(len(w.shape)) if not (i < count and masks["shrink_axis_mask"] >> i & 1)]
    if value.shape is not None and len(value.shape) == len(kept):
        # If bounds are computed, take sizes from the written value, except 1, which may broadcast.
        for i, size in zip(kept, value.shape, strict=True):
            sizes[i] = size if sizes[i] is None and size != 1 else sizes[i]
    if None in sizes:
        return None
    part = [sizes[i] for i in kept]
    if value.static_shape != tuple(d for d in part if d is not None):
        value = w.emit("BroadcastTo", [value, w.const(part)], w.type, tuple(part))
    box = w.emit("Reshape", [value, w.const(sizes)], w.type, tuple(sizes))
    return w.emit(UPDATE_SLICE, [w.before(), box, _start(w, count)], w.type, w.shape)


def _extent(w: _Write, axis: int, count: int) -> int | None:
    """Return the number of elements a slice takes along an axis, or None if unknown."""
    size, masks = w.shape[axis], w.node.attrs
    if axis >= count:
        return size
    if masks["shrink_axis_mask"] >> axis & 1:
        return 1
    begin, end = w.node.input(1).data, w.node.input(2).data
    low = 0 if masks["begin_mask"] >> axis & 1 else None if begin is None else int(begin[axis])
    high = size if masks["end_mask"] >> axis & 1 else None if end is None else int(end[axis])
    if low is None or high is None:
        return None if masks["begin_mask"] >> axis & 1 or masks["end_mask"] >> axis & 1 else _distance(w, axis)
    return len(range(size)[low:high])


def _distance(w: _Write, axis: int) -> int | None:
    """Return the distance between computed bounds if the end is the begin plus a constant."""
    begin, end = (w.node.input(i).producer for i in (1, 2))
    if begin is None or end is None or (begin.op_name, end.op_name) != ("Pack", "Pack"):
        return None
    low, total = begin.input(axis), end.input(axis).producer
    if total is None or total.op_name not in ("Add", "AddV2") or low not in total.inputs:
        return None
    (more,) = [x for x in total.inputs if x is not low] or [low]
    return None if more is None or more.data is None else int(more.data)


def _start(w: _Write, count: int) -> Value:
    """Return where the box begins in all dimensions, counted from the front."""
    begin, masks = w.node.input(1), w.node.attrs
    free = [
        i >= count or (bool(masks["begin_mask"] >> i & 1) and not masks["shrink_axis_mask"] >> i & 1)
        for i in range(len(w.shape))
    ]
    sizes = np.array(w.shape, np.int32)
    if begin.data is not None:
        given = [0 if is_free else int(begin.data[i]) for i, is_free in enumerate(free)]
        return w.const([n + size if n < 0 else min(n, size) for n, size in zip(given, sizes.tolist(), strict=True)])
    start = begin
    if begin.type != _INT32:
        start = w.emit("Cast", [begin], _INT32, begin.shape, SrcT=begin.type, DstT=_INT32, Truncate=False)
    shape = (len(w.shape),)
    if count < len(w.shape):
        start = w.emit("Pad", [start, w.const([[0, len(w.shape) - count]])], _INT32, shape)
    start = w.emit("Mul", [start, w.const([0 if is_free else 1 for is_free in free])], _INT32, shape)
    negative = w.emit("Less", [start, w.const(0)], TensorType.BOOL, shape)
    from_end = w.emit("AddV2", [start, w.const(sizes)], _INT32, shape)
    return w.emit("SelectV2", [negative, from_end, start], _INT32, shape)


_RULES: Mapping[str, Callable[[_Write], Value | None]] = {
    "ResourceStridedSliceAssign": _slice,
    **{f"ResourceScatter{kind}": _scatter(kind) for kind in _SCATTERS},
    "ResourceScatterMul": _scatter_factors(lambda type_: "Mul"),
    "ResourceScatterDiv": _scatter_factors(lambda type_: "RealDiv" if type_.dtype.kind == "f" else "TruncateDiv"),
    **{f"ResourceScatterNd{kind}": _scatter_nd(kind) for kind in _SCATTERS},
}
