"""CONCATENATION and PACK: every input in its place in the output."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Move, Refusal, Step
from litecl.delegate.claims import Claim, Specs, is_quantized, moves
from litecl.delegate.quantized import alike
from litecl.delegate.strided import view_of
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.schema import ActivationFunctionType


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.fused_activation_function != ActivationFunctionType.NONE:
        return Refusal(f"fused activation {options.fused_activation_function.name}")
    if is_quantized(outputs[0]) and (refusal := alike(outputs[0], *(spec for spec in inputs if spec is not None))):
        return refusal
    return moves(options, inputs, outputs)


def _concatenated(options: ConcatenationOptions, parts: Sequence[TensorSpec], whole: Array) -> Sequence[Array]:
    axis = options.axis % whole.ndim
    ends = np.cumsum([part.static_shape[axis] for part in parts])
    return np.split(whole, ends[:-1].tolist(), axis)


def _packed(options: PackOptions, parts: Sequence[TensorSpec], whole: Array) -> Sequence[Array]:
    slices = np.moveaxis(whole, options.axis, 0)
    return [slices[i, ...] for i in range(len(parts))]


def _cl_op(op: Op, claim: Claim, joins: Callable[[Any, Sequence[TensorSpec], Array], Sequence[Array]]) -> ClOp:
    def lower(call: Call) -> list[Step]:
        (y,) = call.outputs
        parts = [call.input(i) for i in range(len(call.inputs))]
        places = joins(call.options, [part.spec for part in parts], view_of(y))
        pairs = zip(parts, places, strict=True)
        return [Move(part, view_of(part), y, place) for part, place in pairs if part.spec.size]

    return ClOp(op, claim=claim, lower=lower, reads_rows=True, writes_rows=True, joins=joins)


CL_OPS = (
    _cl_op(CONCATENATION, _claim, _concatenated),
    _cl_op(PACK, moves, _packed),
)
