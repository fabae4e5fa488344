"""BUCKETIZE on the device."""

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Step
from litecl.delegate.kit.claims import C_TYPES, NUMBERS, takes
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.ops.bucketize import BUCKETIZE


def _lower(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    boundaries = np.array(call.options.boundaries, np.float32)
    steps = len(boundaries).bit_length() + 1
    share = chunks("bucketize", x.spec.size, call.target, work=steps)
    args = (x, Const(np.append(boundaries, np.float32(0))), y, *share.args, np.int32(len(boundaries)))
    return [share.launch("bucketize", args, {"T": C_TYPES[x.spec.type]}, steps * x.spec.size)]


CL_OPS = (ClOp(BUCKETIZE, claim=takes(*NUMBERS), lower=_lower, cpu_only=True),)
