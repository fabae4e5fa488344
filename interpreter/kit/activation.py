"""The activations that an operator may fuse into its result (``fused_activation_function``)."""

from collections.abc import Callable

import numpy as np

from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs
from litecl.interpreter.schema import ActivationFunctionType


def relu(x: Array) -> Array:
    """Return the larger of every element and 0, keeping -0 and NaN: numpy's maximum leaves these to the processor."""
    return np.where(x < 0, x.dtype.type(0), x)


_FUNCTIONS: dict[int, Callable[[Array], Array]] = {
    ActivationFunctionType.NONE: lambda x: x,
    ActivationFunctionType.RELU: relu,
    ActivationFunctionType.RELU_N1_TO_1: lambda x: x.clip(0 if x.dtype.kind == "u" else -1, 1),
    ActivationFunctionType.RELU6: lambda x: x.clip(0, 6),
    ActivationFunctionType.TANH: np.tanh,
    ActivationFunctionType.SIGN_BIT: lambda x: np.signbit(x).astype(x.dtype),
}
_OF_FLOATS = (ActivationFunctionType.TANH, ActivationFunctionType.SIGN_BIT)


def apply(function: int, x: Array) -> Array:
    """Apply ``function`` to every element, in the type of ``x``.

    Raises UnsupportedOp for a code that is not in the schema, for TANH and SIGN_BIT of integers and for any activation
    of complex numbers.
    """
    compute = _FUNCTIONS.get(function)
    if compute is None:
        raise UnsupportedOp(f"expected a fused activation of 0 to {max(_FUNCTIONS)}, got {function}")
    if (function in _OF_FLOATS and x.dtype.kind in "iu") or (function and x.dtype.kind == "c"):
        raise UnsupportedOp(f"no kernel for fused {ActivationFunctionType(function).name} of {x.dtype}")
    return compute(x)


def finish(result: Array, inputs: Inputs, position: int, function: int) -> Array:
    """Add the bias at a position of the inputs, if given, in place; return the result of the fused activation."""
    bias = require.optional(inputs, position)
    if bias is not None:
        result += bias.reshape(1, -1)
    return apply(function, result)
