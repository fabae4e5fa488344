"""Columns and steps: parts of another tensor that a tensor holds."""

from dataclasses import replace

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Node
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.steps.boxes import box_of
from litecl.interpreter.steps.links import Links

SWAPPED = [1, 0, 2]


@dataclass(frozen=True)
class Columns:
    """The columns [first, first + count) of all rows of a tensor; its last dimension is a row."""

    source: int
    first: int
    count: int

    def part(self, first: int, count: int) -> "Columns":
        """Return some of the columns."""
        return replace(self, first=self.first + first, count=count)


@dataclass(frozen=True)
class Sequence:
    """A tensor of steps, [T,B,F] for axis 0 or [B,T,F] for axis 1; backwards: the last step comes first."""

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
    """Return the columns of an ancestor that a tensor holds, with rows in the same order."""
    shape = links.shape(tensor)
    span = Columns(tensor, 0, shape[-1] if shape else 0)
    while span.count and (further := _further(links, span)) is not None:
        span = further
    return span


def _further(links: Links, span: Columns) -> Columns | None:
    node, box = links.producer(span.source), box_of(links, span.source)
    if box is not None and box.size[:-1] == links.shape(box.source)[:-1]:
        return Columns(box.source, box.begin[-1] + span.first, span.count)
    if node is None or node.op not in (RESHAPE, SQUEEZE, EXPAND_DIMS):
        return None
    x, result = links.shape(node.inputs[0]), links.shape(node.outputs[0])
    return replace(span, source=node.inputs[0]) if x and x[-1:] == result[-1:] else None


def root(links: Links, tensor: int) -> int:
    """Return the ancestor with the same rows under another shape."""
    span = columns(links, tensor)
    return span.source if links.shape(span.source)[-1:] == (span.count,) else tensor


def step_of(links: Links, span: Columns) -> Step | None:
    """Return the step of a sequence that columns are part of."""
    box = box_of(links, span.source)
    if box is None or not links.is_float(span.source):
        return None
    shape = links.shape(box.source)
    axes = [axis for axis in (0, 1) if box.size[axis] != shape[axis]] if len(shape) == 3 else []
    if len(axes) != 1 or box.size[axes[0]] != 1:
        return None
    sequence = Sequence(box.source, axes[0])
    return Step(sequence, box.begin[axes[0]], box.begin[-1] + span.first, span.count)


def origin(links: Links, sequence: Sequence) -> Sequence:
    """Return the sequence before reversals and transpositions."""
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
    """Return the time axis of a tensor [_,_,F] whose rows are those of a sequence, in order."""
    shape, steps = links.shape(source), links.shape(outer.tensor)
    if len(shape) != 3 or len(steps) != 3:
        return None
    if shape[:2] == steps[:2]:
        return outer.axis
    return 1 - outer.axis if shape[:2] == steps[1::-1] and 1 in shape[:2] else None


def _axis_before(links: Links, node: Node, axis: int) -> int | None:
    """Return the time axis before a RESHAPE that only moves a dimension of 1."""
    x, result = (links.shape(t) for t in (node.inputs[0], node.outputs[0]))
    moved = node.op is RESHAPE and len(x) == len(result) == 3 and x[2] == result[2] and x[:2] == result[1::-1]
    return 1 - axis if moved and 1 in x[:2] else None
