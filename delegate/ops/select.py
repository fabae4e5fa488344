"""SELECT and SELECT_V2: elements of one tensor or another, by a condition."""

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Step
from litecl.delegate.kit.claims import bits, moves
from litecl.delegate.kit.loops import loop_nest
from litecl.delegate.kit.schedule import elements
from litecl.delegate.kit.strided import view
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.select import SELECT, SELECT_V2


def _launch(call: Call, condition: Array) -> list[Step]:
    (y,) = call.outputs
    views = (condition, view(call.input(1).shape), view(call.input(2).shape))
    nest = loop_nest(*(np.broadcast_to(v, y.shape) for v in views))
    share = elements("select", y.spec.size, call.target)
    args: tuple[Arg, ...] = (*(call.input(i) for i in range(3)), y, nest.table, *share.args, *nest.arguments)
    return [share.launch("choose", args, {"T": bits(y.spec)} | nest.straight(call.target))]


def _lower_select(call: Call) -> list[Step]:
    """Reshape a condition of rank 1, which chooses whole rows, so that it broadcasts."""
    shape = call.input(0).shape
    return _launch(call, view(shape + (1,) * (len(call.outputs[0].shape) - len(shape))))


def _lower_select_v2(call: Call) -> list[Step]:
    return _launch(call, view(call.input(0).shape))


CL_OPS = (
    ClOp(SELECT, claim=moves, lower=_lower_select),
    ClOp(SELECT_V2, claim=moves, lower=_lower_select_v2),
)
