"""PAD, PADV2 and MIRROR_PAD: the output filled, then the input copied into it; a mirrored border copied in pieces."""

from itertools import product

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Operand, Step
from litecl.delegate.claims import bits, integers, moves_by
from litecl.delegate.strided import copy, fill, view
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2
from litecl.interpreter.schema import MirrorPadMode

Piece = tuple[slice, slice]  # of the input, of the output


def _lower_with(call: Call, value: Arg) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    before = integers(call.input(1).data)[::2]
    inside = view(y.shape)[tuple(slice(b, b + size) for b, size in zip(before, x.shape, strict=True))]
    return [
        fill(y, y.spec.size, value, bits(y.spec), call.target),
        copy(x, view(x.shape), y, inside, bits(y.spec), call.target),
    ]


def _lower_pad(call: Call) -> list[Step]:
    return _lower_with(call, Const(np.zeros(1, call.outputs[0].spec.dtype)))


def _lower_padv2(call: Call) -> list[Step]:
    return _lower_with(call, call.input(2))


def _pieces(size: int, before: int, after: int, inset: int) -> list[Piece]:
    """The parts of a mirrored dimension: the border before, what is inside, the border after."""
    backwards = view((size,))[::-1]
    first, last = size - inset - before, inset
    parts = [
        (slice(before - 1 + inset, inset - 1 if inset else None, -1), slice(0, before)),
        (slice(0, size), slice(before, before + size)),
        (slice(size - 1 - inset, size - 1 - inset - after, -1), slice(before + size, before + size + after)),
    ]
    return parts


def _mirror(x: Operand, y: Operand, pieces: tuple[Piece, ...], call: Call) -> Step:
    at = view(x.shape)[tuple(source for source, _ in pieces)]
    return copy(x, at, y, view(y.shape)[tuple(into for _, into in pieces)], bits(y.spec), call.target)
