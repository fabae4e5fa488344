"""STRIDED_SLICE: Python's slicing, with the parts of the index in three tensors and five masks.

Bit i of a mask speaks of entry i of ``begin``, ``end`` and ``strides``, in the order in which Python would write it.
"""

from dataclasses import dataclass
from types import EllipsisType

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import require
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class StridedSliceOptions:
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False


Index = slice | int | None | EllipsisType
Entry = tuple[int | None, int | None, int | None]  # begin, end and stride, where they are known


def _kind(options: StridedSliceOptions, entry: int) -> Index:
    """What an entry is: an Ellipsis, a new axis (None), a single element (0) or a slice."""
    bit = 1 << entry
    if options.ellipsis_mask & bit:
        return Ellipsis
    if options.new_axis_mask & bit:
        return None
    return 0 if options.shrink_axis_mask & bit else slice(None)


def dimensions_of(options: StridedSliceOptions, shape: Shape, count: int) -> list[int]:
    """The dimension of the input that each entry reads, -1 where it reads none or several."""
    kinds = [_kind(options, i) for i in range(count)]
    if kinds.count(Ellipsis) > 1:
        raise ShapeError("STRIDED_SLICE: more than one ellipsis")
    reading = [kind is not None and kind is not Ellipsis for kind in kinds]
    spare = len(shape) - sum(reading)
    if spare < 0:
        raise ShapeError(f"STRIDED_SLICE: {sum(reading)} indices for rank {len(shape)}")
    dimensions, next_ = [], 0
    for kind, reads in zip(kinds, reading, strict=True):
        dimensions.append(next_ if reads else -1)
        next_ += spare if kind is Ellipsis else int(reads)
    return dimensions


def _element(size: int, begin: int) -> int:
    index = begin + size if begin < 0 else begin
    if not 0 <= index < size:
        raise ShapeError(f"STRIDED_SLICE: index {begin} out of range for dimension {size}")
    return index


def _range(options: StridedSliceOptions, entry: int, size: int, values: tuple[int, int, int]) -> slice:
    begin, end, stride = values
    bit = 1 << entry
    if stride == 0:
        raise ShapeError("STRIDED_SLICE: stride 0")
    first = None if options.begin_mask & bit else begin
    if options.offset:
        start = slice(first, None, stride).indices(size)[0]
        end = start + end
    last = None if options.end_mask & bit else end
    start, stop, step = slice(first, last, stride).indices(size)
    return slice(start, None if stop < 0 else stop, step)


def index_of(options: StridedSliceOptions, shape: Shape, entries: list[tuple[int, int, int]]) -> tuple[Index, ...]:
    """The index as numpy takes it."""
    result: list[Index] = []
    for i, dimension in enumerate(dimensions_of(options, shape, len(entries))):
        kind = _kind(options, i)
        if isinstance(kind, slice):
            result.append(_range(options, i, shape[dimension], entries[i]))
        elif isinstance(kind, int):
            result.append(_element(shape[dimension], 0 if options.begin_mask & 1 << i else entries[i][0]))
        else:
            result.append(kind)
    return tuple(result)


def _length(options: StridedSliceOptions, entry: int, size: int, values: Entry) -> int | None:
    """The length of a sliced dimension, None if it hangs on values that are not known."""
    begin, end, stride = values
    masked = options.begin_mask & options.end_mask & 1 << entry
    if stride is None or ((begin is None or end is None) and not masked):
        return None
    cut = _range(options, entry, size, (begin or 0, end or 0, stride))
    return len(range(*cut.indices(size))) if cut.stop is not None else len(range(cut.start, -1, cut.step))


def _shape(options: StridedSliceOptions, shape: Shape, entries: list[Entry]) -> Shape | None:
    """The result's shape, None if it hangs on values that are not known."""
    dimensions = dimensions_of(options, shape, len(entries))
    read = {d for d in dimensions if d >= 0}
    result: list[int | None] = []
    for i, (dimension, entry) in enumerate(zip(dimensions, entries, strict=True)):
        kind = _kind(options, i)
        if kind is None:
            result.append(1)
        elif kind is Ellipsis:
            after = {d for d in dimensions[i + 1 :] if d >= 0}
            before = {d for d in dimensions[:i] if d >= 0}
            result += shape[len(before) : len(shape) - len(after)]
        elif isinstance(kind, slice):
            result.append(_length(options, i, shape[dimension], entry))
    if Ellipsis not in [_kind(options, i) for i in range(len(entries))]:
        result += shape[len(read) :]
    return None if None in result else tuple(d for d in result if d is not None)


def _infer(options: StridedSliceOptions, inputs: Specs) -> list[TensorSpec]:
    x, *operands = require.present("STRIDED_SLICE", inputs, 4)
    count = operands[0].size
    for spec in operands:
        require.types("STRIDED_SLICE", spec, (TensorType.INT32,))
        if spec.static_shape != (count,):
            raise ShapeError(f"STRIDED_SLICE: begin, end and strides differ: [{count}], {list(spec.static_shape)}")
    known = [require.integers("STRIDED_SLICE", spec) for spec in operands]
    begin, end, strides = ([None] * count if values is None else values for values in known)
    entries: list[Entry] = list(zip(begin, end, strides, strict=True))
    return [TensorSpec(x.type, _shape(options, x.static_shape, entries))]


def _run(options: StridedSliceOptions, inputs: Inputs) -> list[Array]:
    x, begin, end, strides = require.arrays(inputs, 4)
    entries = list(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True))
    index = index_of(options, x.shape, entries)
    # With an ellipsis a single element stays an array.
    return [x[index if Ellipsis in index else (*index, ...)].copy()]


STRIDED_SLICE = Op(
    "STRIDED_SLICE", options=StridedSliceOptions, infer=_infer, run=_run, versions=range(1, 9)
)
