"""Layer norms: rows with mean 0 and variance 1, times gamma, plus beta; and RMS norms, which take 0 as the mean.

No model file contains these operators; the pass ``layer_norms`` creates them.
"""

from functools import partial

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Step, or_else
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.ops.gpu import rows
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_FLOPS = 8  # per element


@dataclass(frozen=True, eq=False)
class LayerNormOptions:
    """epsilon: added to the variance, or to the mean of squares. gamma, beta: one for each element of a row."""

    epsilon: float
    gamma: Array
    beta: Array


def _operands(call: Call, centred: bool) -> tuple[tuple[Arg, ...], tuple[np.generic, ...]]:
    """Return x, gamma, beta and the residual, and the arguments after the rows' length."""
    o: LayerNormOptions = call.options
    x, has_residual = call.input(0), call.residual is not None
    flags = (np.int32(centred), np.int32(has_residual))
    return (x, Const(o.gamma), Const(o.beta), call.residual or x), (
        *flags,
        np.float32(o.epsilon),
        *call.activation.bounds,
    )


def _lower(call: Call, centred: bool) -> list[Step]:
    (y,), (operands, numbers) = call.outputs, _operands(call, centred)
    length, flops = y.shape[-1], y.spec.size * _FLOPS
    share = chunks("layer_norm", y.spec.size // length, call.target, work=length * _FLOPS)
    return [share.launch("layer_norm", (*operands, y, *share.args, np.int32(length), *numbers), {}, flops)]


def _in_groups(call: GpuCall, centred: bool) -> list[Step] | None:
    return rows.of_rows(call, rows.ROWS, "layer_norm_local", *_operands(call, centred), _FLOPS)


def _norm(name: str, centred: bool) -> ClOp:
    """Return the record of a norm. centred: whether rows get a mean of 0."""
    lower = partial(_lower, centred=centred)
    return ClOp(
        composed(name, LayerNormOptions),
        claim=takes(*FLOAT),
        lower=lower,
        gpu=or_else(partial(_in_groups, centred=centred), lower),
        fuses_residual=True,
    )


LAYER_NORM, RMS_NORM = _norm("LAYER_NORM", centred=True), _norm("RMS_NORM", centred=False)
