"""Loops whose state grows from nothing, as LiteRT runs them.

LiteRT decides before a loop runs whether its states change their shapes. It takes no rows that become one for a scalar
that becomes [1], because it adds up first dimensions, and fails when the loop runs.
"""

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.control import WHILE
from litecl.interpreter.ops.pad import PAD, PADV2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE

_RESIZING = (CONCATENATION, PAD, PADV2, SLICE, STRIDED_SLICE)


def show_growth(function: Function) -> None:
    """Give loops whose growth LiteRT may overlook a state that visibly grows, which nothing reads."""
    for node in function.nodes:
        if node.op is WHILE and any(_may_be_overlooked(node, i) for i in range(len(node.inputs))):
            _add_state(node)


def _may_be_overlooked(loop: Node, position: int) -> bool:
    """Return whether a state may have no rows before a step and one after it, or the other way round."""
    _, body = loop.bodies
    start, argument, result = loop.input(position).shape, body.inputs[position], body.outputs[position]
    if not start or not argument.shape or result is argument:
        return False
    maker = None if result.producer is None or argument not in result.producer.inputs else result.producer.op
    if start[0] is None:  # most often a batch, which stays as it is
        return maker in _RESIZING
    return argument.shape[0] is None and (start[0] == 0 or (start[0] == 1 and maker is not CONCATENATION))


def _add_state(loop: Node) -> None:
    before, after = (constant(np.zeros(n, np.int32), "grows") for n in (2, 3))
    for graph in loop.bodies:
        graph.inputs.append(Value(before.type, (None,), "grows"))
    loop.bodies[1].outputs.append(after)
    made = Value(before.type, (None,), "grows")
    made.producer = loop
    loop.outputs = (*loop.outputs, made)
    loop.rewire([*loop.inputs, before])
