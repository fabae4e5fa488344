"""Activations as launches of their own: of a node that is one, and where a producer would waste vectors on it."""

from dataclasses import replace

from litecl.delegate.cl_op import Activation, Call, Launch, Operand, Step, Target
from litecl.delegate.claims import C_TYPES
from litecl.delegate.launch import elements

_WORTH_VECTORS = 8  # saved ones that pay for a launch in a region


def activated(x: Operand, y: Operand, activation: Activation, target: Target, function: str = "ACTIVATE") -> Launch:
    """y = activation(x), or another function of unary.cl; x and y may be the same."""
    share = elements(y.spec.size, target)
    defines = {"T": C_TYPES[y.spec.type], "OP": function, **activation.defines}
    return share.launch("unary", "unary", (x, y, *share.args, *activation.bounds), defines, y.spec.size)


def apart(call: Call, rows: int, columns: int) -> tuple[Call, list[Step]]:
    """A product's call without an activation that had better come after it, and the launch that applies it.

    A register tile ends in whole vectors row by row, which are mostly padding where rows are short.
    """
    width = call.target.vector_width
    saved = rows * -(-columns // width) - -(-rows * columns // width)
    if call.target.kind == "gpu" or call.activation.function == "CLAMP" or saved < _WORTH_VECTORS:
        return call, []
    y = call.outputs[0]
    return replace(call, activation=Activation()), [activated(y, y, call.activation, call.target)]
