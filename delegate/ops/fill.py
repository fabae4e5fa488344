"""FILL and ZEROS_LIKE: tensors of one value."""

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Step
from litecl.delegate.kit.claims import bits, moves
from litecl.delegate.kit.strided import fill
from litecl.interpreter.ops.fill import FILL, ZEROS_LIKE


def _fill(call: Call, value: Arg) -> list[Step]:
    (y,) = call.outputs
    return [fill(y, y.spec.size, value, bits(y.spec), call.target)]


def _zeros_like(call: Call) -> list[Step]:
    return _fill(call, Const(np.zeros(1, call.outputs[0].spec.dtype)))


CL_OPS = (
    ClOp(FILL, claim=moves, lower=lambda call: _fill(call, call.input(1))),
    ClOp(ZEROS_LIKE, claim=moves, lower=_zeros_like),
)
