"""Removes operators that pass on their operand unchanged during inference."""

import numpy as np

from litecl.converter.graph import Function, Node, Value

_PASS_THROUGH = frozenset(
    {
        "CheckNumerics",
        "EnsureShape",
        "GuaranteeConst",
        "Identity",
        "IdentityN",
        "OptimizationBarrier",
        "PlaceholderWithDefault",
        "PreventGradient",
        "Snapshot",
        "StopGradient",
    }
)


def remove_identities(function: Function) -> bool:
    """Bypass identities, and reshapes, transposes, slices and casts that change nothing; return whether there were any.

    ShapeN becomes a Shape per tensor, which later passes look for.
    """
    changed = False
    for node in list(function.nodes):
        if node.op in _PASS_THROUGH:
            _forward(function, node)
        elif node.op in _UNCHANGED and _UNCHANGED[node.op](node):
            _forward(function, node, 1)
        elif node.op == "ShapeN":
            _shape_by_shape(function, node)
        else:
            continue
        changed = True
    function.tidy()
    return changed


def _shape_by_shape(function: Function, node: Node) -> None:
    pairs = zip((value for value in node.inputs if value is not None), node.outputs, strict=True)
    attrs = {"out_type": node.attrs["out_type"]}
    function.replace_node(node, [function.emit("Shape", [x], shape, node.name, **attrs) for x, shape in pairs])


def _forward(function: Function, node: Node, count: int | None = None) -> None:
    values = [value for value in node.inputs[:count] if value is not None]
    for old, new in zip(node.outputs, values, strict=True):
        if new.shape is None or (old.shape is not None and old.rank == new.rank and None in new.shape):
            new.shape = _merged(new, old)
    function.replace_node(node, values)


def _merged(known: Value, other: Value) -> tuple[int | None, ...] | None:
    """Return the shape that two descriptions of one tensor give together."""
    if known.shape is None or other.shape is None:
        return known.shape if other.shape is None else other.shape
    return tuple(b if a is None else a for a, b in zip(known.shape, other.shape, strict=True))


def _same_shape(node: Node) -> bool:
    """Return whether a reshape keeps the shape: the shapes agree, with at most one unknown dimension."""
    before, after = node.input(0).shape, node.output.shape
    return before is not None and before == after and before.count(None) <= 1


def _same_order(node: Node) -> bool:
    order = node.input(1).data
    return order is not None and order.tolist() == sorted(order.tolist())


def _same_type(node: Node) -> bool:
    return node.input(0).type == node.output.type


def _takes_all(node: Node) -> bool:
    """Return whether a slice of step 1 takes its whole operand."""
    shape = node.input(0).static_shape
    if shape is None or shape != node.output.static_shape:
        return False
    strides = node.input(3).data if node.op == "StridedSlice" else np.ones(1)
    return strides is not None and bool(np.all(strides == 1)) and not node.attrs.get("new_axis_mask")


_UNCHANGED = {
    "Slice": _takes_all,
    "StridedSlice": _takes_all,
    "Reshape": _same_shape,
    "Squeeze": _same_shape,
    "Transpose": _same_order,
    "Cast": _same_type,
}
