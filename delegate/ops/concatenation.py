"""CONCATENATION and PACK: every input copied to its place in the output, bytes of another scale by way of a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Operand, Refusal, Scratch, Step
from litecl.delegate.claims import Specs, bits, is_quantized, moves
from litecl.delegate.ops.table import elements, looked_up
from litecl.delegate.quantized import alike, per_tensor
from litecl.delegate.strided import copy, view
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.concatenation import CONCATENATION, rescaling
from litecl.interpreter.ops.pack import PACK
from litecl.interpreter.schema import ActivationFunctionType, TensorType


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.fused_activation_function != ActivationFunctionType.NONE:
        return Refusal(f"fused activation {options.fused_activation_function.name}")
    out, parts = outputs[0], [spec for spec in inputs if spec is not None]
    if is_quantized(out) and (refusal := per_tensor(*parts) if out.type == TensorType.UINT8 else alike(out, *parts)):
        return refusal
    return moves(options, inputs, outputs)


def _lower_concatenation(call: Call) -> list[Step]:
    (y,) = call.outputs
    axis = call.options.axis % len(y.shape)
    parts = [call.input(i) for i in range(len(call.inputs))]
    ends = np.cumsum([part.shape[axis] for part in parts])
    places = np.split(view(y.shape), ends[:-1].tolist(), axis)
    launches: list[Step] = []
    for part, place in zip(parts, places, strict=True):
        if not part.spec.size:
            continue
        source: Operand | Scratch = part
        if rescaled := rescaling(part.spec, y.spec):
            source = Scratch(part.spec.size)
            launches.append(looked_up(rescaled(elements(part.spec)), part, source, y.spec.type, call.target))
        launches.append(copy(source, view(part.shape), y, place, bits(y.spec), call.target))
    return launches


def _lower_pack(call: Call) -> list[Step]:
    (y,) = call.outputs
    places = np.moveaxis(view(y.shape), call.options.axis, 0)
    parts = [call.input(i) for i in range(len(call.inputs))]
    return [
        copy(part, view(part.shape), y, places[i, ...], bits(y.spec), call.target) for i, part in enumerate(parts)
    ]


CL_OPS = (
    ClOp(CONCATENATION, claim=_claim, lower=_lower_concatenation),
    ClOp(PACK, claim=moves, lower=_lower_pack),
)
