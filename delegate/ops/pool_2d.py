"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Pads, Refusal, Step
from litecl.delegate.kit.claims import FLOAT, Specs, activated, typed
from litecl.delegate.kit.schedule import aligned, pixels
from litecl.delegate.matmul.geometry import geometry
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D
from litecl.interpreter.schema import TensorType


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return typed(inputs, FLOAT) or activated(options, TensorType.FLOAT32)


def _cl_op(op: Op, reduction: str) -> ClOp:
    def lower(call: Call) -> list[Step]:
        x, (y,) = call.input(0), call.outputs
        kernel = call.options.filter_height, call.options.filter_width
        g = geometry(call.options, x.shape, kernel, 1, y.shape, call.pads)
        work = g.taps * g.channels
        share = pixels("pool_2d", g.pixels, g.channels, call.target, work)
        numbers = (np.int32(n) for n in (x.step, y.step, call.pads != Pads()))
        args: tuple[Arg, ...] = (x, y, g, *share.args, *numbers, *call.activation.bounds)
        defines: dict[str, str | int | float] = {
            "OP": reduction,
            **aligned(call.target, x.step, y.step),
            **call.activation.defines,
        }
        return [share.launch("pool_2d", args, defines, g.pixels * work)]

    return ClOp(
        op, claim=_claim, lower=lower, fuses_activation=True, fuses_pads=True, reads_rows=True, writes_rows=True
    )


CL_OPS = (
    _cl_op(AVERAGE_POOL_2D, "AVERAGE"),
    _cl_op(MAX_POOL_2D, "MAXIMUM"),
    _cl_op(L2_POOL_2D, "L2"),
)
