"""Merges equal small constants, and equal nodes with the same operands."""

from collections.abc import Hashable

from litecl.converter.graph import Function, Node, Value
from litecl.interpreter.op import Op
from litecl.interpreter.ops.variables import VAR_HANDLE

_SMALL = 64


def merge_duplicates(function: Function) -> None:
    """Keep the first of each set of equal nodes."""
    constants: dict[Hashable, Value] = {}
    nodes: dict[Hashable, Node] = {}
    for node in function.nodes:
        node.rewire([None if value is None else _first(value, constants) for value in node.inputs])
        if not _is_repeatable(node):
            continue
        kept = nodes.setdefault((node.op, node.inputs, node.options, len(node.outputs)), node)
        if kept is not node:
            function.replace_node(node, kept.outputs)
    function.tidy()


def _is_repeatable(node: Node) -> bool:
    """Return whether equal operands give equal results, and no tensor is a state that an operator changes in place."""
    if not isinstance(node.op, Op) or node.op.states or not (node.op.pure or node.op is VAR_HANDLE):
        return False
    return not any(value is not None and value.is_state for value in (*node.inputs, *node.outputs))


def _first(value: Value, constants: dict[Hashable, Value]) -> Value:
    data = value.data
    if data is None or data.size > _SMALL or data.dtype.hasobject:
        return value
    return constants.setdefault((value.type, data.shape, data.tobytes()), value)
