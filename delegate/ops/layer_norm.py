"""Rows with mean 0 and variance 1, times gamma, plus beta.

No file has this operator: the pass ``layer_norms`` finds it.
"""

from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Step, or_else
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.ops.gpu import rows
from litecl.interpreter.graph import Array

_FLOPS = 8  # of an element


@dataclass(frozen=True, eq=False)
class LayerNormOptions:
    """epsilon: added to the variance. gamma, beta: of every element of a row."""

    epsilon: float
    gamma: Array
    beta: Array


def _operands(call: Call) -> tuple[tuple[Arg, ...], tuple[np.generic, ...]]:
    """Return x, gamma and beta, and what follows the rows' length."""
    o: LayerNormOptions = call.options
    return (call.input(0), Const(o.gamma), Const(o.beta)), (np.float32(o.epsilon), *call.activation.bounds)


def _lower(call: Call) -> list[Step]:
    (y,), (operands, numbers) = call.outputs, _operands(call)
    length, flops = y.shape[-1], y.spec.size * _FLOPS
    share = chunks("layer_norm", y.spec.size // length, call.target, work=length * _FLOPS)
    return [share.launch("layer_norm", (*operands, y, *share.args, np.int32(length), *numbers), {}, flops)]


def _in_groups(call: GpuCall) -> list[Step] | None:
    return rows.of_rows(call, rows.ROWS, "layer_norm_local", *_operands(call), _FLOPS)


LAYER_NORM = ClOp(
    composed("LAYER_NORM", LayerNormOptions), claim=takes(*FLOAT), lower=_lower, gpu=or_else(_in_groups, _lower)
)
