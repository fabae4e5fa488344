"""Activations as launches of their own: of a node that is one, and where a producer would waste vectors on it."""

from dataclasses import replace

from litecl.delegate.cl_op import Activation, Call, Launch, Operand, Step, Target
from litecl.delegate.claims import C_TYPES
from litecl.delegate.launch import elements
from litecl.delegate.tile import Tile

_WORTH_VECTORS = 8  # saved ones that pay for a launch in a region


def activated(x: Operand, y: Operand, activation: Activation, target: Target, function: str = "ACTIVATE") -> Launch:
    """y = activation(x), or another function of unary.cl; x and y may be the same."""
    share = elements(y.spec.size, target)
    defines = {"T": C_TYPES[y.spec.type], "OP": function, **activation.defines}
    return share.launch("unary", "unary", (x, y, *share.args, *activation.bounds), defines, y.spec.size)


def apart(call: Call, rows: int, columns: int, tile: Tile) -> tuple[Call, list[Step]]:
    """A product's call without an activation that had better come after it, and the launch that applies it.

    A register tile ends in vectors of its own width, row by row, which hold little where rows are short.
    """
    y = call.outputs[0]
    saved = rows * -(-columns // tile.width) - -(-rows * columns // call.target.vector_width)
    dense = y.row_step is None
    if call.target.kind == "gpu" or call.activation.function == "CLAMP" or saved < _WORTH_VECTORS or not dense:
        return call, []
    return replace(call, activation=Activation()), [activated(y, y, call.activation, call.target)]
