"""SOFTMAX of quantized bytes, from a table of exponentials."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Refusal, Step
from litecl.delegate.claims import BYTES, C_TYPES, QUANTIZED, Specs, given, typed
from litecl.delegate.launch import chunks
from litecl.delegate.quantized import per_tensor
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.softmax import SOFTMAX, exponentials
from litecl.interpreter.ops.types import integer_limits

_WORK = 8  # of an element, in additions


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, (y,) = given(inputs, 0), outputs
    return typed((x,), BYTES, quantized=True) or typed((y,), QUANTIZED, quantized=True) or per_tensor(x, y)


def _lower(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    length = y.shape[-1]
    table = exponentials(call.options, x.spec).astype(np.int32)
    share = chunks(y.spec.size // length, call.target, work=length * _WORK)
    low, high = integer_limits(y.spec.type)
    args: tuple[Arg, ...] = (x, Const(table), y, *share.args, *(np.int32(n) for n in (length, low, high)))
    bits = 8 * y.spec.dtype.itemsize
    defines: dict[str, str | int] = {"X": C_TYPES[x.spec.type], "T": C_TYPES[y.spec.type], "BITS": bits}
    return [share.launch("quantized_softmax", "quantized_softmax", args, defines, y.spec.size * _WORK)]


CL_OPS = (ClOp(SOFTMAX, claim=_claim, lower=_lower),)
