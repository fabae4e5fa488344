"""Comparisons of two inputs that broadcast, element by element."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import quantized_binary as quantized
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import COMPARING
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, Lowest, Op, Run
from litecl.interpreter.ops.binary import binary
from litecl.interpreter.schema import TensorType

_ORDERED = (*types.NUMBER, TensorType.INT16)
_ANY = (*_ORDERED, TensorType.BOOL, TensorType.STRING)


def _compare(
    name: str,
    ufunc: Callable[..., Any],
    allowed: Collection[TensorType],
    versions: range,
    lowest: Lowest,
) -> Op:
    """Return the comparison of plain numbers, and of the real numbers that quantized ones represent.

    Except for EQUAL and NOT_EQUAL, 16-bit integers are compared unscaled, as in TensorFlow Lite (comparisons.cc).
    """
    rescaled = quantized.compare(ufunc)
    as_they_are = () if name in ("EQUAL", "NOT_EQUAL") else (TensorType.INT16,)

    def raw(options: Any, inputs: Inputs) -> list[Array]:
        return [np.asarray(ufunc(*require.arrays(inputs, 2)))]

    def bound(options: Any, a: TensorSpec, b: TensorSpec, output: TensorSpec) -> Run:
        return raw if a.type in as_they_are else rescaled(options, a, b, output)

    plain = (*allowed, TensorType.INT8, TensorType.UINT8)
    return binary(name, ufunc, plain, versions, TensorType.BOOL, quantized.QUANTIZED, bound, lowest, COMPARING)


EQUAL = _compare(
    "EQUAL",
    np.equal,
    _ANY,
    range(1, 6),
    lowest=lowest.most(lowest.by_type({TensorType.STRING: 3}), lowest.integers(2, 4)),
)
NOT_EQUAL = _compare(
    "NOT_EQUAL",
    np.not_equal,
    _ANY,
    range(1, 5),
    lowest=lowest.most(lowest.by_type({TensorType.STRING: 3}), lowest.integers(2)),
)
GREATER = _compare(
    "GREATER",
    np.greater,
    (*_ORDERED, TensorType.BFLOAT16),
    range(1, 3),
    lowest=lowest.integers(2),
)
GREATER_EQUAL = _compare("GREATER_EQUAL", np.greater_equal, _ORDERED, range(1, 4), lowest=lowest.integers(2, 3))
LESS = _compare(
    "LESS",
    np.less,
    (*_ORDERED, TensorType.BFLOAT16),
    range(1, 4),
    lowest=lowest.integers(2, 3),
)
LESS_EQUAL = _compare("LESS_EQUAL", np.less_equal, _ORDERED, range(1, 3), lowest=lowest.integers(2))
