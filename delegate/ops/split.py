"""SPLIT, SPLIT_V and UNPACK: every output is copied from its part of the input."""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Move, Operand, Step
from litecl.delegate.kit.claims import integers, moves, moves_by
from litecl.delegate.kit.strided import view, view_of
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.pack import UNPACK
from litecl.interpreter.ops.split import SPLIT, SPLIT_V


def _moves(call: Call, x: Operand, views: Sequence[Array]) -> list[Step]:
    return [Move(x, source, part, view_of(part)) for part, source in zip(call.outputs, views, strict=True)]


def _cut(call: Call, x: Operand, axis: Operand) -> list[Step]:
    (along,) = integers(axis.data)
    ends = np.cumsum([part.shape[along] for part in call.outputs])
    return _moves(call, x, np.split(view(x.shape), ends[:-1].tolist(), along))


def _lower_unpack(call: Call) -> list[Step]:
    x = call.input(0)
    slices = np.moveaxis(view(x.shape), call.options.axis, 0)
    return _moves(call, x, [slices[i, ...] for i in range(len(slices))])


CL_OPS = (
    ClOp(SPLIT, claim=moves_by(axis=0), lower=lambda call: _cut(call, call.input(1), call.input(0))),
    ClOp(SPLIT_V, claim=moves_by(axis=2), lower=lambda call: _cut(call, call.input(0), call.input(2))),
    ClOp(UNPACK, claim=moves, lower=_lower_unpack),
)
