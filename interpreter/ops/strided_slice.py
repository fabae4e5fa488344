"""STRIDED_SLICE: Python's slicing, with the parts of the index in three tensors and five masks.

Bit i of a mask refers to entry i of ``begin``, ``end`` and ``strides``, in the order in which Python would write it.
"""

from typing import Literal, NamedTuple

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class StridedSliceOptions:
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False


Entry = tuple[int | None, int | None, int | None]  # begin, end and stride, where they are known
Index = slice | int | None


class Axis(NamedTuple):
    """One part of the index: its entry in the operands, and the input dimension that it reads."""

    kind: Literal["range", "element", "whole", "new"]
    entry: int = -1
    dimension: int = -1


def axes_of(options: StridedSliceOptions, rank: int, count: int) -> list[Axis]:
    """Return the full index, with the dimensions that an ellipsis, or the end of the index, stands for."""
    ellipses = [i for i in range(count) if options.ellipsis_mask & 1 << i]
    added = [i for i in range(count) if options.new_axis_mask & ~options.ellipsis_mask & 1 << i]
    spare = rank - (count - len(ellipses) - len(added))
    if len(ellipses) > 1 or spare < 0:
        raise ShapeError(f"{len(ellipses)} ellipses, {count} indices, {len(added)} new for rank {rank}")
    axes: list[Axis] = []
    dimension = 0
    for entry in range(count):
        if entry in ellipses:
            axes += [Axis("whole", dimension=d) for d in range(dimension, dimension + spare)]
            dimension += spare
        elif entry in added:
            axes.append(Axis("new"))
        else:
            axes.append(Axis("element" if options.shrink_axis_mask & 1 << entry else "range", entry, dimension))
            dimension += 1
    return axes + [Axis("whole", dimension=d) for d in range(dimension, rank)]


def _element(size: int, begin: int) -> int:
    index = begin + size if begin < 0 else begin
    if not 0 <= index < size:
        raise ShapeError(f"index {begin} out of range for dimension {size}")
    return index


def _range(options: StridedSliceOptions, entry: int, size: int, values: tuple[int, int, int]) -> slice:
    """Return the slice of one dimension, within its bounds."""
    begin, end, stride = values
    bit = 1 << entry
    if stride == 0:
        raise ShapeError("stride 0")
    first = None if options.begin_mask & bit else begin
    if options.offset:
        end += slice(first, None, stride).indices(size)[0]
    start, stop, step = slice(first, None if options.end_mask & bit else end, stride).indices(size)
    if start < 0:
        return slice(0, 0)  # backwards from before the first element
    # Backwards through the first element, there is no number to stop at.
    return slice(start, None if stop < 0 else stop, step)


def index_of(options: StridedSliceOptions, shape: Shape, entries: list[tuple[int, int, int]]) -> tuple[Index, ...]:
    """Return the index as numpy takes it, one part for every one of ``axes_of``."""

    def part(axis: Axis) -> Index:
        match axis.kind:
            case "new":
                return None
            case "whole":
                return slice(None)
            case "element":
                begin = 0 if options.begin_mask & 1 << axis.entry else entries[axis.entry][0]
                return _element(shape[axis.dimension], begin)
            case "range":
                return _range(options, axis.entry, shape[axis.dimension], entries[axis.entry])

    return tuple(part(axis) for axis in axes_of(options, len(shape), len(entries)))


def _length(options: StridedSliceOptions, axis: Axis, shape: Shape, entries: list[Entry]) -> int | None:
    """Return the length of one dimension of the result, None if it depends on unknown values."""
    if axis.kind == "new":
        return 1
    size = shape[axis.dimension]
    if axis.kind == "whole":
        return size
    begin, end, stride = entries[axis.entry]
    masked = options.begin_mask & options.end_mask & 1 << axis.entry
    if stride is None or ((begin is None or end is None) and not masked):
        return None
    return len(range(size)[_range(options, axis.entry, size, (begin or 0, end or 0, stride))])


def _shape(options: StridedSliceOptions, shape: Shape, entries: list[Entry]) -> Shape | None:
    """Return the result's shape, None if it depends on unknown values."""
    axes = [axis for axis in axes_of(options, len(shape), len(entries)) if axis.kind != "element"]
    lengths = [_length(options, axis, shape, entries) for axis in axes]
    return None if None in lengths else tuple(length for length in lengths if length is not None)


def _infer(options: StridedSliceOptions, inputs: Specs) -> list[TensorSpec]:
    x, *operands = require.present(inputs, 4)
    count = operands[0].size
    for spec in operands:
        require.types(spec, (TensorType.INT32,))
        if spec.static_shape != (count,):
            raise ShapeError(f"begin, end and strides differ: [{count}], {list(spec.static_shape)}")
    known = [require.integers(spec) for spec in operands]
    begin, end, strides = ([None] * count if values is None else values for values in known)
    entries: list[Entry] = list(zip(begin, end, strides, strict=True))
    return [TensorSpec(x.type, _shape(options, x.static_shape, entries))]


def _run(options: StridedSliceOptions, inputs: Inputs) -> list[Array]:
    x, begin, end, strides = require.arrays(inputs, 4)
    entries = list(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True))
    # The ellipsis keeps a single element an array.
    return [x[(*index_of(options, x.shape, entries), ...)].copy()]


STRIDED_SLICE = Op(
    "STRIDED_SLICE",
    options=StridedSliceOptions,
    infer=_infer,
    run=_run,
    versions=range(1, 9),
    integers=MOVING,
    lowest=lowest.most(lowest.beyond_4(4, {TensorType.BOOL: 3, TensorType.STRING: 5}), lowest.integers(2)),
)
