"""Input values that the tables share."""

from typing import Any

import numpy as np

from litecl.cases import rng
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 6.0, -6.0, 6.5, 1e-6, -1e-6, 20.0, -20.0, 80.0],
    np.float32,
)
_ON_DEVICE = (np.float32, np.float16, np.int32, np.int64, np.bool_, np.int8, np.uint8, np.int16)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 1e-38], np.float32)


class Random:
    """Random arrays from a generator of their own."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = rng(seed)

    def normal(self, *shape: int, scale: float = 3.0) -> Array:
        """Normal float32 numbers."""
        return (self._rng.standard_normal(shape) * scale).astype(np.float32)

    def positive(self, *shape: int) -> Array:
        """float32 numbers from 0.1 to 4."""
        return self._rng.uniform(0.1, 4.0, shape).astype(np.float32)

    def integers(self, *shape: int, low: int = -9, high: int = 10, dtype: Any = np.int32) -> Array:
        """Integers of ``[low, high)``."""
        return np.asarray(self._rng.integers(low, high, shape)).astype(dtype)

    def bools(self, *shape: int) -> Array:
        """Booleans."""
        return np.asarray(self._rng.integers(0, 2, shape)).astype(np.bool_)

    def of(self, type_: TensorType, *shape: int) -> Array:
        """Values of any type, small enough for all of them."""
        if type_ == TensorType.STRING:
            letters = np.array([b"", b"a", b"bc", b"def"], np.object_)
            return np.asarray(letters[self._rng.integers(0, 4, shape)], np.object_)
        if type_ == TensorType.FLOAT32:
            return self.normal(*shape)
        low = -9 if type_.dtype.kind in "if" else 0
        high = 2 if type_ == TensorType.BOOL else 10
        return self.integers(*shape, low=low, high=high, dtype=type_.dtype)


def i32(*values: Any) -> Array:
    """A vector (or, from one list, an array) of int32."""
    return np.array(values[0] if len(values) == 1 and isinstance(values[0], list) else values, np.int32)


def scalar(value: float, dtype: Any = np.int32) -> Array:
    """A tensor of rank 0."""
    return np.array(value, dtype)


def unfit(*arrays: Array) -> str | None:
    """Return why no device takes a case with these inputs, None if one may."""
    if any(array.size == 0 for array in arrays):
        return "no elements"
    if any(array.dtype not in _ON_DEVICE for array in arrays):
        return "type"
    return None
