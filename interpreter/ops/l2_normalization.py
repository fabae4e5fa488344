"""L2_NORMALIZATION: rows along the last axis, scaled to length one."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic import fixed_math, fixed_point, halves
from litecl.interpreter.arithmetic.quantized_unary import BYTES
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import SIGNED_UNIT, Integers
from litecl.interpreter.kit import activation, lowest, require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, TensorType

# Shorter rows are divided by this instead (reference/l2normalization.h).
SHORTEST = np.float32(1e-6)


@dataclass(frozen=True)
class L2NormOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE


def _infer(options: L2NormOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types_or_quantized(x, types.FLOAT, BYTES)
    require.rank(x, at_least=1, at_most=4)
    return [TensorSpec(x.type, x.shape)]


def _run(options: L2NormOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    length = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))
    return [activation.apply(options.fused_activation_function, x / np.maximum(length, SHORTEST))]


def _bind(options: L2NormOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    """Return the kernel by a fixed-point reciprocal of the length; the output's scale is 1/128."""
    (x,) = require.present(inputs, 1)
    if not require.is_quantized(x):
        return None
    (output,) = outputs
    scale = fixed_point.scale_of(output)
    zero = fixed_point.zero_point_of(output)
    middle = 128 if output.type == TensorType.UINT8 else 0
    if scale != 1 / 128 or zero != middle:
        raise ModelError(f"expected an output of scale 1/128 and zero point {middle}, got {scale:g}")
    x_zero = fixed_point.zero_point_of(x)
    low, high = types.limits(output.dtype)

    def run(options: L2NormOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        value = x.astype(np.int64) - x_zero
        inverse, right = fixed_math.inverse_sqrt(np.square(value).sum(axis=-1, keepdims=True))
        # UINT8 is brought to 1/128 before the product, INT8 by its shift: their roundings differ.
        early = 7 if output.type == TensorType.UINT8 else 0
        factor = fixed_point.Multiplier(inverse, 7 - early - right)
        result = fixed_point.multiply_by_quantized_multiplier(value << early, factor)
        return [np.clip(result + zero, low, high).astype(output.dtype)]

    return run


L2_NORMALIZATION = halves.also(
    Op(
        "L2_NORMALIZATION",
        versions=range(1, 3),
        options=L2NormOptions,
        infer=_infer,
        run=_run,
        bind=_bind,
        integers=Integers((TensorType.INT8,), fixed=SIGNED_UNIT.fixed),
        lowest=lowest.integers(2),
    )
)
