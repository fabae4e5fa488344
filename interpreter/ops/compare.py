"""Comparisons of two inputs that broadcast, element by element."""

import numpy as np

from litecl.interpreter.ops import types
from litecl.interpreter.ops.binary import binary
from litecl.interpreter.schema import TensorType

_ORDERED = (*types.NUMBER, TensorType.UINT8, TensorType.INT8, TensorType.INT16)
_ANY = (*_ORDERED, TensorType.BOOL, TensorType.STRING)

EQUAL = binary("EQUAL", np.equal, _ANY, range(1, 6), TensorType.BOOL)
NOT_EQUAL = binary("NOT_EQUAL", np.not_equal, _ANY, range(1, 5), TensorType.BOOL)
GREATER = binary("GREATER", np.greater, _ORDERED, range(1, 3), TensorType.BOOL)
GREATER_EQUAL = binary("GREATER_EQUAL", np.greater_equal, _ORDERED, range(1, 4), TensorType.BOOL)
LESS = binary("LESS", np.less, _ORDERED, range(1, 4), TensorType.BOOL)
LESS_EQUAL = binary("LESS_EQUAL", np.less_equal, _ORDERED, range(1, 3), TensorType.BOOL)
