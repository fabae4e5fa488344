"""Functions of one quantized byte: the interpreter computes all 256 results, the device looks them up."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Refusal
from litecl.delegate.claims import BYTES, C_TYPES, Specs, given, typed
from litecl.delegate.launch import chunks
from litecl.delegate.quantized import per_tensor
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.gelu import GELU
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU


def _table(op: Op, options: Any, x: TensorSpec, y: TensorSpec) -> Array:
    """The results for every byte, counted as an unsigned one."""
    values = np.arange(256, dtype=np.uint8).view(x.dtype)
    run = None if op.bind is None else op.bind(options, [x], [y])
    (result,) = (op.run if run is None else run)(options, [values])
    return result


def _cl_op(op: Op) -> ClOp:
    def claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
        x, (y,) = given(inputs, 0), outputs
        return typed((x, y), BYTES, quantized=True) or per_tensor(x, y)

    return ClOp(op, claim=claim, lower=lambda call: [looked_up(op, call)])


def looked_up(op: Op, call: Call) -> Launch:
    """The launch that applies an operator's table to the elements of its input."""
    x, (y,) = call.input(0), call.outputs
    share = chunks(y.spec.size, call.target)
    table = Const(_table(op, call.options, x.spec, y.spec))
    return share.launch("table", "look_up", (x, table, y, *share.args), {"R": C_TYPES[y.spec.type]}, y.spec.size)


CL_OPS = tuple(
    _cl_op(op)
    for op in (
        *(unary.ABS, unary.EXP, unary.LOG),
        *(unary.RELU, unary.RELU6, unary.RELU_0_TO_1, unary.RELU_N1_TO_1),
        *(unary.LOGISTIC, unary.TANH, unary.HARD_SWISH, unary.ELU, GELU, LEAKY_RELU),
    )
)
