"""ADD, SUB and MUL of quantized tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Refusal, Step
from litecl.delegate.claims import BYTES, C_TYPES, Specs, typed
from litecl.delegate.launch import elements
from litecl.delegate.ops.binary import together
from litecl.delegate.quantized import bounded, bounds_of, per_tensor, scale
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, fixed_point

_LEFT_SHIFT = 20  # of what is added, so that rounding it costs nothing (add.cc)


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    specs = (*inputs, outputs[0])
    return typed(specs, BYTES, quantized=True) or per_tensor(*specs) or bounded(options)


def _sum_scales(a: float, b: float, c: float) -> tuple[int, ...]:
    twice = 2 * max(a, b)
    factors = (a / twice, b / twice, twice / ((1 << _LEFT_SHIFT) * c))
    return (_LEFT_SHIFT, *(field for factor in factors for field in scale(factor)))


def _product_scales(a: float, b: float, c: float) -> tuple[int, ...]:
    factor = float(np.float32(a) * np.float32(b)) / c
    return (0, *scale(1.0), *scale(1.0), *scale(factor))


def _cl_op(op: Op, function: str, *, sums: bool) -> ClOp:
    scales_of = _sum_scales if sums else _product_scales

    def lower(call: Call) -> list[Step]:
        a, b, c = call.input(0), call.input(1), call.outputs[0]
        bounds = bounds_of(call.options, c.spec)
        zeros = [fixed_point.zero_point_of(op.name, operand.spec) for operand in (a, b)]
        factors = scales_of(*(float(fixed_point.scale_of(op.name, operand.spec)) for operand in (a, b, c)))
        table = np.array([*zeros, *factors, bounds.zero, bounds.low, bounds.high], np.int32)
        a, b, path = together(a, b, c)
        share = elements(c.spec.size, call.target)
        args: tuple[Arg, ...] = (a, b, c, path.table, Const(table), *share.args, *path.arguments)
        defines = {"OP": function, "T": C_TYPES[c.spec.type]}
        return [share.launch("quantized_binary", "quantized_binary", args, defines, c.spec.size)]

    return ClOp(op, claim=_claim, lower=lower)


CL_OPS = (
    _cl_op(binary.ADD, "ADDED", sums=True),
    _cl_op(binary.SUB, "SUBTRACTED", sums=True),
    _cl_op(binary.MUL, "MULTIPLIED", sums=False),
)
