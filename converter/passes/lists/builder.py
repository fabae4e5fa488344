"""Builds the replacement of a list operator; every rule uses it."""

from collections.abc import Sequence

import numpy as np

from litecl.converter.graph import Node, Operator, Value, constant
from litecl.converter.passes.lists.elements import Extent, Scope
from litecl.converter.records import Dims
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

_INT32 = TensorType.INT32


class ListNode:
    """A list operator in its scope."""

    def __init__(self, scope: Scope, node: Node) -> None:
        self.scope = scope
        self.node = node
        self.function = scope.function

    @property
    def dense(self) -> Value:
        """The list as a dense tensor; its maker is already lowered."""
        value = self.node.input(0)
        if value.type == TensorType.VARIANT or value.shape is None:
            raise self.error("the origin of its list is unknown")
        return value

    def emit(
        self, op: Operator, inputs: Sequence[Value], type_: TensorType, shape: Dims | None, **attrs: object
    ) -> Value:
        """Add a node and return its result."""
        return self.function.emit(op, inputs, (type_, shape), self.node.name, **attrs)

    def const(self, data: object) -> Value:
        """Return an int32 constant."""
        return constant(np.asarray(data, np.int32), self.node.name)

    def int32(self, value: Value) -> Value:
        """Return the value as int32."""
        if value.type == _INT32:
            return value
        if value.data is not None:
            return self.const(value.data)
        return self.emit("Cast", [value], _INT32, value.shape, DstT=_INT32)

    def pick(self, value: Value, index: Value) -> Value:
        """Return value[index]."""
        shape = (*(index.shape or ()), *(value.shape or ())[1:])
        return self.emit("GatherV2", [value, index, self.const(0)], value.type, shape, batch_dims=0)

    def size(self, value: Value, axis: int) -> Value:
        """Return a dimension of a value as a scalar."""
        known = None if value.shape is None else value.shape[axis]
        if known is not None:
            return self.const(known)
        shape = self.emit("Shape", [value], _INT32, (value.rank,), out_type=_INT32)
        return self.pick(shape, self.const(axis))

    def row(self, item: Value) -> Value:
        """Return the item as a list of one."""
        return self.emit("ExpandDims", [item, self.const(0)], item.type, (1, *(item.shape or ())))

    def joined(self, parts: Sequence[Value], length: int | None) -> Value:
        """Return concatenated lists."""
        shape = (length, *(parts[-1].shape or ())[1:])
        return self.emit("ConcatV2", [*parts, self.const(0)], parts[0].type, shape, N=len(parts))

    def part(self, value: Value, begin: Value | None, end: Value | None) -> Value:
        """Return value[begin:end]."""
        one, zero = self.const([1]), self.const([0])
        bounds = [zero if bound is None else self.vector(bound) for bound in (begin, end)]
        return self.emit(
            "StridedSlice",
            [value, *bounds, one],
            value.type,
            (None, *(value.shape or ())[1:]),
            begin_mask=int(begin is None),
            end_mask=int(end is None),
            ellipsis_mask=0,
            new_axis_mask=0,
            shrink_axis_mask=0,
        )

    def vector(self, scalar: Value) -> Value:
        """Return a scalar as a vector of one element."""
        if scalar.data is not None:
            return self.const(scalar.data.reshape(1))
        return self.emit("Reshape", [scalar, self.const([1])], _INT32, (1,))

    def zeros(self, length: Value, extents: Sequence[Extent], type_: TensorType) -> Value:
        """Return a list of zeros, or of empty texts."""
        sizes = [self.const(e) if isinstance(e, int) else self.size(*e) for e in extents]
        shape = tuple(None if d.data is None else int(d.data) for d in (length, *sizes))
        dims = (
            self.const([d for d in shape if d is not None])
            if None not in shape
            else self.emit("Pack", [length, *sizes], _INT32, (len(shape),), axis=0, N=len(shape))
        )
        blank = np.array(b"", object) if type_ is TensorType.STRING else np.zeros((), type_.dtype)
        return self.emit("Fill", [dims, constant(blank)], type_, shape)

    def error(self, why: str) -> ConversionError:
        """Return an error that names the operator."""
        return ConversionError(f"{self.node}: the list cannot become a tensor: {why}")
