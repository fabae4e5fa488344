"""The state store: variable tensors and resources, which outlive an invoke and an executor."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.schema import TensorType

VariableKey = tuple[int, int]


class Held(Protocol):
    """A variable whose newest value lies elsewhere, on a device."""

    def fetch(self) -> Array:
        """The newest value."""


class Variables:
    """The state store: variable tensors by (subgraph, tensor), and resources by name."""

    def __init__(self, budget: limits.Budget | None = None) -> None:
        self._budget = budget
        self._values: dict[VariableKey, Array | Held] = {}
        self.resources: dict[str, Any] = {}

    def get(self, key: VariableKey, spec: TensorSpec) -> Array:
        """The value of a variable tensor; never written, it is zeros, or the zero point of INT8, as in TFLite."""
        value = self._values.get(key)
        if value is None:
            limits.check(spec)
            limits.temporary(f"variable {spec.name!r}", spec.static_shape, spec.dtype.itemsize)
            value = np.full(spec.static_shape, _initial(spec), spec.dtype)
        elif isinstance(value, np.ndarray):
            return value
        else:
            value = value.fetch()
        self.set(key, value)
        return value

    def set(self, key: VariableKey, value: Array | Held) -> None:
        """Stores a value, or who holds it."""
        self._count(self._values.get(key), value)
        self._values[key] = value

    def update(self, values: Mapping[VariableKey, Array | Held]) -> None:
        """Stores several values at once: an interrupt finds all of them stored, or none."""
        for key, value in values.items():
            self._count(self._values.get(key), value)
        self._values.update(values)

    def _count(self, before: Array | Held | None, now: Array | Held | None) -> None:
        """Counts a value as alive in place of another one, where memory is limited."""
        if self._budget is not None and isinstance(now, np.ndarray):
            self._budget.hold(now)
        if self._budget is not None and isinstance(before, np.ndarray):
            self._budget.drop(before)

    def held_by(self, key: VariableKey, holder: Held) -> bool:
        """Whether nobody wrote the variable since ``holder`` took it."""
        return self._values.get(key) is holder

    def reset(self) -> None:
        """Sets every variable tensor back to its first value; resources stay."""
        for value in self._values.values():
            self._count(value, None)
        self._values.clear()


def _initial(spec: TensorSpec) -> int:
    if spec.type != TensorType.INT8 or spec.quantization is None or not spec.quantization.zero_point.size:
        return 0
    return int(spec.quantization.zero_point.reshape(-1)[0])
