"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION of rows along the last axis."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Refusal, Step
from litecl.delegate.kit.claims import FLOAT, Specs, activated, takes, typed
from litecl.delegate.kit.schedule import Chunks, chunks
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, SHORTEST
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.softmax import SOFTMAX
from litecl.interpreter.schema import TensorType

_EXP_FLOPS = 20  # cost of an exponential, in additions and multiplications


def _rows(kernel: str, call: Call, work: int) -> tuple[Chunks, np.int32, int]:
    """Return the shares of the rows, their length, and the total of operations."""
    (y,) = call.outputs
    length = y.shape[-1]
    return chunks(kernel, y.spec.size // length, call.target, work=length * work), np.int32(length), y.spec.size * work


def _lower_softmax(call: Call) -> list[Step]:
    share, length, flops = _rows("softmax", call, _EXP_FLOPS)
    args: tuple[Arg, ...] = (call.input(0), *call.outputs, *share.args, length, np.float32(call.options.beta))
    return [share.launch("softmax", args, {}, flops)]


def _lower_log_softmax(call: Call) -> list[Step]:
    share, length, flops = _rows("softmax", call, _EXP_FLOPS)
    return [share.launch("log_softmax", (call.input(0), *call.outputs, *share.args, length), {}, flops)]


def _claim_l2(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return typed(inputs, FLOAT) or activated(options, TensorType.FLOAT32)


def _lower_l2(call: Call) -> list[Step]:
    share, length, flops = _rows("l2_normalization", call, 4)
    args: tuple[Arg, ...] = (call.input(0), *call.outputs, *share.args, length, SHORTEST, *call.activation.bounds)
    return [share.launch("l2_normalization", args, call.activation.defines, flops)]


CL_OPS = (
    ClOp(SOFTMAX, claim=takes(*FLOAT), lower=_lower_softmax),
    ClOp(LOG_SOFTMAX, claim=takes(*FLOAT), lower=_lower_log_softmax),
    ClOp(L2_NORMALIZATION, claim=_claim_l2, lower=_lower_l2, fuses_activation=True),
)
