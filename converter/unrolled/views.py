"""Columns and steps: which part of another tensor one holds."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from litecl.converter.unrolled.links import Links
from litecl.interpreter.graph import Node
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.split import SPLIT
from litecl.interpreter.ops.transpose import TRANSPOSE

SWAPPED = [1, 0, 2]


@dataclass(frozen=True)
class Columns:
    """The columns [first, first + count) of all rows of a tensor, whose last dimension is a row."""

    source: int
    first: int
    count: int

    def part(self, first: int, count: int) -> "Columns":
        """Return some of the columns."""
        return replace(self, first=self.first + first, count=count)


@dataclass(frozen=True)
class Sequence:
    """A tensor [T,B,F], axis 0, or [B,T,F], axis 1, of steps; backwards: the last step is the first."""

    tensor: int
    axis: int
    backwards: bool = False


@dataclass(frozen=True)
class Step:
    """Columns of one step of a sequence."""

    sequence: Sequence
    index: int
    first: int
    count: int


def columns(links: Links, tensor: int) -> Columns:
    """Return the columns that a tensor holds of one further up, the rows in the same order."""
    shape = links.shape(tensor)
    found = Columns(tensor, 0, shape[-1] if shape else 0)
    while (node := links.producer(found.source)) is not None and found.count:
        walk = _WALKS.get(node.op)
        further = None if walk is None else walk(links, node, found)
        if further is None:
            break
        found = further
    return found


def root(links: Links, tensor: int) -> int:
    """Return the tensor that has the same rows, under another shape."""
    found = columns(links, tensor)
    return found.source if links.shape(found.source)[-1:] == (found.count,) else tensor


def step_of(links: Links, found: Columns) -> Step | None:
    """Return the step of a sequence that columns are a part of."""
    node = links.made_by(found.source, SLICE)
    box = None if node is None else _box(links, node)
    if node is None or box is None:
        return None
    shape, (begin, size) = links.shape(node.inputs[0]), box
    axes = [axis for axis in (0, 1) if size[axis] != shape[axis]] if len(shape) == 3 else []
    if len(axes) != 1 or size[axes[0]] != 1:
        return None
    sequence = Sequence(node.inputs[0], axes[0])
    return Step(sequence, begin[axes[0]], begin[-1] + found.first, found.count)


def origin(links: Links, sequence: Sequence) -> Sequence:
    """Return the sequence that one is reversed or transposed from."""
    while (node := links.producer(sequence.tensor)) is not None:
        if node.op is REVERSE_V2 and links.integers(node.inputs[1]) == [sequence.axis]:
            sequence = Sequence(node.inputs[0], sequence.axis, not sequence.backwards)
        elif node.op is TRANSPOSE and links.integers(node.inputs[1]) == SWAPPED:
            sequence = replace(sequence, tensor=node.inputs[0], axis=1 - sequence.axis)
        elif (axis := _axis_before(links, node, sequence.axis)) is not None:
            sequence = replace(sequence, tensor=node.inputs[0], axis=axis)
        else:
            break
    return sequence


def axis_within(links: Links, source: int, outer: Sequence) -> int | None:
    """Return the axis of time of a tensor [_,_,F] whose rows, in their order, are those of a sequence."""
    shape, steps = links.shape(source), links.shape(outer.tensor)
    if len(shape) != 3 or len(steps) != 3:
        return None
    if shape[:2] == steps[:2]:
        return outer.axis
    return 1 - outer.axis if shape[:2] == steps[1::-1] and 1 in shape[:2] else None


def _axis_before(links: Links, node: Node, axis: int) -> int | None:
    """Return the axis of time before a RESHAPE that only moves a dimension of 1."""
    x, made = (links.shape(t) for t in (node.inputs[0], node.outputs[0]))
    moved = node.op is RESHAPE and len(x) == len(made) == 3 and x[2] == made[2] and x[:2] == made[1::-1]
    return 1 - axis if moved and 1 in x[:2] else None


def _box(links: Links, node: Node) -> tuple[list[int], list[int]] | None:
    """Return begin and size of a SLICE, for each dimension."""
    shape = links.shape(node.inputs[0])
    begin, size = (links.integers(t) for t in node.inputs[1:3])
    if begin is None or size is None or not shape:
        return None
    return begin, [dim - b if s == -1 else s for dim, b, s in zip(shape, begin, size, strict=True)]


def _same_rows(links: Links, node: Node, found: Columns) -> Columns | None:
    x, made = links.shape(node.inputs[0]), links.shape(node.outputs[0])
    return replace(found, source=node.inputs[0]) if x[-1:] == made[-1:] and x and made else None


def _sliced(links: Links, node: Node, found: Columns) -> Columns | None:
    box, shape = _box(links, node), links.shape(node.inputs[0])
    if box is None or tuple(box[1][:-1]) != shape[:-1]:
        return None
    return Columns(node.inputs[0], box[0][-1] + found.first, found.count)


def _split(links: Links, node: Node, found: Columns) -> Columns | None:
    axis, x = links.integers(node.inputs[0]), node.inputs[1]
    shape = links.shape(x)
    if not shape or axis not in ([-1], [len(shape) - 1]):
        return None
    part = shape[-1] // len(node.outputs)
    return Columns(x, node.outputs.index(found.source) * part + found.first, found.count)


_WALKS: dict[Op | ControlOp, Callable[[Links, Node, Columns], Columns | None]] = {
    **dict.fromkeys((RESHAPE, SQUEEZE, EXPAND_DIMS), _same_rows),
    SLICE: _sliced,
    SPLIT: _split,
}
