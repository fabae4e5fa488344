"""aeq.hadamard_rotation of blocks of rows, with which quantized models rotate their activations."""

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Step
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.ops.hadamard import HADAMARD_ROTATION, scale_of


def _lower(call: Call) -> list[Step]:
    (y,), size = call.outputs, call.options.hadamard_size
    work = size * (size.bit_length() + 1)
    share = chunks("hadamard", y.spec.size // size, call.target, work=work)
    args = (call.input(0), y, *share.args, np.int32(size), scale_of(size))
    return [share.launch("hadamard", args, {}, y.spec.size // size * work)]


CL_OPS = (ClOp(HADAMARD_ROTATION, claim=takes(*FLOAT), lower=_lower),)
