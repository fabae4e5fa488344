"""Tracks unknown dimensions through a function.

``Flatten`` with an unknown batch is traced as SHAPE, a slice of it, and a pack of that with a number. With a symbol for
the batch the pack is ``[batch, 192]``, and the reshape that uses it needs only the constant ``[-1, 192]``.
"""

import numpy as np

from litecl.converter.graph import Function, Node, Value
from litecl.converter.passes.counts import Count, Size, symbol
from litecl.converter.passes.size_rules import SIZE_RULES
from litecl.converter.traits import traits_of
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

# Longer vectors are data, not shapes.
_LONGEST = 64
_REDUCTIONS = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")


def known_sizes(function: Function) -> "Sizes":
    """Return the sizes in a function whose nodes are sorted."""
    sizes = Sizes()
    for node in function.nodes:
        if node.op in SIZE_RULES and node.output.type in (TensorType.INT32, TensorType.INT64):
            _compute(node, sizes)
        for value in node.outputs:  # in order, so that lookups don't recurse deeply
            for axis, size in enumerate(value.shape or ()):
                if size is None:
                    sizes.dimension(value, axis)
    return sizes


class Sizes:
    """Known integer tensors and dimensions, as numbers and symbols."""

    def __init__(self) -> None:
        self.values: dict[Value, Array] = {}
        self._dimensions: dict[tuple[Value, int], Count] = {}

    def of(self, value: Value) -> Array | None:
        """Return the elements of an integer tensor as int or Size objects."""
        if value in self.values:
            return self.values[value]
        integral = value.data is not None and value.data.dtype.kind == "i" and value.data.size <= _LONGEST
        return value.data.astype(object) if integral and value.data is not None else None

    def dimension(self, value: Value, axis: int) -> Count:
        """Return the size of a dimension; dimensions that are certainly equal have the same symbol."""
        known = None if value.shape is None else value.shape[axis]
        if known is not None:
            return known
        if (value, axis) not in self._dimensions:
            # Names may repeat, e.g. when one operator is composed of several values, so add a number.
            unknown = self._of_operands(value, axis) or symbol(value.name, axis, len(self._dimensions))
            self._dimensions[value, axis] = unknown
        return self._dimensions[value, axis]

    def dimensions(self, value: Value) -> list[Count]:
        """Return all sizes of a value of known rank."""
        return [self.dimension(value, axis) for axis in range(value.rank or 0)]

    def _of_operands(self, value: Value, axis: int) -> Count | None:
        """Return a result's dimension as one of an operand."""
        node = value.producer
        if node is None or not node.inputs or value.rank is None:
            return None
        traits = traits_of(node.op)
        if traits.like is not None and node.input(traits.like).rank == value.rank:
            return self.dimension(node.input(traits.like), axis)
        if traits.broadcasts:
            return self._broadcast(node, value, axis)
        order = node.input(1).data if node.op == "Transpose" else None
        if order is not None:
            return self.dimension(node.input(0), int(order[axis]))
        if axis == 0 and traits.keeps_batch and not node.attrs.get("transpose_a"):
            return self.dimension(node.input(0), 0)
        if node.op in _REDUCTIONS:
            return self._kept(node, axis)
        if node.op == "BatchMatMulV2" and axis < (value.rank or 0) - 2:
            return self._broadcast(node, value, axis)
        if node.op == "Split":
            split = node.input(0).data
            is_whole = split is not None and int(split) % (value.rank or 1) != axis
            return self.dimension(node.input(1), axis) if is_whole else None
        if node.op == "StridedSlice" and _takes_one_row(node):
            return self.dimension(node.input(0), axis + 1)
        position = {"Reshape": 1, "Fill": 0}.get(node.op_name)
        target = None if position is None else self.of(node.input(position))
        return target[axis] if target is not None and isinstance(target[axis], Size) else None

    def _kept(self, node: Node, axis: int) -> Count | None:
        """Return the size of the operand's dimension that a reduction keeps as a dimension of its result."""
        axes, rank = node.input(1).data, node.input(0).rank
        if axes is None or rank is None:
            return None
        reduced = {int(i) % rank for i in axes.reshape(-1)}
        kept = [i for i in range(rank) if node.attrs["keep_dims"] or i not in reduced]
        return None if kept[axis] in reduced else self.dimension(node.input(0), kept[axis])

    def _broadcast(self, node: Node, value: Value, axis: int) -> Count | None:
        """Return the size that operands agree on, ignoring those of size 1."""
        sizes = set()
        for operand in node.inputs:
            if operand is None or operand.rank is None:
                return None
            own = axis - (value.rank or 0) + operand.rank
            if own >= 0 and operand.shape is not None and operand.shape[own] != 1:
                sizes.add(self.dimension(operand, own))
        return sizes.pop() if len(sizes) == 1 else None


def _takes_one_row(node: Node) -> bool:
    """Return whether a slice is x[i], with all other dimensions whole."""
    begin = node.input(1).shape
    masks = (node.attrs.get("shrink_axis_mask"), node.attrs.get("new_axis_mask"), node.attrs.get("ellipsis_mask"))
    return begin == (1,) and masks == (1, 0, 0) and node.input(0).shape is not None


def _compute(node: Node, sizes: Sizes) -> None:
    if node.op == "Shape":
        shape = node.input(0).shape
        operands = (
            None
            if shape is None
            else [np.array([sizes.dimension(node.input(0), i) for i in range(len(shape))], dtype=object)]
        )
    else:
        known = [sizes.of(value) for value in node.inputs if value is not None]
        operands = [value for value in known if value is not None]
        operands = operands if len(operands) == len(known) else None
    if operands is None:
        return
    try:
        computed = SIZE_RULES[node.op_name](node.attrs, operands)
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return  # symbols have no order or truth value, so this is computed at run time
    results = computed if isinstance(computed, tuple) else (computed,)
    for output, result in zip(node.outputs, results, strict=True):
        sizes.values[output] = np.asarray(result, dtype=object)
