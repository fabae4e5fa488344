"""Finds the element size of lists that a program reserves before it knows the size.

It follows the list to a write of an item, through loops and branches, and traces each dimension of the item back to a
value known where the list is reserved: the batch of an LSTM's output is that of its initial state.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Union

from litecl.converter.graph import Function, Node, Operator, Value
from litecl.converter.own_ops import BIDIRECTIONAL_LSTM, LSTM, RNN, UPDATE_SLICE
from litecl.converter.strided import MASKS, axis_bounds, new_axes
from litecl.converter.traits import traits_of
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

# A number, or a dimension of a value.
Extent = Union[int, tuple[Value, int]]  # noqa: UP007 (as an alias)

# The position of the operand that an operator writes to the list, its operand 0.
_WRITERS: Mapping[Operator, int] = {
    "TensorListSetItem": 2,
    "TensorListPushBack": 1,
    "TensorListScatterIntoExistingList": 1,
    UPDATE_SLICE: 1,
}
# These change a list's length, as does a write that ``resizes`` it.
_SIZERS = (
    "TensorListPushBack",
    "TensorListPopBack",
    "TensorListResize",
    "TensorListConcatLists",
    "TensorListPushBackBatch",
)
# These read elements one by one, which may differ in size; others need them equal.
_READERS = ("TensorListConcat", "TensorListConcatV2", "TensorListGetItem", "TensorListGather")
_MADE_OF_TENSORS = ("TensorListFromTensor", "TensorListScatter", "TensorListScatterV2")


@dataclass(frozen=True, eq=False)
class Scope:
    """A function, the node that owns it, and that node's scope."""

    function: Function
    owner: Node | None = None
    parent: "Scope | None" = None

    def enter(self, node: Node, body: Function) -> "Scope":
        """Return the scope of a node's body."""
        return Scope(body, node, self)

    def outside(self, value: Value) -> Value | None:
        """Return the operand of the owner that is passed for an argument of this function."""
        position = next((i for i, argument in enumerate(self.function.inputs) if argument is value), None)
        if position is None or self.owner is None:
            return None
        return self.owner.inputs[position + (self.owner.op == "If")]


def resizes(node: Node) -> bool:
    """Return whether a write past the end extends the list."""
    return bool(node.attrs.get("resize_if_index_out_of_bounds"))


def grows(list_: Value) -> bool:
    """Return whether a body changes the length of a list passed to it."""
    return any(_grows(user, list_) for user in list_.users)


def _grows(user: Node, list_: Value) -> bool:
    if user.op in _SIZERS or (user.op == "TensorListSetItem" and resizes(user)):
        return True
    if user.op == "TensorListSetItem" and grows(user.output):
        return True
    passed = [i - (user.op == "If") for i, operand in enumerate(user.inputs) if operand is list_ and user.bodies]
    return any(grows(body.inputs[i]) for i in passed for body in user.bodies)


def element(list_: Value, scope: Scope) -> list[Extent] | None:
    """Return the extents of the elements written to a list in this scope; None if unknown.

    Raises ConversionError if elements differ in size, or may differ in a list that is not only stacked.
    """
    uses = list(_uses(list_, scope, 0))
    items = [_written(user, where) for user, where in uses if user.op in _WRITERS]
    items = [(item, axes, where) for item, axes, where in items if item.shape is not None]
    extents = [[_outward(item, axis, where, scope) for axis in axes] for item, axes, where in items]
    numbers = [[extent if isinstance(extent, int) else None for extent in one] for one in extents]
    known = [[extent for extent in one if extent is not None] for one in extents if None not in one]
    differ = next((one for one in numbers if not _may_equal(one, numbers[0])), None)
    if differ is not None:
        raise _unequal(list_, f"differ in size: {numbers[0]} and {differ}; pad them")
    if any(one != known[0] for one in known) and any(user.op in _READERS for user, _ in uses):
        raise _unequal(list_, "may differ in size; give input_shapes")
    return known[0] if known else None


