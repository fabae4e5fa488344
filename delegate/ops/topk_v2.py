"""TOPK_V2 on the device."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Refusal, Step
from litecl.delegate.kit.claims import BYTES, C_TYPES, NUMBERS, Specs, constant, typed
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.topk_v2 import TOPK_V2


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return constant(inputs, k=1) or typed(inputs[:1], (*NUMBERS, *BYTES), quantized=True) or typed(outputs[1:], C_TYPES)


def _lower(call: Call) -> list[Step]:
    x, (values, places) = call.input(0), call.outputs
    length, k = x.shape[-1], values.shape[-1]
    share = chunks("topk_v2", x.spec.size // length, call.target, work=length)
    args = (x, values, places, *share.args, np.int32(length), np.int32(k))
    defines = {"T": C_TYPES[x.spec.type], "R": C_TYPES[places.spec.type]}
    return [share.launch("topk_v2", args, defines, x.spec.size)]


CL_OPS = (ClOp(TOPK_V2, claim=_claim, lower=_lower),)
