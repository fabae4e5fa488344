"""Records that nodes and values refer to: shapes, variables, functions by name, internal operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from litecl.converter.traits import Effects
from litecl.interpreter.graph import Array

Dims = tuple[int | None, ...]

# A user's shapes by input name; None or -1 leaves a dimension open.
Shapes = Mapping[str, Sequence[int | None]]

# The original function, from inputs to results by name.
Source = Callable[[Mapping[str, Array]], dict[str, Array]]

# Maps operand shapes to result shapes; None if not even the rank is known.
InferShapes = Callable[[Sequence[Dims | None]], Sequence[Dims | None]]


@dataclass(frozen=True)
class Variable:
    """A TensorFlow variable and its value at conversion.

    key: unique in the process; names may repeat.
    """

    name: str = field(compare=False)
    data: Array = field(compare=False)
    key: str


@dataclass(frozen=True)
class Table(Variable):
    """A lookup table with its content at conversion: keys in ``data``, and ``values``."""

    values: Array = field(compare=False, kw_only=True)


@dataclass(frozen=True)
class Callee:
    """A function named by an attribute, with its own attributes."""

    name: str
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class OwnOp:
    """An operator internal to the converter, for one pass to hand its finding to a later one.

    ``own_ops`` lists them. Passes compare a node's operator with the record, never by name.

    infer: result shapes; None if the shapes that a node declares hold.
    lower: a ``lower.builder.Lowering``; None if a pass replaces all such nodes before lowering.
    """

    name: str
    infer: InferShapes | None = None
    lower: Callable[[Any], Any] | None = None
    effects: Effects = Effects.PURE


@dataclass(frozen=True, eq=False)
class Grid:
    """The range that quantization-aware training rounded a constant to, from ``low`` to ``high``.

    low, high: [1], or one element per index along ``axis``.
    """

    low: Array
    high: Array
    axis: int = 0

    def transposed(self, order: Sequence[int]) -> "Grid":
        """Return the grid of the transposed constant."""
        return self if self.low.size == 1 else replace(self, axis=list(order).index(self.axis))

    def repeated(self, times: int, axis: int) -> "Grid":
        """Return the grid after merging a dimension of ``times`` elements into the last one."""
        many = self.low.size > 1
        return Grid(np.tile(self.low, times), np.tile(self.high, times), axis) if many else replace(self, axis=axis)

    def scaled(self, factors: Array, axis: int) -> "Grid | None":
        """Return the grid of the constant times one factor per index along ``axis``; None if the axes differ."""
        if self.low.size > 1 and self.axis != axis:
            return None
        ends = np.stack([self.low * factors, self.high * factors]).astype(np.float32)
        return Grid(ends.min(axis=0), ends.max(axis=0), axis)
