"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Pads, Refusal, Step
from litecl.delegate.kit.claims import FLOAT, Specs, activated, typed
from litecl.delegate.kit.shares import chunks
from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.kit.window import Window
from litecl.interpreter.op import Op
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D, windows
from litecl.interpreter.schema import TensorType


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return typed(inputs, FLOAT) or activated(options, TensorType.FLOAT32)


def sizes(x: Shape, rows: Window, columns: Window) -> tuple[int, ...]:
    """The parameters of the kernels that say where the windows are."""
    return (
        *(*x[1:], rows.output, columns.output),
        *(rows.size, columns.size, rows.stride, columns.stride, rows.before, columns.before),
    )


def _cl_op(op: Op, reduction: str) -> ClOp:
    def lower(call: Call) -> list[Step]:
        x, (y,) = call.input(0), call.outputs
        channels = x.shape[3]
        rows, columns = windows(call.options, call.image)
        rows = replace(rows, before=rows.before + call.pads.top)
        columns = replace(columns, before=columns.before + call.pads.left)
        work = rows.size * columns.size * channels
        pixels = y.spec.size // channels
        share = chunks(pixels, call.target, work=work)
        padded = int(call.pads != Pads())
        numbers = (np.int32(n) for n in (*sizes(x.shape, rows, columns), x.step, y.step, padded))
        args: tuple[Arg, ...] = (x, y, *share.args, *numbers, *call.activation.bounds)
        return [share.launch("pool_2d", "pool_2d", args, {"OP": reduction, **call.activation.defines}, pixels * work)]

    return ClOp(
        op, claim=_claim, lower=lower, fuses_activation=True, fuses_pads=True, reads_rows=True, writes_rows=True
    )


CL_OPS = (
    _cl_op(AVERAGE_POOL_2D, "AVERAGE"),
    _cl_op(MAX_POOL_2D, "MAXIMUM"),
    _cl_op(L2_POOL_2D, "L2"),
)
