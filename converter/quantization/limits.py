"""Constants that integers are compared with, rounded so that the answers are those of the real numbers.

x > 0.1 is true from the first multiple of the scale above 0.1 on: of the integers below, the highest is the limit.
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
"""How a limit in the scale of the other operand is rounded, by its position."""

_NEARLY = 1e-4  # steps: a limit that is as near to an integer as this is that integer


def limit(data: Array, scale: float, rounding: _Round) -> Array:
    """Return real numbers that are multiples of a scale, of which rounding to the nearest makes the right integers."""
    steps = data.astype(np.float64) / scale
    nearest = np.rint(steps)
    rounded = np.where(np.abs(steps - nearest) < _NEARLY, nearest, rounding(steps))
    return (rounded * scale).astype(np.float32)
