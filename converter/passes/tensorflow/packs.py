"""Bypasses packs: models pack the caches of their layers, and unpack them."""

from litecl.converter.graph import Function, Node, Value
from litecl.converter.strided import MASKS, axis_bounds


def forward_packs(function: Function) -> None:
    """Replace an Unpack of a Pack along its axis, and an index into it, by the packed values."""
    for node in list(function.nodes):
        if node.op not in ("Unpack", "StridedSlice"):
            continue
        pack = node.input(0).producer
        if pack is None or pack.op != "Pack" or node.input(0).rank is None:
            continue
        axis = pack.attrs["axis"] % (node.input(0).rank or 1)
        parts = [pack.input(i) for i in range(len(pack.inputs))]
        taken = _unpacked(node, axis, parts) if node.op == "Unpack" else _indexed(node, axis, parts)
        if taken is not None:
            function.replace_node(node, taken)
    function.tidy()


def _unpacked(node: Node, axis: int, parts: list[Value]) -> list[Value] | None:
    return parts if node.attrs["axis"] % (node.input(0).rank or 1) == axis else None


def _indexed(node: Node, axis: int, parts: list[Value]) -> list[Value] | None:
    """Return the part that ``x[:, i, ...]`` takes; None for other slices."""
    begin, steps = node.input(1).data, node.input(3).data
    masks = {name: node.attrs.get(name, 0) for name in MASKS}
    if begin is None or steps is None or masks["new_axis_mask"]:
        return None
    index = None
    for at, i in enumerate(axis_bounds(begin.size, node.input(0).rank or 0, masks)):
        if i is not None and masks["shrink_axis_mask"] >> i & 1 and at == axis:
            index = int(begin[i])
        elif i is not None and (not (masks["begin_mask"] & masks["end_mask"]) >> i & 1 or steps[i] != 1):
            return None
    return None if index is None or not -len(parts) <= index < len(parts) else [parts[index]]
