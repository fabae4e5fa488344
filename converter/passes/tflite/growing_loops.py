"""Makes LiteRT run loops whose state grows from nothing.

LiteRT decides before a loop runs whether state shapes change. Since it adds up first dimensions, it mistakes zero rows
that become one for a scalar that becomes [1], and fails at run time.
"""

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.control import WHILE
from litecl.interpreter.ops.pad import PAD, PADV2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE


def show_growth(function: Function) -> None:
    """Give loops whose growth LiteRT may miss an unused state that visibly grows."""
    for node in function.nodes:
        if node.op is WHILE and any(_may_be_overlooked(node, i) for i in range(len(node.inputs))):
            _add_state(node)


def _may_be_overlooked(loop: Node, position: int) -> bool:
    """Return whether a state may go from zero rows to one in a step, or back."""
    _, body = loop.bodies
    start, argument, result = loop.input(position).shape, body.inputs[position], body.outputs[position]
    if not start or not argument.shape or result is argument:
        return False
    maker = result.producer if result.producer is not None and argument in result.producer.inputs else None
    if start[0] is None:  # mostly a batch, which doesn't change
        return maker is not None and _changes_rows(maker)
    joined = maker is not None and maker.op is CONCATENATION
    return argument.shape[0] is None and (start[0] == 0 or (start[0] == 1 and not joined))


def _changes_rows(node: Node) -> bool:
    """Return whether the result certainly has other rows than the operand. LiteRT sees this if sizes are computed."""
    sizes = [None if value is None or value.data is None else value.data.reshape(-1) for value in node.inputs[1:]]
    if node.op is CONCATENATION:
        return bool(node.options.axis % (node.output.rank or 1) == 0)
    if node.op in (PAD, PADV2):
        return sizes[0] is not None and bool(sizes[0][:2].any())
    begin, end = sizes[:2] if node.op in (SLICE, STRIDED_SLICE) else (None, None)
    if begin is None or end is None or not begin.size:
        return False
    if node.op is SLICE:
        return bool(begin[0] or end[0] >= 0)
    whole = (node.options.begin_mask & 1 or begin[0] == 0) and node.options.end_mask & 1
    return not (whole or node.options.ellipsis_mask & 1 or node.options.new_axis_mask & 1)


def _add_state(loop: Node) -> None:
    before, after = (constant(np.zeros(n, np.int32), "grows") for n in (2, 3))
    for graph in loop.bodies:
        graph.inputs.append(Value(before.type, (None,), "grows"))
    loop.bodies[1].outputs.append(after)
    result = Value(before.type, (None,), "grows")
    result.producer = loop
    loop.outputs = (*loop.outputs, result)
    loop.rewire([*loop.inputs, before])
