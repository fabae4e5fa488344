"""The claim that kernels of float32 arithmetic share."""

from collections.abc import Sequence

from litecl.delegate.cl_op import Refusal
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.schema import TensorType


def refusal(inputs: Sequence[TensorSpec | None], *positions: int) -> Refusal | None:
    """A refusal if one of the inputs at these positions is given and not float32."""
    for position in positions:
        spec = inputs[position] if position < len(inputs) else None
        if spec is not None and spec.type != TensorType.FLOAT32:
            return Refusal(f"input {position} is {spec.type.name}; the kernel computes with FLOAT32")
    return None