def _written(writer: Node, scope: Scope) -> tuple[Value, range, Scope]:
    """Return what an operator writes, and the axes of it that are an element's."""
    item = writer.input(_WRITERS[writer.op])
    return item, range(writer.op == "TensorListScatterIntoExistingList", item.rank or 0), scope


def _may_equal(a: list[int | None], b: list[int | None]) -> bool:
    return len(a) == len(b) and all(None in (m, n) or m == n for m, n in zip(a, b, strict=True))


def _unequal(list_: Value, how: str) -> ConversionError:
    return ConversionError(f"{list_.producer}: the list cannot become a tensor: its elements {how}")


def _uses(value: Value, scope: Scope, depth: int) -> Iterator[tuple[Node, Scope]]:
    """Yield the operators that read or write a list, in loops and branches too."""
    for user in dict.fromkeys(value.users) if depth <= 8 else ():
        if user.op in (*_WRITERS, *_READERS) and user.input(0) is value:
            yield user, scope
        if user.op in _WRITERS and user.input(0) is value:
            yield from _uses(user.output, scope, depth + 1)
        for i, operand in enumerate(user.inputs):
            if operand is value and user.bodies:
                position = i - (user.op == "If")
                for body in user.bodies:
                    yield from _uses(body.inputs[position], scope.enter(user, body), depth + 1)
                if user.op == "While":
                    yield from _uses(user.outputs[position], scope, depth + 1)


def _outward(value: Value, axis: int, scope: Scope, target: Scope) -> Extent | None:
    """Return a dimension of a value in an inner scope as a dimension of a value in ``target``."""
    if value.shape is not None and value.shape[axis] is not None:
        return value.shape[axis]
    node = value.producer
    if node is None:
        if scope is target:
            return (value, axis)
        outer = scope.outside(value)
        return None if outer is None or scope.parent is None else _outward(outer, axis, scope.parent, target)
    if node.op == "TensorListGetItem":
        return _of_list(node.input(0), axis + 1, scope, target)
    if node.op == "TensorListStack":
        return _of_list(node.input(0), axis, scope, target)
    for source, its_axis in _sources(node, value, axis):
        extent = _outward(source, its_axis, scope, target)
        if extent is not None:
            return extent
    return (value, axis) if scope is target else None


def _sources(node: Node, value: Value, axis: int) -> list[tuple[Value, int]]:
    """Return operands and axes whose dimensions equal a result's."""
    rank, traits = value.rank or 1, traits_of(node.op)
    if traits.like is not None or (traits.keeps_batch and axis == 0):
        return [(node.input(traits.like or 0), axis)]
    if traits.broadcasts:
        operands = [v for v in node.inputs if v is not None and v.rank == rank and v.shape is not None]
        return [(v, axis) for v in operands if v.shape is not None and v.shape[axis] != 1]
    if node.op in (LSTM, RNN, BIDIRECTIONAL_LSTM) and axis < rank - 1:
        return [(node.input(0), axis)]
    if node.op == "Split" and _other_axis(node.input(0), axis, rank):
        return [(node.input(1), axis)]
    if node.op == "ConcatV2" and _other_axis(node.input(len(node.inputs) - 1), axis, rank):
        return [(v, axis) for v in node.inputs[:-1] if v is not None]
    if node.op == "GatherV2" and node.input(1).shape == () and node.input(2).data == 0:
        return [(node.input(0), axis + 1)]
    if node.op == "Transpose" and (order := node.input(1).data) is not None:
        return [(node.input(0), int(order[axis]))]
    if node.op == "StridedSlice":
        return _whole(node, axis)
    if node.op == "While" and _keeps(node, position := node.outputs.index(value), axis):
        return [(node.input(position), axis)]
    return []


