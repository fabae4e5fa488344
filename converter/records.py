"""Records that nodes and values refer to: shapes, variables, functions by name, internal operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from litecl.converter.traits import Effects
from litecl.interpreter.graph import Array

Dims = tuple[int | None, ...]

# What a user gives for inputs by name: None or -1 leaves a dimension open.
Shapes = Mapping[str, Sequence[int | None]]

# A function as it was before it was converted, from inputs to results by name.
Source = Callable[[Mapping[str, Array]], dict[str, Array]]

# From the shapes of the operands to those of the results; None where not even the rank is known.
InferShapes = Callable[[Sequence[Dims | None]], Sequence[Dims | None]]


@dataclass(frozen=True)
class Variable:
    """A TensorFlow variable and the value that it has when the model is converted.

    key: tells it from other variables of the process, whose names may be equal.
    """

    name: str = field(compare=False)
    data: Array = field(compare=False)
    key: str


@dataclass(frozen=True)
class Table(Variable):
    """A lookup table with the content that it has when the model is converted; ``data`` are its keys."""

    values: Array = field(compare=False, kw_only=True)


@dataclass(frozen=True)
class Callee:
    """A function named by an attribute, with the attributes given to it."""

    name: str
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class OwnOp:
    """An operator internal to the converter, by which a pass tells a later one what it has found.

    ``own_ops`` lists them. Passes compare a node's operator with the record, never by its name.

    infer: shapes of the results; None where the shapes that a node declares hold.
    lower: a ``lower.builder.Lowering``; None where a pass has replaced all such nodes before they are lowered.
    """

    name: str
    infer: InferShapes | None = None
    lower: Callable[[Any], Any] | None = None
    effects: Effects = Effects.PURE


@dataclass(frozen=True, eq=False)
class Grid:
    """The grid of a constant from quantization-aware training: the numbers from ``low`` to ``high`` that it was
    rounded to.

    low, high: [1], or one element for each index along ``axis``.
    """

    low: Array
    high: Array
    axis: int = 0

    def transposed(self, order: Sequence[int]) -> "Grid":
        """Return the grid of the constant with its dimensions in another order."""
        return self if self.low.size == 1 else replace(self, axis=list(order).index(self.axis))

    def repeated(self, times: int, axis: int) -> "Grid":
        """Return the grid of the constant whose last dimension is joined with one of ``times`` elements before it."""
        many = self.low.size > 1
        return Grid(np.tile(self.low, times), np.tile(self.high, times), axis) if many else replace(self, axis=axis)

    def scaled(self, factors: Array, axis: int) -> "Grid | None":
        """Return the grid of the constant times one number for each index along ``axis``; None if it is no grid."""
        if self.low.size > 1 and self.axis != axis:
            return None
        ends = np.stack([self.low * factors, self.high * factors]).astype(np.float32)
        return Grid(ends.min(axis=0), ends.max(axis=0), axis)
