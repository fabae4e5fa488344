"""Follows dimensions that are unknown through the arithmetic that models do on shapes.

``Flatten`` on an unknown batch is traced as SHAPE, a slice of it, and a pack of that with a number. Followed with a
symbol for the batch, the pack is ``[batch, 192]``, and the reshape that uses it needs only the constant ``[-1, 192]``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.traits import traits_of
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

# What is longer than this is data, not a shape.
_LONGEST = 64


@dataclass(frozen=True)
class Size:
    """A product of unknown factors, ``scale * a * b * ...``; a factor is any hashable thing that names a number."""

    scale: int
    factors: tuple[Any, ...]

    def __mul__(self, other: "Count") -> "Count":
        if isinstance(other, Size):
            return Size(self.scale * other.scale, tuple(sorted(self.factors + other.factors, key=repr)))
        return Size(self.scale * int(other), self.factors) if other else 0

    def __floordiv__(self, other: "Count") -> "Count":
        if other == self:
            return 1
        if not isinstance(other, Size) and self.scale % int(other) == 0:
            return Size(self.scale // int(other), self.factors)
        return _unknown("//", self, other)

    def __add__(self, other: "Count") -> "Count":
        return self if not isinstance(other, Size) and other == 0 else _unknown("+", self, other)

    def __sub__(self, other: "Count") -> "Count":
        return 0 if other == self else self if other == 0 else _unknown("-", self, other)

    def __rsub__(self, other: int) -> "Count":
        return _unknown("-", other, self)

    __rmul__ = __mul__
    __radd__ = __add__


Count = Union[int, Size]  # noqa: UP007 (a forward reference cannot be joined with |)


def _unknown(*what: Any) -> Size:
    return Size(1, (what,))


def resolve_sizes(function: Function) -> None:
    """Makes constants of shape arithmetic with a known result, and of reshape targets with one unknown dimension."""
    sizes = known_sizes(function)
    for node in function.nodes:
        if node.op == "Reshape":
            _resolve_reshape(node, sizes)
    for value, items in sizes.values.items():
        if not any(isinstance(item, Size) for item in items.flat):
            function.replace(value, constant(items.astype(value.type.dtype), value.name))
    function.tidy()


def known_sizes(function: Function) -> "Sizes":
    """Follows sizes through a function, whose nodes are in order."""
    sizes = Sizes()
    for node in function.nodes:
        if node.op in _RULES and node.output.type in (TensorType.INT32, TensorType.INT64):
            _compute(node, sizes)
        for value in node.outputs:  # in order, so that none has far to look
            for axis, size in enumerate(value.shape or ()):
                if size is None:
                    sizes.dimension(value, axis)
    return sizes


class Sizes:
    """What is known of integer tensors and of dimensions, as numbers and symbols."""

    def __init__(self) -> None:
        self.values: dict[Value, Array] = {}
        self._dimensions: dict[tuple[Value, int], Count] = {}

    def of(self, value: Value) -> Array | None:
        """The elements of an integer tensor, as objects that are int or Size."""
        if value in self.values:
            return self.values[value]
        integral = value.data is not None and value.data.dtype.kind == "i" and value.data.size <= _LONGEST
        return value.data.astype(object) if integral and value.data is not None else None

    def dimension(self, value: Value, axis: int) -> Count:
        """The size of a dimension; the same symbol for dimensions that are certainly equal."""
        known = None if value.shape is None else value.shape[axis]
        if known is not None:
            return known
        if (value, axis) not in self._dimensions:
            self._dimensions[value, axis] = self._of_operands(value, axis) or _unknown(value.name, axis)
        return self._dimensions[value, axis]

    def dimensions(self, value: Value) -> list[Count]:
        """The sizes of all dimensions of a value of known rank."""
        return [self.dimension(value, axis) for axis in range(value.rank or 0)]

    def _of_operands(self, value: Value, axis: int) -> Count | None:
        """A dimension of a result that is one of an operand's."""
        node = value.producer
        if node is None or not node.inputs:
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
        if node.op == "Split":
            split = node.input(0).data
            is_whole = split is not None and int(split) % (value.rank or 1) != axis
            return self.dimension(node.input(1), axis) if is_whole else None
        if node.op == "StridedSlice" and _takes_one_row(node):
            return self.dimension(node.input(0), axis + 1)
        made = {"Reshape": 1, "Fill": 0}.get(str(node.op))
        target = None if made is None else self.of(node.input(made))
        return target[axis] if target is not None and isinstance(target[axis], Size) else None

    def _broadcast(self, node: Node, value: Value, axis: int) -> Count | None:
        """The size on which operands agree; those of size 1 take the others'."""
        found = set()
        for operand in node.inputs:
            if operand is None or operand.rank is None:
                return None
            own = axis - (value.rank or 0) + operand.rank
            if own >= 0 and operand.shape is not None and operand.shape[own] != 1:
                found.add(self.dimension(operand, own))
        return found.pop() if len(found) == 1 else None


