"""CONCATENATION and PACK: every input copied to its place in the output."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Refusal, Step
from litecl.delegate.claims import Specs, bits, is_quantized, moves
from litecl.delegate.quantized import alike
from litecl.delegate.strided import copy, view
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.pack import PACK
from litecl.interpreter.schema import ActivationFunctionType


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.fused_activation_function != ActivationFunctionType.NONE:
        return Refusal(f"fused activation {options.fused_activation_function.name}")
    if is_quantized(outputs[0]) and (refusal := alike(outputs[0], *(spec for spec in inputs if spec is not None))):
        return refusal
    return moves(options, inputs, outputs)


def _lower_concatenation(call: Call) -> list[Step]:
    (y,) = call.outputs
    axis = call.options.axis % len(y.shape)
    parts = [call.input(i) for i in range(len(call.inputs))]
    ends = np.cumsum([part.shape[axis] for part in parts])
    places = np.split(view(y.shape), ends[:-1].tolist(), axis)
    return [
        copy(part, view(part.shape), y, place, bits(y.spec), call.target)
        for part, place in zip(parts, places, strict=True)
        if part.spec.size
    ]


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
