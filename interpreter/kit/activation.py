"""The activations that an operator may fuse to its result (``fused_activation_function``)."""

from collections.abc import Callable

import numpy as np

from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import ActivationFunctionType

_FUNCTIONS: dict[int, Callable[[Array], Array]] = {
    ActivationFunctionType.NONE: lambda x: x,
    ActivationFunctionType.RELU: lambda x: np.maximum(x, 0),
    ActivationFunctionType.RELU_N1_TO_1: lambda x: x.clip(-1, 1),
    ActivationFunctionType.RELU6: lambda x: x.clip(0, 6),
    ActivationFunctionType.TANH: np.tanh,
    ActivationFunctionType.SIGN_BIT: lambda x: np.signbit(x).astype(x.dtype),
}


def apply(function: int, x: Array) -> Array:
    """``function`` of every element, in the type of ``x``. Raises UnsupportedOp for a code that the schema does
    not have.
    """
    compute = _FUNCTIONS.get(function)
    if compute is None:
        raise UnsupportedOp(f"expected a fused activation of 0 to {max(_FUNCTIONS)}, got {function}")
    return compute(x)
