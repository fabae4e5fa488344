"""Operators that no model file contains: passes combine several nodes into one."""

from dataclasses import replace
from typing import Any, Never, TypeVar

from litecl.delegate.cl_op import Activation, CallOn, Operand, Pads, Target
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op

_Target = TypeVar("_Target", bound=Target)


def composed(name: str, options: type) -> Op:
    """Return an operator that a device runs in place of several nodes; the interpreter runs the nodes."""

    def run(*given: Any) -> Never:
        raise DelegateError(f"{name} combines other nodes, and the interpreter runs those")

    return Op(name, options, infer=run, run=run)


def first_and_rest(
    call: CallOn[_Target],
    first: Any,
    rest: Any,
    between: TensorSpec,
    activation: Activation,
    pads: Pads | None = None,
) -> tuple[CallOn[_Target], CallOn[_Target]]:
    """Split the call of a fused operator into its first convolution and the rest. The call's inputs are the image,
    filter and bias of the first, then those of the rest.

    first, rest: their options. between: the spec of the tensor between them. activation, pads: the first one's.
    """
    middle, inputs = Operand(between), call.inputs
    before = replace(
        call,
        options=first,
        inputs=inputs[:3],
        outputs=[middle],
        activation=activation,
        pads=pads or Pads(),
        residual=None,
    )
    return before, replace(call, options=rest, inputs=[middle, *inputs[3:]])
