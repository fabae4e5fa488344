"""Layer norms: rows with mean 0 and variance 1, times gamma, plus beta; and RMS norms, which take 0 as the mean.

No model file contains these operators; the pass ``layer_norms`` creates them.
"""

from functools import partial

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Step
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

FLOPS = 8
"""Operations per element."""


@dataclass(frozen=True, eq=False)
class LayerNormOptions:
    """epsilon: added to the variance, or to the mean of squares. gamma, beta: one for each element of a row."""

    epsilon: float
    gamma: Array
    beta: Array


def operands(call: Call, centred: bool) -> tuple[tuple[Arg, ...], tuple[np.generic, ...]]:
    """Return x, gamma, beta and the residual, and the arguments after the rows' length. centred: as in ``_norm``."""
    o: LayerNormOptions = call.options
    x, has_residual = call.input(0), call.residual is not None
    flags = (np.int32(centred), np.int32(has_residual))
    return (x, Const(o.gamma), Const(o.beta), call.residual or x), (
        *flags,
        np.float32(o.epsilon),
        *call.activation.bounds,
    )


def _lower(call: Call, centred: bool) -> list[Step]:
    (y,), (given, numbers) = call.outputs, operands(call, centred)
    length, flops = y.shape[-1], y.spec.size * FLOPS
    share = chunks("layer_norm", y.spec.size // length, call.target, work=length * FLOPS)
    return [share.launch("layer_norm", (*given, y, *share.args, np.int32(length), *numbers), {}, flops)]


def _norm(name: str, centred: bool) -> ClOp:
    """Return the record of a norm. centred: whether rows get a mean of 0."""
    lower = partial(_lower, centred=centred)
    return ClOp(composed(name, LayerNormOptions), claim=takes(*FLOAT), lower=lower, fuses_residual=True)


LAYER_NORM, RMS_NORM = _norm("LAYER_NORM", centred=True), _norm("RMS_NORM", centred=False)
