"""Lets readers of one part of a pack read that part: models pack the caches of their layers, and unpack them."""

from litecl.converter.graph import Function, Node, Value


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
    """Return the part that ``x[:, i, ...]`` takes, None where a slice takes anything else."""
    begin, steps = node.input(1).data, node.input(3).data
    masks = {
        name: node.attrs.get(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    if begin is None or steps is None or masks["new_axis"]:
        return None
    found, at = None, 0
    for i in range(begin.size):
        if masks["ellipsis"] >> i & 1:
            at += (node.input(0).rank or 0) - begin.size
        elif masks["shrink_axis"] >> i & 1 and at == axis:
            found = int(begin[i])
        elif not (masks["begin"] & masks["end"]) >> i & 1 or steps[i] != 1:
            return None
        at += 1
    return None if found is None or not -len(parts) <= found < len(parts) else [parts[found]]
