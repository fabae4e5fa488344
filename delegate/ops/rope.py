"""Rotary position embedding (ROPE): rotates pairs of elements of a row by an angle that depends on the row's position.

No model file contains this operator; the pass ``rope`` creates it, from the composite ``odml.rope`` and elsewhere.
"""

import math

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Record, Step
from litecl.delegate.kit.claims import C_TYPES, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.kit.strided import view
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.schema import TensorType

MOST_DIMS = 4  # of a tensor: three loops over rows
_PAIR_FLOPS = 8
_ANGLE_FLOPS = 40  # of a sine and a cosine, in additions and multiplications


@dataclass(frozen=True)
class RopeOptions:
    """shape: of the rotated rows. turns: of cosines, or of angles, as they broadcast to it. scale: of results.

    angles: whether the inputs after x are positions and frequencies, not cosines and sines. before, after: permutations
    of the input and of the result, empty for none. Operands may have other shapes with as many elements.
    """

    shape: Shape
    turns: Shape
    scale: float = 1.0
    angles: bool = False
    before: Shape = ()
    after: Shape = ()


@dataclass(frozen=True)
class RopeLoop(Record):
    """A loop over rows: its size, and the elements of x, of turns and of y from one row to the next."""

    size: int
    x: int
    turns: int
    y: int


@dataclass(frozen=True)
class Rope(Record):
    """Arguments of rope.cl. outer, middle, inner: loops over rows. half_length: pairs of a row. blocks: their vectors.

    far: elements from the cosine of a pair's first element to that of its second, 0 if they share one.
    """

    outer: RopeLoop
    middle: RopeLoop
    inner: RopeLoop
    half_length: int
    blocks: int
    far: int
    scale: float


def _lower(call: Call) -> list[Step]:
    o: RopeOptions = call.options
    (y,), half = call.outputs, o.shape[-1] // 2
    blocks, far = -(-half // call.target.vector_width), 0 if o.turns[-1] == half else half
    record = Rope(*_loops(o), half_length=half, blocks=blocks, far=far, scale=o.scale)
    count, work = (
        blocks * math.prod(o.shape[:-1]),
        call.target.vector_width * (_PAIR_FLOPS + o.angles * _ANGLE_FLOPS),
    )
    share = chunks("rope", count, call.target, work=work)
    defines: dict[str, str | int | float] = {"ANGLES": 1, "T": C_TYPES[call.input(1).spec.type]} if o.angles else {}
    args = (call.input(0), call.input(1), call.input(2), y, record, *share.args)
    return [share.launch("rope", args, defines, count * work)]


def _loops(o: RopeOptions) -> tuple[RopeLoop, RopeLoop, RopeLoop]:
    """Return three loops over rows, first those in which turns change."""
    before = tuple(o.shape[axis] for axis in _inverse(o.before)) or o.shape
    after = tuple(o.shape[axis] for axis in o.after) or o.shape
    x, y = _turned(before, o.before), _turned(after, _inverse(o.after))
    width = (1,) if o.angles else o.turns[-1:]
    turns = np.broadcast_to(view((*o.turns[:-1], *width)), (*o.shape[:-1], *width))
    rows = zip(o.shape[:-1], *(array.strides[:-1] for array in (x, turns, y)), strict=True)
    loops = sorted((RopeLoop(*row) for row in rows if row[0] > 1), key=lambda loop: loop.turns == 0)
    outer, middle, inner = [RopeLoop(1, 0, 0, 0)] * (MOST_DIMS - 1 - len(loops)) + loops
    return outer, middle, inner


def _turned(shape: Shape, permutation: Shape) -> Array:
    whole = view(shape)
    return whole.transpose(permutation) if permutation else whole


def _inverse(permutation: Shape) -> Shape:
    return tuple(permutation.index(axis) for axis in range(len(permutation)))


ROPE = ClOp(
    composed("ROPE", RopeOptions),
    claim=takes(TensorType.FLOAT32, TensorType.INT32, TensorType.INT64),
    lower=_lower,
)
