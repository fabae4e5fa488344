"""CONCATENATION and PACK: every input is copied to its part of the output; bytes with another scale go through a lookup
table.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Move, Operand, Refusal, Scratch, Step
from litecl.delegate.kit.claims import Claim, Specs, bits, given, is_quantized, moves
from litecl.delegate.kit.strided import copy, view, view_of
from litecl.delegate.ops.quantized.table import elements, looked_up
from litecl.delegate.quantized.integers import alike, per_tensor
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions, rescaling
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.fused_activation_function != ActivationFunctionType.NONE:
        return Refusal(f"fused activation {options.fused_activation_function.name}")
    out, parts = outputs[0], [spec for spec in inputs if spec is not None]
    if is_quantized(out) and (refusal := per_tensor(*parts) if out.type == TensorType.UINT8 else alike(out, *parts)):
        return refusal
    return moves(options, inputs, outputs)


def _concatenated(options: ConcatenationOptions, parts: Specs, whole: Array) -> Sequence[Array]:
    axis = options.axis % whole.ndim
    ends = np.cumsum([given(parts, i).static_shape[axis] for i in range(len(parts))])
    return np.split(whole, ends[:-1].tolist(), axis)


def _packed(options: PackOptions, parts: Specs, whole: Array) -> Sequence[Array]:
    slices = np.moveaxis(whole, options.axis, 0)
    return [slices[i, ...] for i in range(len(parts))]


def _moved(call: Call, part: Operand, into: Array) -> list[Step]:
    return [Move(part, view_of(part), call.outputs[0], into)]


def _rescaled(call: Call, part: Operand, into: Array) -> list[Step]:
    """Move a part whose scale may differ from the whole's."""
    (y,) = call.outputs
    function = rescaling(part.spec, y.spec)
    if function is None:
        return _moved(call, part, into)
    rescaled = Scratch(part.spec.size)
    return [
        looked_up(function(elements(part.spec)), part, rescaled, y.spec.type, call.target),
        copy(rescaled, view(part.shape), y, into, bits(y.spec), call.target),
    ]


def _cl_op(
    op: Op,
    claim: Claim,
    joins: Callable[[Any, Specs, Array], Sequence[Array]],
    put: Callable[[Call, Operand, Array], list[Step]],
) -> ClOp:
    def lower(call: Call) -> list[Step]:
        parts = [call.input(i) for i in range(len(call.inputs))]
        views = joins(call.options, [part.spec for part in parts], view_of(call.outputs[0]))
        pairs = zip(parts, views, strict=True)
        return [step for part, into in pairs if part.spec.size for step in put(call, part, into)]

    return ClOp(op, claim=claim, lower=lower, reads_rows=True, writes_rows=True, joins=joins)


CL_OPS = (
    _cl_op(CONCATENATION, _claim, _concatenated, _rescaled),
    _cl_op(PACK, moves, _packed, _moved),
)
