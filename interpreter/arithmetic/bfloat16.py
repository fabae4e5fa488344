"""BFLOAT16: the upper half of a float32. Arrays hold the bits as uint16; kernels compute in float32."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Run
from litecl.interpreter.schema import TensorType

_NAN = 0x7FC0


def widen(x: Array) -> Array:
    """Return the same values as float32."""
    return (x.astype(np.uint32) << np.uint32(16)).view(np.float32)


def narrow(x: Array) -> Array:
    """Return the nearest BFLOAT16 values, ties to even."""
    wide = np.ascontiguousarray(x, np.float32).reshape(x.shape)
    bits = wide.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(wide), _NAN, rounded).astype(np.uint16)


def bind(run: Callable[..., list[Array]], inputs: Sequence[TensorSpec], output: TensorSpec) -> Run | None:
    """Wrap a float32 kernel for BFLOAT16 inputs; return None if the first one is of another type."""
    if inputs[0].type != TensorType.BFLOAT16:
        return None

    def bound(options: object, values: Inputs) -> list[Array]:
        (result,) = run(options, [None if x is None else widen(x) for x in values])
        return [narrow(result) if output.type == TensorType.BFLOAT16 else result]

    return bound
