"""SLICE, STRIDED_SLICE and DYNAMIC_UPDATE_SLICE: boxes of a tensor, whose position may be computed on the device.
UPDATE_ALONG is an update with a single unknown coordinate (the pass ``coordinates`` creates it).
"""

from collections.abc import Sequence
from typing import Any

from litecl.delegate.cl_op import Call, ClOp, Move, Operand, Refusal, Step
from litecl.delegate.kit.claims import C_TYPES, Specs, bits, given, integers, moves
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.strided import Place, box, copy, copy_box, dense, view
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions, axes_of, index_of


def _places(whole: Sequence[int], box: Sequence[int]) -> list[Place]:
    """Return the coordinates of a box that may lie anywhere within ``whole``; a dimension of equal length needs
    none.
    """
    dimensions = enumerate(zip(whole, box, dense(whole), strict=True))
    return [Place(i, size - part, 0, stride) for i, (size, part, stride) in dimensions if size > part]


def macros_of(x: Operand, positions: Operand) -> dict[str, str]:
    """Return the macros of copy_box.cl: the types of elements and of positions."""
    return {"T": bits(x.spec), "I": C_TYPES[positions.spec.type]}


def _lower_slice(call: Call) -> list[Step]:
    x, begin, (y,) = call.input(0), call.input(1), call.outputs
    if begin.data is None:
        at, places = box(view(x.shape), [slice(0, size) for size in y.shape]), _places(x.shape, y.shape)
        defines = macros_of(x, begin)
        return [copy_box("copy_from_box", x, at, y, view(y.shape), begin, places, defines, call.target)]
    at = box(view(x.shape), [slice(b, b + size) for b, size in zip(integers(begin.data), y.shape, strict=True)])
    return [Move(x, at, y, view(y.shape))]


@dataclass(frozen=True)
class UpdateOptions:
    """starts: the position of an update; None for the coordinate that the third input, a number, gives."""

    starts: tuple[int | None, ...]


def _lower_update(call: Call) -> list[Step]:
    x, update = call.input(0), call.input(1)
    return _updated(call, [0] * len(x.shape), _places(x.shape, update.shape))


def _lower_along(call: Call) -> list[Step]:
    o: UpdateOptions = call.options
    x, update = call.input(0), call.input(1)
    room = [whole - part for whole, part in zip(x.shape, update.shape, strict=True)]
    starts = [min(max(start or 0, 0), most) for start, most in zip(o.starts, room, strict=True)]
    axis = o.starts.index(None)
    return _updated(call, starts, [Place(0, room[axis], 0, dense(x.shape)[axis])] if room[axis] else [])


def _updated(call: Call, starts: Sequence[int], places: Sequence[Place]) -> list[Step]:
    """Return the launches of an update. starts: its position as far as known. places: the computed coordinates."""
    x, update, start, (y,) = call.input(0), call.input(1), call.input(2), call.outputs
    to = box(view(y.shape), [slice(at, at + size) for at, size in zip(starts, update.shape, strict=True)])
    defines = macros_of(x, start)
    whole = [] if x is y else [copy(x, view(x.shape), y, view(y.shape), bits(x.spec), call.target)]  # or in place
    if not update.spec.size:
        return [*whole]
    return [
        *whole,
        copy_box("copy_to_box", update, view(update.shape), y, to, start, places, defines, call.target),
    ]


def _index(options: StridedSliceOptions, shape: Shape, operands: Sequence[TensorSpec]) -> tuple[Any, ...]:
    """Return numpy's index, with placeholders for operands that aren't constant: the shape doesn't depend on them."""
    unknown = [0] * operands[0].size, [0] * operands[0].size, [1] * operands[0].size
    known = [u if spec.data is None else integers(spec.data) for spec, u in zip(operands, unknown, strict=True)]
    return index_of(options, shape, list(zip(*known, strict=True)))


def _lower_strided(call: Call) -> list[Step]:
    x, begin, (y,) = call.input(0), call.input(1), call.outputs
    index = _index(call.options, x.shape, [call.input(i).spec for i in range(1, 4)])
    at = view(x.shape)[(*index, ...)]  # the ellipsis keeps a single element an array, which is never read
    if begin.data is not None:
        return [Move(x, at, y, view(at.shape))]
    strides = dense(x.shape)
    places = [
        Place(axis.entry, x.shape[axis.dimension] - 1, x.shape[axis.dimension], strides[axis.dimension])
        for axis in axes_of(call.options, len(x.shape), begin.spec.size)
        if axis.kind == "element" and not call.options.begin_mask & 1 << axis.entry
    ]
    defines = macros_of(x, begin)
    return [copy_box("copy_from_box", x, at, y, view(at.shape), begin, places, defines, call.target)]


def _claim_strided(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x = given(inputs, 0)
    try:
        _index(options, x.static_shape, [given(inputs, i) for i in range(1, 4)])
    except ShapeError as error:
        return Refusal(str(error))
    return moves(options, inputs, outputs)


def _claim_update(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    whole, part = (given(inputs, i).static_shape for i in (0, 1))
    if any(new > old for new, old in zip(part, whole, strict=True)):
        return Refusal(f"update {list(part)} is larger than {list(whole)}: only a loop that never runs may have it")
    return moves(options, inputs, outputs)


UPDATE_ALONG = ClOp(composed("UPDATE_ALONG", UpdateOptions), claim=moves, lower=_lower_along)

CL_OPS = (
    ClOp(SLICE, claim=moves, lower=_lower_slice),
    ClOp(STRIDED_SLICE, claim=_claim_strided, lower=_lower_strided),
    ClOp(DYNAMIC_UPDATE_SLICE, claim=_claim_update, lower=_lower_update),
)
