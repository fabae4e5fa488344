"""LOG_SOFTMAX: the logarithm of SOFTMAX along the last axis."""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import require, types


@dataclass(frozen=True)
class LogSoftmaxOptions:
    pass


def _infer(options: LogSoftmaxOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present("LOG_SOFTMAX", inputs, 1)
    require.types("LOG_SOFTMAX", x, types.FLOAT)
    require.rank("LOG_SOFTMAX", x, at_least=1)
    return [TensorSpec(x.type, x.shape)]


def _run(options: LogSoftmaxOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    shifted = x - x.max(axis=-1, keepdims=True, initial=-np.inf)
    return [shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))]


LOG_SOFTMAX = Op("LOG_SOFTMAX", versions=range(1, 3), options=LogSoftmaxOptions, infer=_infer, run=_run)
