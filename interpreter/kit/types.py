"""Sets of element types that operators accept, and their limits."""

from typing import Any

import numpy as np

from litecl.interpreter.schema import TensorType

FLOAT = (TensorType.FLOAT32,)
REAL = (TensorType.FLOAT32, TensorType.INT32)
NUMBER = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)
BOOL = (TensorType.BOOL,)
INDEX = (TensorType.INT32, TensorType.INT64)
BITS = (
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.UINT16,
    TensorType.INT32,
    TensorType.UINT32,
)
SUB_BYTE = {TensorType.INT4: (-8, 7), TensorType.UINT4: (0, 15), TensorType.INT2: (-2, 1)}
"""Types whose elements share bytes in files, with their limits; in memory each element takes a byte."""


def limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the smallest and the largest finite value of a numpy type."""
    if dtype.kind == "b":
        return False, True
    bounds: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return bounds.min, bounds.max


def integer_limits(type_: TensorType) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type, including those that share bytes."""
    return SUB_BYTE[type_] if type_ in SUB_BYTE else limits(type_.dtype)