def _keeps(loop: Node, position: int, axis: int) -> bool:
    """Return whether a dimension of a loop's variable is known to be the same after a turn."""
    body = loop.bodies[-1]
    seen, left = set[tuple[Value, int]](), [(body.outputs[position], axis)]
    while left:
        value, its_axis = left.pop()
        if (value, its_axis) == (body.inputs[position], axis):
            return True
        if (value, its_axis) not in seen and value.producer is not None:
            left += _sources(value.producer, value, its_axis)
        seen.add((value, its_axis))
    return False


def _whole(node: Node, axis: int) -> list[tuple[Value, int]]:
    """Return the axis of a slice's operand that it keeps whole as this axis of its result."""
    x, count, strides = node.input(0), node.input(1).shape, node.input(3).data
    if x.rank is None or count is None or count[0] is None or strides is None:
        return []
    masks = {mask: int(node.attrs[mask]) for mask in MASKS}
    if axis in (added := new_axes(count[0], x.rank, masks)):
        return []
    bounds = axis_bounds(count[0], x.rank, masks)
    bounds += [None] * (x.rank - len(bounds))
    kept = [i for i, bound in enumerate(bounds) if bound is None or not masks["shrink_axis_mask"] >> bound & 1]
    source = kept[axis - sum(new < axis for new in added)]
    bound = bounds[source]
    open_ends = bound is None or (masks["begin_mask"] & masks["end_mask"] & 1 << bound and abs(strides[bound]) == 1)
    return [(x, source)] if open_ends else []


def _other_axis(joined: Value, axis: int, rank: int) -> bool:
    return joined.data is not None and int(joined.data) % rank != axis


def shape_reads(scope: Scope) -> None:
    """Set unknown shapes of items read from a list that was made of a tensor."""
    for node in scope.function.nodes:
        if node.op == "TensorListGetItem" and node.output.shape is None:
            tensor = _tensor(node.input(0), scope)
            node.output.shape = None if tensor is None or tensor.shape is None else tensor.shape[1:]
        for body in node.bodies:
            shape_reads(scope.enter(node, body))


def _tensor(list_: Value, scope: Scope) -> Value | None:
    """Return the tensor that a list was made of."""
    node = list_.producer
    if node is not None:
        return node.input(0) if node.op in _MADE_OF_TENSORS else None
    outer = scope.outside(list_)
    return None if outer is None or scope.parent is None else _tensor(outer, scope.parent)


def _of_list(list_: Value, axis: int, scope: Scope, target: Scope) -> Extent | None:
    """Return a dimension of a list, of which the first is its length. It may be dense already."""
    node = list_.producer
    if list_.type != TensorType.VARIANT:
        return _outward(list_, axis, scope, target)
    if node is None:
        outer = scope.outside(list_)
        return None if outer is None or scope.parent is None else _of_list(outer, axis, scope.parent, target)
    if node.op in _MADE_OF_TENSORS:
        return _outward(node.input(0), axis, scope, target)
    if node.op in _WRITERS and (axis or not _grows(node, node.input(0))):
        return _of_list(node.input(0), axis, scope, target)
    if node.op == "While":
        position = node.outputs.index(list_)
        kept = axis or not grows(node.bodies[-1].inputs[position])
        return _of_list(node.input(position), axis, scope, target) if kept else None
    if node.op != "TensorListReserve" or scope is target:  # its elements are being looked for
        return None
    extents = element(list_, scope) if axis else None
    extent = dimension(node.input(1)) if extents is None else extents[axis - 1]
    return extent if extent is None or isinstance(extent, int) else _outward(*extent, scope, target)


def dimension(size: Value) -> Extent | None:
    """Return the dimension that a scalar is the size of, if it is read from a shape."""
    part = size.producer
    if size.data is not None or part is None or part.op != "StridedSlice":
        return None if size.data is None else int(size.data)
    shape, begin = part.input(0).producer, part.input(1).data
    if shape is None or shape.op != "Shape" or begin is None or begin.size != 1 or int(begin[0]) < 0:
        return None
    return (shape.input(0), int(begin[0]))