def _takes_one_row(node: Node) -> bool:
    """x[i], with all other dimensions whole."""
    begin = node.input(1).shape
    masks = (node.attrs.get("shrink_axis_mask"), node.attrs.get("new_axis_mask"), node.attrs.get("ellipsis_mask"))
    return begin == (1,) and masks == (1, 0, 0) and node.input(0).shape is not None


def _compute(node: Node, sizes: Sizes) -> None:
    if node.op == "Shape":
        shape = node.input(0).shape
        operands = None if shape is None else [np.array([sizes.dimension(node.input(0), i) for i in range(len(shape))],
                                                        dtype=object)]
    else:
        found = [sizes.of(value) for value in node.inputs if value is not None]
        operands = [value for value in found if value is not None]
        operands = operands if len(operands) == len(found) else None
    if operands is None:
        return
    try:
        result = np.asarray(_RULES[str(node.op)](node.attrs, operands), dtype=object)
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return  # symbols have no order and no truth: what needs it is computed when the model runs
    sizes.values[node.output] = result


def _resolve_reshape(node: Node, sizes: Sizes) -> None:
    target = sizes.of(node.input(1))
    if target is None:
        return
    unknown = sum(isinstance(item, Size) for item in target)
    if unknown == 1 and -1 not in target.tolist():
        data = np.array([-1 if isinstance(item, Size) else item for item in target], np.int32)
        node.rewire([node.input(0), constant(data, node.input(1).name)])


def _strided_slice(attrs: Mapping[str, Any], operands: list[Array]) -> Any:
    x, begin, end, stride = operands
    if len(begin) != 1 or attrs.get("ellipsis_mask") or attrs.get("new_axis_mask"):
        raise ValueError("not a plain slice of a vector")
    first, last, step = begin[0], end[0], stride[0]
    if attrs.get("shrink_axis_mask"):
        return x[first]
    return x[None if attrs.get("begin_mask") else first : None if attrs.get("end_mask") else last : step]


def _gather(attrs: Mapping[str, Any], operands: list[Array]) -> Any:
    x, indices, *axis = operands
    return np.take(x, indices.astype(np.int64), int(axis[0]) if axis else 0)


def _not_known() -> Any:
    raise ValueError("symbols have no order")


def _concat(attrs: Mapping[str, Any], operands: list[Array]) -> Any:
    return np.concatenate(operands[:-1], int(operands[-1]))


_Rule = Callable[[Mapping[str, Any], list[Array]], Any]
_RULES: dict[str, _Rule] = {
    "Shape": lambda attrs, v: v[0],
    "Size": lambda attrs, v: np.prod(v[0]),
    "StridedSlice": _strided_slice,
    "Pack": lambda attrs, v: np.stack(v, attrs["axis"]),
    "ConcatV2": _concat,
    "GatherV2": _gather,
    "Range": lambda attrs, v: np.arange(*(int(n) for n in v)).astype(object),
    "Max": lambda attrs, v: v[0] if v[1].size == 0 else _not_known(),
    "Prod": lambda attrs, v: np.multiply.reduce(v[0], axis=None, keepdims=attrs["keep_dims"]),
    "Mul": lambda attrs, v: v[0] * v[1],
    "AddV2": lambda attrs, v: v[0] + v[1],
    "Sub": lambda attrs, v: v[0] - v[1],
    "FloorDiv": lambda attrs, v: v[0] // v[1],
    "Cast": lambda attrs, v: v[0],
    "Reshape": lambda attrs, v: v[0].reshape(v[1].astype(np.int64)),
    "ExpandDims": lambda attrs, v: np.expand_dims(v[0], int(v[1])),
    "Squeeze": lambda attrs, v: np.squeeze(v[0]),
    "Slice": lambda attrs, v: v[0][int(v[1][0]) :][: None if int(v[2][0]) < 0 else int(v[2][0])],
}
