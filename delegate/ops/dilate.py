"""DILATE: fills the output, then copies the input into it at intervals."""

from litecl.delegate.cl_op import Call, ClOp, Step
from litecl.delegate.kit.claims import bits, integers, moves_by
from litecl.delegate.kit.strided import box, copy, fill, view
from litecl.interpreter.ops.dilate import DILATE


def _lower(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    apart = box(view(y.shape), [slice(None, None, step) for step in integers(call.input(1).data)])
    return [
        fill(y, y.spec.size, call.input(2), bits(y.spec), call.target),
        copy(x, view(x.shape), y, apart, bits(y.spec), call.target),
    ]


CL_OPS = (ClOp(DILATE, claim=moves_by(dilations=1), lower=_lower),)
