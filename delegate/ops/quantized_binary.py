"""ADD, SUB and MUL of quantized tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Refusal, Step
from litecl.delegate.claims import C_TYPES, QUANTIZED, Specs, given, typed
from litecl.delegate.launch import elements
from litecl.delegate.ops.binary import together
from litecl.delegate.quantized import bounded, bounds_of, per_tensor, scale, words
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, fixed_point
from litecl.interpreter.ops.quantized_binary import powers_of_two
from litecl.interpreter.schema import TensorType

_LEFT_SHIFT = {1: 20, 2: 15}  # of what is added, so that rounding it costs nothing, by bytes of an element (add.cc)


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    specs = (given(inputs, 0), given(inputs, 1), outputs[0])
    return (
        typed(specs, QUANTIZED, quantized=True)
        or per_tensor(*specs)
        or words(*specs)
        or (_shifted(specs) if getattr(options, "pot_scale_int16", False) else None)
        or bounded(options)
    )


def _shifted(specs: Sequence[TensorSpec]) -> Refusal | None:
    """16-bit operands are shifted where all scales are powers of two."""
    powers = specs[0].type == TensorType.INT16 and powers_of_two("ADD", *specs) is not None
    return Refusal("16-bit scales that are powers of two") if powers else None


def _sum_scales(a: float, b: float, c: float, bits: int) -> tuple[int, ...]:
    twice = 2 * max(a, b)
    factors = (a / twice, b / twice, twice / ((1 << bits) * c))
    return (bits, *(field for factor in factors for field in scale(factor)))


def _product_scales(a: float, b: float, c: float, bits: int) -> tuple[int, ...]:
    factor = np.float32(a) * np.float32(b) / np.float32(c)  # in float32, as in TFLite
    return (0, *scale(1.0), *scale(1.0), *scale(float(factor)))


def _cl_op(op: Op, function: str, *, sums: bool) -> ClOp:
    scales_of = _sum_scales if sums else _product_scales

    def lower(call: Call) -> list[Step]:
        a, b, c = call.input(0), call.input(1), call.outputs[0]
        bounds = bounds_of(call.options, c.spec)
        zeros = [fixed_point.zero_point_of(op.name, operand.spec) for operand in (a, b)]
        x, y, z = (float(fixed_point.scale_of(op.name, operand.spec)) for operand in (a, b, c))
        factors = scales_of(x, y, z, _LEFT_SHIFT[c.spec.dtype.itemsize])
        table = np.array([*zeros, *factors, bounds.zero, bounds.low, bounds.high], np.int32)
        a, b, path = together(a, b, c)
        share = elements(c.spec.size, call.target)
        args: tuple[Arg, ...] = (a, b, c, path.table, Const(table), *share.args, *path.arguments)
        defines: dict[str, str | int] = {"OP": function, "T": C_TYPES[c.spec.type]}
        if c.spec.type == TensorType.INT16:
            defines["WORDS"] = 1
        return [share.launch("quantized_binary", "quantized_binary", args, defines, c.spec.size)]

    return ClOp(op, claim=_claim, lower=lower)


CL_OPS = (
    _cl_op(binary.ADD, "ADDED", sums=True),
    _cl_op(binary.SUB, "SUBTRACTED", sums=True),
    _cl_op(binary.MUL, "MULTIPLIED", sums=False),
)
