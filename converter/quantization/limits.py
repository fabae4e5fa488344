"""Rounds constants in comparisons so that quantized comparisons are exact.

x > 0.1 holds from the first multiple of the scale above 0.1, so the limit is the highest integer below.
"""

from collections.abc import Callable, Mapping

import numpy as np

from litecl.interpreter.graph import Array
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.compare import GREATER, GREATER_EQUAL, LESS, LESS_EQUAL

_Round = Callable[[Array], Array]

LIMITS: Mapping[Op | ControlOp, tuple[_Round, _Round]] = {
    GREATER: (np.ceil, np.floor),
    LESS_EQUAL: (np.ceil, np.floor),
    LESS: (np.floor, np.ceil),
    GREATER_EQUAL: (np.floor, np.ceil),
}
"""How to round a limit in the other operand's scale, by the limit's position."""

_NEARLY = 1e-4  # steps: a limit this near to an integer counts as that integer


def limit(data: Array, scale: float, rounding: _Round) -> Array:
    """Return the limits as multiples of ``scale`` that round to the right integers."""
    steps = data.astype(np.float64) / scale
    nearest = np.rint(steps)
    rounded = np.where(np.abs(steps - nearest) < _NEARLY, nearest, rounding(steps))
    return (rounded * scale).astype(np.float32)
