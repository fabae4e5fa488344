"""AVERAGE_POOL_2D and MAX_POOL_2D of quantized tensors, whose input and output have one scale."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Refusal, Step
from litecl.delegate.kit.claims import C_TYPES, QUANTIZED, Specs, given, typed
from litecl.delegate.kit.schedule import aligned, pixels
from litecl.delegate.matmul.geometry import geometry
from litecl.delegate.quantized.integers import alike, bounded, bounds_of
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D

_LARGEST_WINDOW = {1: 1 << 14, 2: 1 << 9}  # elements whose sum is exact in float32, by bytes of an element


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x = given(inputs, 0)
    if refusal := typed((x,), QUANTIZED, quantized=True):
        return refusal
    if options.filter_height * options.filter_width >= (most := _LARGEST_WINDOW[x.dtype.itemsize]):
        return Refusal(f"windows of {most} elements or more")
    return alike(x, outputs[0]) or bounded(options)


def _cl_op(op: Op, reduction: str) -> ClOp:
    def lower(call: Call) -> list[Step]:
        x, (y,) = call.input(0), call.outputs
        g = geometry(
            call.options, x.shape, (call.options.filter_height, call.options.filter_width), 1, y.shape, call.pads
        )
        work = g.taps * g.channels
        share = pixels("quantized_pool_2d", g.pixels, g.channels, call.target, work)
        bounds = bounds_of(call.options, y.spec)
        args: tuple[Arg, ...] = (x, y, g, *share.args, np.int32(bounds.low), np.int32(bounds.high))
        defines: dict[str, str | int] = {"OP": reduction, "T": C_TYPES[y.spec.type], **aligned(call.target, g.channels)}
        return [share.launch("quantized_pool_2d", args, defines, g.pixels * work)]

    return ClOp(op, claim=_claim, lower=lower)


CL_OPS = (_cl_op(AVERAGE_POOL_2D, "AVERAGE"), _cl_op(MAX_POOL_2D, "MAXIMUM"))
