"""BUCKETIZE on the device."""

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Step
from litecl.delegate.kit.claims import C_TYPES, NUMBERS, takes
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.ops.bucketize import BUCKETIZE

_FEW = 64  # boundaries up to which comparing all is faster than a binary search


def _lower(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    boundaries = np.array(call.options.boundaries, np.float32)
    steps = len(boundaries).bit_length() + 1
    share = chunks("bucketize", x.spec.size, call.target, work=steps)
    args = (x, Const(np.append(boundaries, np.float32(0))), y, *share.args, np.int32(len(boundaries)))
    few = len(boundaries) <= _FEW and not np.isnan(boundaries).any()
    defines: dict[str, str | int | float] = {"T": C_TYPES[x.spec.type], **({"FEW": 1} if few else {})}
    return [share.launch("bucketize", args, defines, steps * x.spec.size)]


CL_OPS = (ClOp(BUCKETIZE, claim=takes(*NUMBERS), lower=_lower, cpu_only=True),)
