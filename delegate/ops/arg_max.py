"""ARG_MAX, ARG_MIN and CUMSUM: along one dimension."""

import math

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Step
from litecl.delegate.kit.claims import C_TYPES, NUMBERS, QUANTIZED, Claim, constant, integers, typed
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.graph import Shape
from litecl.interpreter.op import Op
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN
from litecl.interpreter.ops.cumsum import CUMSUM
from litecl.interpreter.schema import TensorType

_LANE_BYTES = 4
_ORDERED = (*NUMBERS, TensorType.BOOL, *QUANTIZED)


def _claim(*allowed: TensorType, quantized: bool = False) -> Claim:
    return lambda options, inputs, outputs: constant(inputs, axis=1) or typed(inputs[:1], allowed, quantized=quantized)


def sizes(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Return the elements before, along and after an axis; a negative axis counts from the back."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _arg(op: Op, comparison: str) -> ClOp:
    def lower(call: Call) -> list[Step]:
        x, (y,) = call.input(0), call.outputs
        (axis,) = integers(call.input(1).data)
        outer, length, inner = sizes(x.shape, axis)
        share = chunks("arg_max", outer * inner, call.target, work=length)
        args = (x, y, *share.args, np.int32(length), np.int32(inner))
        defines = {"T": C_TYPES[x.spec.type], "R": C_TYPES[y.spec.type], "OP": comparison}
        if inner == 1 < length and x.spec.dtype.itemsize <= _LANE_BYTES and call.target.vector_width > 1:
            defines["LANES_OF"] = "float" if x.spec.type == TensorType.FLOAT32 else "int"
        return [share.launch("arg_max", args, defines, x.spec.size)]

    return ClOp(op, claim=_claim(*_ORDERED, quantized=True), lower=lower)


def _lower_cumsum(call: Call) -> list[Step]:
    x, (y,), reverse = call.input(0), call.outputs, call.options.reverse
    (axis,) = integers(call.input(1).data)
    outer, length, inner = sizes(x.shape, axis)
    share = chunks("cumsum", outer * inner, call.target, work=length)
    first, step = (length - 1, -1) if reverse else (0, 1)
    numbers = (np.int32(value) for value in (length, inner, first, step, call.options.exclusive))
    return [share.launch("cumsum", (x, y, *share.args, *numbers), {"T": C_TYPES[x.spec.type]}, x.spec.size)]


CL_OPS = (
    _arg(ARG_MAX, "GREATER"),
    _arg(ARG_MIN, "LESS"),
    ClOp(CUMSUM, claim=_claim(*NUMBERS), lower=_lower_cumsum),
)
