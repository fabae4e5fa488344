"""Turns one TensorFlow node into TFLite nodes; every lowering uses it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.records import Dims
from litecl.converter.traits import Effects
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reshape import RESHAPE, SQUEEZE, ReshapeOptions, SqueezeOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import TensorType

_LIKE_NODE: Dims = (-1,)


class Builder:
    """Adds TFLite nodes to a function in the name of a TensorFlow node, and gives access to that node."""

    def __init__(self, function: Function, node: Node) -> None:
        self._function = function
        self.node = node

    def op(
        self,
        op: Op | ControlOp,
        inputs: Sequence[Value | None],
        options: Any = None,
        *,
        type: TensorType | None = None,
        shape: Dims | None = _LIKE_NODE,
    ) -> Value:
        """Add a node and return its only result; its type and shape default to those of the TensorFlow node's first."""
        return self.ops(op, inputs, options, [self.value(type, shape)])[0]

    def add(self, node: Node) -> Node:
        """Add a node."""
        return self._function.add(node)

    def ops(
        self, op: Op | ControlOp, inputs: Sequence[Value | None], options: Any, outputs: Sequence[Value]
    ) -> Sequence[Value]:
        """Add a node and return its results."""
        return self.add(Node(op, inputs, outputs, op.options() if options is None else options, self.node.name)).outputs

    def write(self, op: Op | ControlOp, inputs: Sequence[Value | None]) -> None:
        """Add a node for its side effect, even if nothing reads its results."""
        self.add(Node(op, inputs, [], op.options(), self.node.name, effects=Effects.WRITES))

    def is_read(self, value: Value) -> bool:
        """Return whether anything reads a value."""
        return bool(value.users) or self._function.is_output(value)

    def value(self, type: TensorType | None = None, shape: Dims | None = _LIKE_NODE) -> Value:
        """Return a new value; type and shape default to those of the TensorFlow node's first result."""
        return Value(
            self.node.output.type if type is None else type,
            self.node.output.shape if shape is _LIKE_NODE else shape,
            self.node.name,
        )

    def like(self) -> list[Value]:
        """Return new values like the results of the TensorFlow node."""
        return [Value(value.type, value.shape, value.name) for value in self.node.outputs]

    def const(self, data: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Value:
        """Return a constant."""
        return constant(np.asarray(data, dtype), self.node.name)

    def scalar(self, number: float) -> Value:
        """Return a constant with the type of the TensorFlow node's first operand."""
        return self.const(number, self.node.input(0).type.dtype)

    def cast(self, value: Value, to: TensorType) -> Value:
        """Return the value in another type."""
        if value.type == to:
            return value
        if value.data is not None:
            return constant(value.data.astype(to.dtype), value.name)
        return self.op(CAST, [value], CastOptions(value.type, to), type=to, shape=value.shape)

    def int32(self, value: Value) -> Value:
        """Return a shape, axis or index operand as int32, as TFLite expects."""
        return self.cast(value, TensorType.INT32)

    def reshape(self, value: Value, shape: Sequence[int], result: Dims | None = _LIKE_NODE) -> Value:
        """Return the reshaped value; ``shape`` may contain one -1."""
        target = tuple(int(d) for d in shape)
        return self.op(
            RESHAPE, [value, self.const(target, np.int32)], ReshapeOptions(target), type=value.type, shape=result
        )

    def squeeze(self, value: Value, axis: int) -> Value:
        """Return the value without a dimension of size 1."""
        shape = None if value.shape is None else (*value.shape[:axis], *value.shape[axis + 1 :])
        return self.op(SQUEEZE, [value], SqueezeOptions((axis,)), type=value.type, shape=shape)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Return the value with its dimensions permuted."""
        if list(order) == sorted(order):
            return value
        if value.data is not None:
            grid = None if value.grid is None else value.grid.transposed(order)
            return constant(np.ascontiguousarray(value.data.transpose(order)), value.name, grid)
        shape = None if value.shape is None else tuple(value.shape[i] for i in order)
        return self.op(TRANSPOSE, [value, self.const(order, np.int32)], type=value.type, shape=shape)

    def reverse(self, value: Value, axis: int) -> Value:
        """Return the value reversed along a dimension."""
        return self.op(REVERSE_V2, [value, self.const([axis], np.int32)], type=value.type, shape=value.shape)

    def known(self, position: int, operand: str) -> Array:
        """Return an operand that TFLite needs as a constant. Raises ConversionError if it is computed."""
        data = self.node.input(position).data
        if data is None:
            raise self.error(f"its {operand} must be constant at conversion, and is computed")
        return data

    def shape(self, value: Value, operand: str = "operand") -> Dims:
        """Return the shape of a value. Raises ConversionError if its rank is unknown."""
        if value.shape is None:
            raise self.error(f"the rank of its {operand} is not known; give the model inputs of known rank")
        return value.shape

    def size(self, value: Value, axis: int) -> Value:
        """Return a dimension of a value, computed as int32."""
        options, position = ShapeOptions(TensorType.INT32), self.const(axis, np.int32)
        sizes = self.op(SHAPE, [value], options, type=TensorType.INT32, shape=(len(self.shape(value)),))
        return self.op(GATHER, [sizes, position], GatherOptions(), type=TensorType.INT32, shape=())

    def error(self, why: str) -> ConversionError:
        """Return an error that names the node."""
        return ConversionError(f"{self.node}: {why}")


Lowering = Callable[[Builder], Value | Sequence[Value]]
