"""Loops of Keras 3's recurrent layers: they read the rows of a time-major tensor [T,B,F] one by one.

Each step may write its result to a list: at its own place, or always at place 0 if only the last is wanted. ``layers``
matches the step, this file everything around it.
"""

from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.passes.match import AnyTensor, Pattern, match
from litecl.converter.passes.match import Number as Is
from litecl.converter.passes.sizes import Sizes

_INCREMENT = Pattern("AddV2", [AnyTensor("time"), Is(1)])
_AND = Pattern("LogicalAnd", [AnyTensor("a"), AnyTensor("b")])
_LESS = Pattern("Less", [AnyTensor("count"), AnyTensor("limit")])


@dataclass(frozen=True, eq=False)
class Store:
    """The list that a loop writes a value to: its variable's position, and whether it keeps every step."""

    position: int
    is_sequence: bool


class ListLoop:
    """A While node, with its body's values seen from outside."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.cond, self.body = node.bodies

    def argument(self, value: Value) -> int | None:
        """Return the position of a value among the body's arguments, or None."""
        return next((i for i, argument in enumerate(self.body.inputs) if argument is value), None)

    def outside(self, value: Value) -> Value | None:
        """Return the outside value of an invariant of the body."""
        if value.data is not None:
            return constant(value.data, value.name)
        position = self.argument(value)
        if position is None or self.body.outputs[position] is not value:
            return None
        return self.node.input(position)

    def rows(self, x: Value, sizes: Sizes) -> Value | None:
        """Return the time-major tensor that ``x`` iterates over, from the first to the last row."""
        get = x.producer
        if get is None or get.op != "TensorListGetItem":
            return None
        time, rows = self.argument(get.input(1)), self.outside(get.input(0))
        maker = None if rows is None else rows.producer
        if time is None or maker is None or maker.op != "TensorListFromTensor":
            return None
        start, step = self.node.input(time).data, match(_INCREMENT, self.body.outputs[time])
        if start is None or start != 0 or step is None or step["time"] is not self.body.inputs[time]:
            return None
        tensor = maker.input(0)
        return tensor if tensor.rank == 3 and self._runs_for(time, tensor, sizes) else None

    def _runs_for(self, time: int, tensor: Value, sizes: Sizes) -> bool:
        """Return whether the loop runs while time is less than the number of rows.

        Keras adds a second counter with the same limit.
        """
        (result,) = self.cond.outputs
        conditions = match(_AND, result)
        wanted = sizes.dimension(tensor, 0)
        comparisons = [result] if conditions is None else list(conditions.tensors.values())
        seen = set()
        for comparison in comparisons:
            less = match(_LESS, comparison)
            if less is None or less["count"] not in self.cond.inputs:
                return False
            count = self.cond.inputs.index(less["count"])
            start, limit = self.node.input(count).data, self._limit(less["limit"])
            known = None if limit is None else sizes.of(limit)
            if start is None or start != 0 or known is None or known.size != 1 or known.item() != wanted:
                return False
            step = match(_INCREMENT, self.body.outputs[count])
            if step is None or step["time"] is not self.body.inputs[count]:
                return False
            seen.add(count)
        return time in seen

    def _limit(self, value: Value) -> Value | None:
        if value.data is not None:
            return value
        return self.node.input(self.cond.inputs.index(value)) if value in self.cond.inputs else None

    def stores(self, value: Value, x: Value) -> list[Store] | None:
        """Return the lists that a value of the step is written to; None if one isn't written as a layer does."""
        stores = []
        for user in value.users:
            if user.op != "TensorListSetItem" or user.input(2) is not value:
                continue
            position, index = self.argument(user.input(0)), user.input(1)
            if position is None or self.body.outputs[position] is not user.output:
                return None
            is_first = index.data is not None and index.data == 0
            if not is_first and (x.producer is None or index is not x.producer.input(1)):
                return None
            if any(reader.op != "TensorListStack" for reader in self.node.outputs[position].users):
                return None
            stores.append(Store(position, not is_first))
        return stores

    def leaves_only(self, results: set[int]) -> bool:
        """Return whether only these results of the loop are used."""
        return {i for i, value in enumerate(self.node.outputs) if value.users} <= results


def batch_major(function: Function, tensor: Value, name: str) -> tuple[Value, bool]:
    """Return a time-major tensor as [B,T,F], and whether it is read backwards."""
    reverse = tensor.producer
    if reverse is not None and reverse.op == "ReverseV2" and _is_axis_0(reverse.input(1)):
        return _swapped(function, reverse.input(0), name), True
    return _swapped(function, tensor, name), False


def replace_stores(function: Function, loop: Node, stores: list[Store], sequence: Value, last: Value) -> None:
    """Make readers of the lists read a sequence [B,T,U] and its last step."""
    for store in stores:
        for stack in list(loop.outputs[store.position].users):
            _replace_stack(function, stack, sequence, last, store.is_sequence)


def _replace_stack(function: Function, stack: Node, sequence: Value, last: Value, is_sequence: bool) -> None:
    for user in list(stack.output.users):
        if _is_last_row(user):
            function.replace_node(user, [last])
    if is_sequence:
        result = _swapped(function, sequence, stack.name)
    else:
        axis = constant(np.array(0, np.int32))
        result = function.emit("ExpandDims", [last, axis], (last.type, (1, *(last.shape or ()))), stack.name)
    function.replace_node(stack, [result])


def _swapped(function: Function, value: Value, name: str) -> Value:
    """Swap the batch and time dimensions."""
    first, second, *rest = value.shape or ()
    order = constant(np.array([1, 0, 2], np.int32))
    return function.emit("Transpose", [value, order], (value.type, (second, first, *rest)), name)


def _is_last_row(node: Node) -> bool:
    """Return whether a node is x[-1]."""
    if node.op != "StridedSlice":
        return False
    begin, stride = node.input(1).data, node.input(3).data
    if begin is None or stride is None or begin.tolist() != [-1] or stride.tolist() != [1]:
        return False
    return node.attrs["shrink_axis_mask"] == 1 and not node.attrs["begin_mask"] and not node.attrs["new_axis_mask"]


def _is_axis_0(axis: Value) -> bool:
    return axis.data is not None and axis.data.tolist() == [0]
