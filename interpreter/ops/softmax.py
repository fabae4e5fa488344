"""SOFTMAX: exponentials along the last axis, normalised to sum to one."""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import require, types


@dataclass(frozen=True)
class SoftmaxOptions:
    beta: float = 0.0


def _infer(options: SoftmaxOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present("SOFTMAX", inputs, 1)
    require.types("SOFTMAX", x, types.FLOAT)
    require.rank("SOFTMAX", x, at_least=1)
    return [TensorSpec(x.type, x.shape)]


def _run(options: SoftmaxOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    scaled = x * np.float32(options.beta)
    e = np.exp(scaled - scaled.max(axis=-1, keepdims=True, initial=-np.inf))
    return [e / e.sum(axis=-1, keepdims=True)]


SOFTMAX = Op("SOFTMAX", versions=range(1, 4), options=SoftmaxOptions, infer=_infer, run=_run)
