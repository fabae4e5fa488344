"""Makes loops that write rows of a list of open length work for length 0 too.

LiteRT prepares the body even if it never runs, and DYNAMIC_UPDATE_SLICE then refuses a row for an empty list. So such a
list gets at least one row, and results are cut to its length after the loop.
"""

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import MAXIMUM
from litecl.interpreter.ops.control import WHILE
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.slice import SLICE

_MOST = 5  # dimensions of LiteRT's SLICE


def keep_a_row(function: Function) -> None:
    """Give lists in a function's loops at least one row."""
    for loop in [node for node in function.nodes if node.op is WHILE]:
        for position, value in enumerate(loop.inputs):
            fill = None if value is None else value.producer
            if fill is not None and fill.op is FILL and _is_open(fill) and _only_writes_rows(loop, position):
                _lengthen(function, loop, position, fill)
    function.tidy()


def _is_open(fill: Node) -> bool:
    shape = fill.output.shape
    return shape is not None and 0 < len(shape) <= _MOST and shape[0] is None and fill.input(0).data is None


def _only_writes_rows(loop: Node, position: int) -> bool:
    """Return whether a step only writes rows to a list, and the condition doesn't read it."""
    cond, body = loop.bodies
    value, result = body.inputs[position], body.outputs[position]
    if cond.inputs[position].users or cond.is_output(cond.inputs[position]):
        return False
    while value is not result:
        writer = body.only_user(value)
        if writer is None or writer.op is not DYNAMIC_UPDATE_SLICE or writer.input(0) is not value:
            return False
        if (writer.input(1).shape or (None,))[0] != 1 or writer.inputs.count(value) > 1:
            return False
        value = writer.output
    return not value.users and value is not body.inputs[position] and body.outputs.count(value) == 1


def _lengthen(function: Function, loop: Node, position: int, fill: Node) -> None:
    sizes, result = fill.input(0), loop.outputs[position]
    rank, name = len(fill.output.shape or ()), fill.name
    least = constant(np.array([1] + [0] * (rank - 1), sizes.type.dtype), name)
    longer, rows = Value(sizes.type, sizes.shape, name), Value(result.type, result.shape, name)
    function.add(Node(MAXIMUM, [sizes, least], [longer], NoOptions(), name), before=loop)
    function.add(Node(FILL, [longer, fill.input(1)], [rows], NoOptions(), name), before=loop)
    loop.rewire([rows if i == position else value for i, value in enumerate(loop.inputs)])
    if not (result.users or function.is_output(result)):
        return
    cut = Value(result.type, result.shape, result.name)
    function.replace(result, cut)
    begin = constant(np.zeros(rank, sizes.type.dtype), name)
    function.add(Node(SLICE, [result, begin, sizes], [cut], NoOptions(), name))
