"""Finds the element size of lists that a program reserves before it knows the size.

It follows the list to a write of an item, through loops and branches, and traces each dimension of the item back to a
value known where the list is reserved: the batch of an LSTM's output is that of its initial state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

from litecl.converter.graph import Function, Node, Operator, Value
from litecl.converter.own_ops import UPDATE_SLICE
from litecl.converter.traits import traits_of
from litecl.interpreter.schema import TensorType

# A number, or a dimension of a value.
Extent = Union[int, tuple[Value, int]]  # noqa: UP007 (as an alias)

# The position of the operand that an operator writes to the list, its operand 0.
_WRITERS: Mapping[Operator, int] = {"TensorListSetItem": 2, "TensorListPushBack": 1, UPDATE_SLICE: 1}
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


def element(list_: Value, scope: Scope) -> list[Extent] | None:
    """Return the extents of the elements written to a list in this scope; None if unknown."""
    for item, where in _written(list_, scope, 0):
        if item.shape is None:
            continue
        extents = [_outward(item, axis, where, scope) for axis in range(len(item.shape))]
        known = [extent for extent in extents if extent is not None]
        if len(known) == len(extents):
            return known
    return None


def _written(value: Value, scope: Scope, depth: int) -> list[tuple[Value, Scope]]:
    items: list[tuple[Value, Scope]] = []
    if depth > 8:
        return items
    for user in dict.fromkeys(value.users):
        if user.op in _WRITERS and user.input(0) is value:
            items.append((user.input(_WRITERS[user.op]), scope))
            items += _written(user.output, scope, depth + 1)
        for i, operand in enumerate(user.inputs):
            if operand is value and user.bodies:
                position = i - (user.op == "If")
                for body in user.bodies:
                    items += _written(body.inputs[position], scope.enter(user, body), depth + 1)
                if user.op == "While":
                    items += _written(user.outputs[position], scope, depth + 1)
    return items


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
        return _of_element(node.input(0), axis, scope, target)
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
    if node.op == "Split" and _other_axis(node.input(0), axis, rank):
        return [(node.input(1), axis)]
    if node.op == "ConcatV2" and _other_axis(node.input(len(node.inputs) - 1), axis, rank):
        return [(v, axis) for v in node.inputs[:-1] if v is not None]
    if node.op == "GatherV2" and node.input(1).shape == () and node.input(2).data == 0:
        return [(node.input(0), axis + 1)]
    if node.op == "While":
        return [(node.input(node.outputs.index(value)), axis)]
    return []


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


def _of_element(list_: Value, axis: int, scope: Scope, target: Scope) -> Extent | None:
    """Return a dimension of an element of a list, which may be dense already."""
    node = list_.producer
    if list_.type != TensorType.VARIANT:
        return _outward(list_, axis + 1, scope, target)
    if node is None:
        outer = scope.outside(list_)
        return None if outer is None or scope.parent is None else _of_element(outer, axis, scope.parent, target)
    if node.op in _MADE_OF_TENSORS:
        return _outward(node.input(0), axis + 1, scope, target)
    return None
