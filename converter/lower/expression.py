"""Values with arithmetic operators, so that a composition reads like its formula."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from litecl.converter.graph import Value, constant
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.records import Dims
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, compare, reduce, unary
from litecl.interpreter.ops.fill import FILL, RANGE
from litecl.interpreter.ops.reshape import EXPAND_DIMS
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.schema import TensorType

Operand = Union["Expression", float]


class Expression:
    """A value in a lowering. Operators add TFLite nodes; numbers become constants of the other operand's type."""

    def __init__(self, b: Builder, value: Value) -> None:
        self.b = b
        self.value = value

    @property
    def type(self) -> TensorType:
        """The element type."""
        return self.value.type

    def constant(self, number: Any, type_: TensorType | None = None) -> "Expression":
        """Return a constant, by default of the same type."""
        return Expression(self.b, self.b.const(number, (self.type if type_ is None else type_).dtype))

    def of(self, value: Operand) -> "Expression":
        """Return an operand as an expression."""
        return value if isinstance(value, Expression) else self.constant(value)

    def filled(self, number: float) -> "Expression":
        """Return a tensor filled with one number, of the same type and shape."""
        if self.value.static_shape is not None:
            return self.constant(np.full(self.value.static_shape, number))
        operands = [self.shape().value, self.constant(number).value]
        return Expression(self.b, self.b.op(FILL, operands, type=self.type, shape=self.value.shape))

    def unary(self, op: Op, options: Any = None, type_: TensorType | None = None) -> "Expression":
        """Return the result of an elementwise operator."""
        result = self.b.op(
            op, [self.value], options, type=self.type if type_ is None else type_, shape=self.value.shape
        )
        return Expression(self.b, result)

    def binary(self, op: Op, other: Operand, type_: TensorType | None = None) -> "Expression":
        """Return the result of an operator with broadcasting; constants are folded."""
        y = self.of(other).value
        known = _computed(op, self.value, y)
        if known is not None:
            return Expression(self.b, known)
        shape = broadcast(self.value.shape, y.shape)
        result = self.b.op(op, [self.value, y], type=self.type if type_ is None else type_, shape=shape)
        return Expression(self.b, result)

    def __add__(self, other: Operand) -> "Expression":
        return self.binary(binary.ADD, other)

    def __sub__(self, other: Operand) -> "Expression":
        return self.binary(binary.SUB, other)

    def __rsub__(self, other: float) -> "Expression":
        return self.of(other) - self

    def __mul__(self, other: Operand) -> "Expression":
        return self.binary(binary.MUL, other)

    def __truediv__(self, other: Operand) -> "Expression":
        return self.binary(binary.DIV, other)

    def __rtruediv__(self, other: float) -> "Expression":
        return self.of(other) / self

    def __neg__(self) -> "Expression":
        return self.unary(unary.NEG)

    __radd__ = __add__
    __rmul__ = __mul__

    def maximum(self, other: Operand) -> "Expression":
        """Return the elementwise maximum."""
        return self.binary(binary.MAXIMUM, other)

    def minimum(self, other: Operand) -> "Expression":
        """Return the elementwise minimum."""
        return self.binary(binary.MINIMUM, other)

    def equals(self, other: Operand) -> "Expression":
        """Return where the two are equal."""
        return self.binary(compare.EQUAL, other, TensorType.BOOL)

    def less(self, other: Operand) -> "Expression":
        """Return where this is less than ``other``."""
        return self.binary(compare.LESS, other, TensorType.BOOL)

    def at_most(self, other: Operand) -> "Expression":
        """Return where this is at most ``other``."""
        return self.binary(compare.LESS_EQUAL, other, TensorType.BOOL)

    def select(self, yes: "Expression", no: Operand) -> "Expression":
        """Return ``yes`` where this is true, else ``no``."""
        other = yes.of(no).value
        shape = broadcast(broadcast(self.value.shape, yes.value.shape), other.shape)
        return Expression(self.b, self.b.op(SELECT_V2, [self.value, yes.value, other], type=yes.type, shape=shape))

    def log(self) -> "Expression":
        """Return the natural logarithm."""
        return self.unary(unary.LOG)

    def exp(self) -> "Expression":
        """Return the exponential."""
        return self.unary(unary.EXP)

    def sqrt(self) -> "Expression":
        """Return the square root."""
        return self.unary(unary.SQRT)

    def abs(self) -> "Expression":
        """Return the absolute value."""
        return self.unary(unary.ABS)

    def square(self) -> "Expression":
        """Return the square."""
        return self * self

    def floor(self) -> "Expression":
        """Return the value rounded down."""
        return self.unary(unary.FLOOR)

    def cast(self, to: TensorType) -> "Expression":
        """Return the value in another type."""
        return Expression(self.b, self.b.cast(self.value, to))

    def reduce(self, op: Op, axes: Sequence[int], *, keep: bool = False) -> "Expression":
        """Reduce along axes by an operator."""
        dims = self.b.shape(self.value)
        positive = {axis % len(dims) for axis in axes}
        shape = tuple(1 if i in positive else d for i, d in enumerate(dims) if keep or i not in positive)
        indices = self.b.const(sorted(positive), np.int32)
        result = self.b.op(op, [self.value, indices], reduce.ReducerOptions(keep), type=self.type, shape=shape)
        return Expression(self.b, result)

    def sum(self, axes: Sequence[int], *, keep: bool = False) -> "Expression":
        """Return the sum along axes."""
        return self.reduce(reduce.SUM, axes, keep=keep)

    def count(self, axes: Sequence[int]) -> "Expression":
        """Return the number of elements along axes."""
        dims = self.b.shape(self.value)
        along = {axis % len(dims) for axis in axes}
        known = [d for i, d in enumerate(dims) if i in along and d is not None]
        if len(known) == len(along):
            return self.constant(math.prod(known))
        others = [0 if i in along else 1 for i in range(len(dims))]
        sizes = self.shape()
        return (
            (sizes * sizes.constant([1 - n for n in others]) + sizes.constant(others))
            .reduce(reduce.REDUCE_PROD, [0])
            .cast(self.type)
        )

    def reshape(self, target: Sequence[int], shape: Dims) -> "Expression":
        """Return the reshaped value; ``target`` may contain one -1."""
        return Expression(self.b, self.b.reshape(self.value, target, shape))

    def expand(self, axis: int) -> "Expression":
        """Return the value with a new dimension of size 1."""
        dims = list(self.b.shape(self.value))
        dims.insert(axis % (len(dims) + 1), 1)
        if dims.count(None) <= 1:
            return self.reshape([-1 if d is None else d for d in dims], tuple(dims))
        operands = [self.value, self.b.const(axis, np.int32)]
        return Expression(self.b, self.b.op(EXPAND_DIMS, operands, type=self.type, shape=tuple(dims)))

    def transpose(self, order: Sequence[int]) -> "Expression":
        """Return the value with its dimensions permuted."""
        return Expression(self.b, self.b.transpose(self.value, order))

    def shape(self) -> "Expression":
        """Return the shape as int32: a constant if known."""
        known = self.value.static_shape
        if known is not None:
            return self.constant(known, TensorType.INT32)
        rank = len(self.b.shape(self.value))
        sizes = self.b.op(SHAPE, [self.value], ShapeOptions(TensorType.INT32), type=TensorType.INT32, shape=(rank,))
        return Expression(self.b, sizes)

    def counted(self, shape: Dims = (None,)) -> "Expression":
        """Return 0, 1, ... as int32, up to the limit that this vector of one element holds."""
        limit = self.reshape([], ())
        zero, one = (limit.constant(n, TensorType.INT32) for n in (0, 1))
        operands = [zero.value, limit.value, one.value]
        return Expression(self.b, self.b.op(RANGE, operands, type=TensorType.INT32, shape=shape))


