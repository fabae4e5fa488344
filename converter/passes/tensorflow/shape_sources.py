"""Makes operators that only use a tensor's shape read an earlier tensor of the same shape.

Keras runs the first step of a recurrent layer an extra time to make zeros like its result; this makes that step dead.
"""

from litecl.converter.graph import Function, Node, Value
from litecl.converter.passes.sizes import Sizes, known_sizes

_LOOK_AT_SHAPES = ("Shape", "ZerosLike", "OnesLike")


def use_shape_sources(function: Function) -> None:
    """Rewire them to the earliest ancestor of the operand that certainly has the same size."""
    sizes = known_sizes(function)
    order = {node: i for i, node in enumerate(function.nodes)}
    for node in function.nodes:
        if node.op in _LOOK_AT_SHAPES and node.input(0).shape is not None:
            source = min(_alike(node, sizes), key=lambda value: order.get(value.producer, -1))  # type: ignore[arg-type]
            node.rewire([source, *node.inputs[1:]])
    function.tidy()


def _alike(node: Node, sizes: Sizes) -> list[Value]:
    """Return the operand and its ancestors that can replace it."""
    operand = node.input(0)
    wanted = sizes.dimensions(operand)
    alike: list[Value] = [operand]
    seen: set[Value] = set()
    pending: list[Value | None] = [operand]
    while pending:
        value = pending.pop()
        if value is None or value in seen or value.data is not None or value.variable is not None:
            continue
        seen.add(value)
        pending += value.producer.inputs if value.producer is not None else ()
        same_type = value.type == operand.type or node.op == "Shape"
        if same_type and value.rank == operand.rank and sizes.dimensions(value) == wanted:
            alike.append(value)
    return alike
