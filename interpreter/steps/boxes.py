"""Finds the box that an operator slices from its operand."""

from collections.abc import Callable

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Node
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.pack import UNPACK
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.split import SPLIT
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, index_of
from litecl.interpreter.steps.links import Links


@dataclass(frozen=True)
class Box:
    """The elements of a tensor from ``begin`` on, ``size`` along each dimension."""

    source: int
    begin: tuple[int, ...]
    size: tuple[int, ...]


def box_of(links: Links, tensor: int) -> Box | None:
    """Return the box of another tensor that a tensor holds, in element order; the last dimension must be kept."""
    node = links.producer(tensor)
    cut = None if node is None else _CUTS.get(node.op)
    box = None if node is None or cut is None else cut(links, node, tensor)
    return box if box is not None and links.shape(tensor)[-1:] == box.size[-1:] else None


def _slice(links: Links, node: Node, tensor: int) -> Box | None:
    shape = links.shape(node.inputs[0])
    begin, size = (links.integers(t) for t in node.inputs[1:3])
    if begin is None or size is None or not shape:
        return None
    sizes = (dim - b if s == -1 else s for dim, b, s in zip(shape, begin, size, strict=True))
    return Box(node.inputs[0], tuple(begin), tuple(sizes))


def _strided(links: Links, node: Node, tensor: int) -> Box | None:
    x, *bounds = node.inputs
    shape, known = links.shape(x), [integers for t in bounds if (integers := links.integers(t)) is not None]
    if len(known) != len(bounds) or not shape:
        return None
    parts = index_of(node.options, shape, list(zip(*known, strict=True)))
    ranges = [
        range(dim)[part] if isinstance(part, slice) else range(part, part + 1)
        for dim, part in zip(shape, [part for part in parts if part is not None], strict=True)
    ]
    if None in parts or any(r.step != 1 for r in ranges):
        return None
    return Box(x, tuple(r.start for r in ranges), tuple(map(len, ranges)))


def _unpacked(links: Links, node: Node, tensor: int) -> Box | None:
    return _part(links, node.inputs[0], node.options.axis, node, tensor)


def _split(links: Links, node: Node, tensor: int) -> Box | None:
    axis = links.integers(node.inputs[0])
    return None if axis is None else _part(links, node.inputs[1], axis[0], node, tensor)


def _part(links: Links, x: int, axis: int, node: Node, tensor: int) -> Box | None:
    """Return one of a node's equal parts along an axis."""
    begin, size = [0] * len(links.shape(x)), list(links.shape(x))
    if not size:
        return None
    size[axis] //= len(node.outputs)
    begin[axis] = size[axis] * node.outputs.index(tensor)
    return Box(x, tuple(begin), tuple(size))


_CUTS: dict[Op | ControlOp, Callable[[Links, Node, int], Box | None]] = {
    SLICE: _slice,
    STRIDED_SLICE: _strided,
    UNPACK: _unpacked,
    SPLIT: _split,
}
