"""L2_NORMALIZATION: rows along the last axis, scaled to length one."""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import activation, require, types
from litecl.interpreter.schema import ActivationFunctionType

# Shorter rows are divided by this instead (reference/l2normalization.h).
SHORTEST = np.float32(1e-6)


@dataclass(frozen=True)
class L2NormOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE


def _infer(options: L2NormOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present("L2_NORMALIZATION", inputs, 1)
    require.types("L2_NORMALIZATION", x, types.FLOAT)
    require.rank("L2_NORMALIZATION", x, at_least=1, at_most=4)
    return [TensorSpec(x.type, x.shape)]


def _run(options: L2NormOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    length = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))
    return [activation.apply(options.fused_activation_function, x / np.maximum(length, SHORTEST))]


L2_NORMALIZATION = Op("L2_NORMALIZATION", versions=range(1, 3), options=L2NormOptions, infer=_infer, run=_run)