def _computed(op: Op, x: Value, y: Value) -> Value | None:
    """Return the result of arithmetic with a constant if it needs no operator."""
    if op not in _ARITHMETIC or x.type.dtype.kind != "f":
        return None
    if x.data is not None and y.data is not None:
        return constant(np.asarray(_ARITHMETIC[op](x.data, y.data), x.data.dtype), x.name)
    if op not in _NEUTRAL:
        return None
    number = _NEUTRAL[op]
    if _is_all(y, number) and x.shape is not None and broadcast(x.shape, y.shape) == x.shape:
        return x
    is_neutral = op in (binary.MUL, binary.ADD) and _is_all(x, number)
    return y if is_neutral and y.shape is not None and broadcast(x.shape, y.shape) == y.shape else None


def _is_all(value: Value, number: float) -> bool:
    return value.data is not None and value.data.size > 0 and bool(np.all(value.data == number))


_ARITHMETIC: Mapping[Op, Callable[[Any, Any], Any]] = {
    binary.ADD: np.add,
    binary.SUB: np.subtract,
    binary.MUL: np.multiply,
    binary.DIV: np.divide,
    binary.MAXIMUM: np.maximum,
}
_NEUTRAL: Mapping[Op, float] = {binary.ADD: 0, binary.SUB: 0, binary.MUL: 1, binary.DIV: 1}
"""The second operand that changes nothing."""


def broadcast(a: Dims | None, b: Dims | None) -> Dims | None:
    """Return the shape of two broadcast operands, as far as known."""
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b), strict=True)
    return tuple(y if x == 1 else x if y == 1 or x is not None else y for x, y in pairs)


def formula(body: Callable[..., Expression]) -> Lowering:
    """Return a lowering that computes an expression from the operands."""

    def lower(b: Builder) -> Value:
        return body(*(Expression(b, b.node.input(i)) for i in range(len(b.node.inputs)))).value

    return lower
