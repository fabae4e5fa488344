"""Makes one of equal small constants, and of nodes that do the same with the same operands."""

from collections.abc import Hashable

from litecl.converter.graph import Function, Node, Value
from litecl.interpreter.op import Op

_SMALL = 64


def merge_duplicates(function: Function) -> None:
    """Keeps the first of every set of equal nodes of TFLite's operators."""
    constants: dict[Hashable, Value] = {}
    nodes: dict[Hashable, Node] = {}
    for node in function.nodes:
        node.rewire([None if value is None else _first(value, constants) for value in node.inputs])
        if not isinstance(node.op, Op) or not node.op.pure or node.op.states or any(v.is_state for v in node.outputs):
            continue
        if any(value is not None and value.is_state for value in node.inputs):
            continue
        kept = nodes.setdefault((node.op, node.inputs, node.options, len(node.outputs)), node)
        if kept is not node:
            function.replace_node(node, kept.outputs)
    function.tidy()


def _first(value: Value, constants: dict[Hashable, Value]) -> Value:
    data = value.data
    if data is None or data.size > _SMALL or data.dtype.hasobject:
        return value
    return constants.setdefault((value.type, data.shape, data.tobytes()), value)
