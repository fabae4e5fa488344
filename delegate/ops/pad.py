"""PAD, PADV2 and MIRROR_PAD: fill the output, then copy the input into it; copy mirrored borders in pieces."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Operand, Pads, Step
from litecl.delegate.kit.claims import Specs, bits, given, integers, moves_by
from litecl.delegate.kit.strided import box, copy, fill, view
from litecl.delegate.quantized.integers import padding
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2
from litecl.interpreter.schema import MirrorPadMode, TensorType


def _lower_with(call: Call, value: Arg) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    before = integers(call.input(1).data)[::2]
    inside = box(view(y.shape), [slice(b, b + size) for b, size in zip(before, x.shape, strict=True)])
    return [
        fill(y, y.spec.size, value, bits(y.spec), call.target),
        copy(x, view(x.shape), y, inside, bits(y.spec), call.target),
    ]


def _lower_pad(call: Call) -> list[Step]:
    return _lower_with(call, padding(call.outputs[0].spec))


def padded(call: Call, borders: Sequence[tuple[int, int]]) -> tuple[Operand, list[Step]]:
    """Return images with ``borders`` of zeros before and after their rows and columns, and the steps that pad them.

    The images are the first input of a call.
    """
    x = call.input(0)
    if not any(map(any, borders)):
        return x, []
    images, *sides, channels = x.shape
    shape = (images, *(sum(of) + side for of, side in zip(borders, sides, strict=True)), channels)
    wider = Operand(TensorSpec(x.spec.type, shape, x.spec.name))
    added = np.array([(0, 0), *borders, (0, 0)], np.int32)
    amounts = Operand(TensorSpec(TensorType.INT32, added.shape, data=added))
    return wider, _lower_pad(replace(call, inputs=[x, amounts], outputs=[wider]))


def _lower_padv2(call: Call) -> list[Step]:
    return _lower_with(call, call.input(2))


def _pads(inputs: Specs) -> Pads | None:
    """Return the zeros that a node puts around a float image; None if it pads anything else."""
    x, paddings, value = given(inputs, 0), given(inputs, 1), inputs[2] if len(inputs) > 2 else None
    zeros = value is None or (value.data is not None and not value.data.any())
    if x.type != TensorType.FLOAT32 or len(x.static_shape) != 4 or not zeros:
        return None
    images, *around, channels = zip(*[iter(integers(paddings.data))] * 2, strict=True)
    return None if any((*images, *channels)) else Pads(*around[0], *around[1])


@dataclass(frozen=True)
class _Piece:
    """A part of a padded dimension: the elements of the input that fill it, in order."""

    source: slice
    order: slice
    into: slice


def _pieces(size: int, before: int, after: int, inset: int) -> list[_Piece]:
    """Return the border before, the input, the border after. inset: elements at the edge that are not mirrored."""
    forwards, backwards = slice(None), slice(None, None, -1)
    end = size - inset
    pieces = [
        _Piece(slice(inset, inset + before), backwards, slice(0, before)),
        _Piece(slice(0, size), forwards, slice(before, before + size)),
        _Piece(slice(end - after, end), backwards, slice(before + size, before + size + after)),
    ]
    return [piece for piece in pieces if piece.source.start < piece.source.stop]


def _lower_mirror(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    borders = integers(call.input(1).data)
    inset = 1 if call.options.mode == MirrorPadMode.REFLECT else 0
    dimensions = zip(x.shape, borders[::2], borders[1::2], strict=True)
    steps: list[Step] = []
    for pieces in product(*(_pieces(size, before, after, inset) for size, before, after in dimensions)):
        source = box(box(view(x.shape), [p.source for p in pieces]), [p.order for p in pieces])
        into = box(view(y.shape), [p.into for p in pieces])
        steps.append(copy(x, source, y, into, bits(y.spec), call.target))
    return steps


CL_OPS = (
    ClOp(PAD, claim=moves_by(paddings=1), lower=_lower_pad, pads=_pads),
    ClOp(PADV2, claim=moves_by(paddings=1), lower=_lower_padv2, pads=_pads),
    ClOp(MIRROR_PAD, claim=moves_by(paddings=1), lower=_lower_mirror),
)
