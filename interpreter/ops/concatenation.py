"""CONCATENATION: tensors one after another along an axis."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import activation, lowest, require
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, TensorType


@dataclass(frozen=True)
class ConcatenationOptions:
    axis: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE


def _infer(options: ConcatenationOptions, inputs: Specs) -> list[TensorSpec]:
    parts = require.present(inputs, max(1, len(inputs)))
    type_ = require.same_type(*parts)
    first = parts[0].static_shape
    axis = require.axis(options.axis, len(first))
    for part in parts[1:]:
        shape = part.static_shape
        if len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(f"shapes {list(first)} and {list(shape)} differ beyond axis {axis}")
    length = sum(part.static_shape[axis] for part in parts)
    return [TensorSpec(type_, (*first[:axis], length, *first[axis + 1 :]))]


def _run(options: ConcatenationOptions, inputs: Inputs) -> list[Array]:
    parts = require.arrays(inputs, len(inputs))
    return [activation.apply(options.fused_activation_function, np.concatenate(parts, options.axis))]


def _bind(options: ConcatenationOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    """Rescale UINT8 inputs to the output, in float32; INT16 ones are used unchanged, as in TFLite."""
    parts = require.present(inputs, len(inputs))
    (output,) = outputs
    rescaled = [rescaling(part, output) for part in parts]
    if not any(rescaled):
        return None

    def run(options: ConcatenationOptions, inputs: Inputs) -> list[Array]:
        values = require.arrays(inputs, len(inputs))
        return _run(options, [x if f is None else f(x) for x, f in zip(values, rescaled, strict=True)])

    return run


def _same_quantization(a: TensorSpec, b: TensorSpec) -> bool:
    if not (require.is_quantized(a) and require.is_quantized(b)):
        return a.quantization is None or not a.quantization.scale.size or not require.is_quantized(b)
    scales = [fixed_point.scale_of(spec) for spec in (a, b)]
    zeros = [fixed_point.zero_point_of(spec) for spec in (a, b)]
    return scales[0] == scales[1] and zeros[0] == zeros[1]


def rescaling(part: TensorSpec, output: TensorSpec) -> Callable[[Array], Array] | None:
    """Return the function that brings an input's elements to the output's scale, None if they are used unchanged.

    Raises ModelError where TFLite does.
    """
    same = _same_quantization(part, output)
    if same or not require.is_quantized(output) or output.type == TensorType.INT16:
        return None
    if output.type != TensorType.UINT8:
        names = f"{part.name!r} and {output.name!r}"
        raise ModelError(f"{output.type.name} tensors {names} differ in their quantization")
    scale = np.float32(fixed_point.scale_of(part))
    factor = scale * (np.float32(1) / np.float32(fixed_point.scale_of(output)))
    bias = np.float32(-fixed_point.zero_point_of(part)) * factor
    zero = fixed_point.zero_point_of(output)

    def rescaled(x: Array) -> Array:
        steps = fixed_point.round_half_away(x.astype(np.float32) * factor + bias)
        return np.clip(steps.astype(np.int64) + zero, 0, 255).astype(np.uint8)

    return rescaled


CONCATENATION = Op(
    "CONCATENATION",
    options=ConcatenationOptions,
    infer=_infer,
    run=_run,
    bind=_bind,
    versions=range(1, 8),
    integers=MOVING,
    lowest=lowest.integers(2, 3),
)
