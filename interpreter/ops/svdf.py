"""SVDF: filters of rank one along features and time; past feature responses are its state."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic import fixed_point, hybrid
from litecl.interpreter.arithmetic.hybrid import NO_SCALES, Matrix, Scales
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import KEEPS_STATES
from litecl.interpreter.kit import activation, lowest, require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_BIAS, _STATE = 3, 4


@dataclass(frozen=True)
class SVDFOptions:
    rank: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    asymmetric_quantize_inputs: bool = False


def _infer(options: SVDFOptions, inputs: Specs) -> list[TensorSpec]:
    x, features, time = require.present(inputs, 3)
    require.types(x, (*types.FLOAT, TensorType.INT8))
    for spec in (x, features, time):
        require.rank(spec, exactly=2)
    (batch, depth), (filters, memory) = x.static_shape, time.static_shape
    if features.static_shape != (filters, depth):
        raise ShapeError(f"expected features [{filters}, {depth}], got {list(features.static_shape)}")
    if options.rank < 1 or filters % options.rank:
        raise ShapeError(f"expected filters a multiple of the rank {options.rank}, got {filters}")
    state = inputs[_STATE] if len(inputs) > _STATE else None
    if x.type == TensorType.INT8 and state is not None:
        require.types(features, (TensorType.INT8,))
        require.types(state, (TensorType.INT16, TensorType.INT8))
        require.types(time, (state.type,))
    if state is None or state.size != batch * filters * memory:
        got = "none" if state is None else list(state.static_shape)
        raise ShapeError(f"expected a state [{batch}, {filters * memory}], got {got}")
    units = filters // options.rank
    require.bias(inputs, _BIAS, units)
    return [TensorSpec(x.type, (batch, units))]


def _run(options: SVDFOptions, inputs: Inputs, scales: Scales = NO_SCALES) -> list[Array]:
    x, features, time = require.arrays(inputs, 3)
    new = Matrix(features, scales.get(1), options.asymmetric_quantize_inputs)(x)
    time = hybrid.dequantize(time, scales[2].scales) if 2 in scales else time
    (state,) = require.arrays(inputs[_STATE:], 1)
    filters, memory = time.shape
    remembered = state.reshape(len(x), filters, memory)
    shifted = np.concatenate([remembered[:, :, 1:], new[:, :, None]], axis=2)
    responses = np.einsum("bfm,fm->bf", shifted, time)
    result = responses.reshape(len(x), filters // options.rank, options.rank).sum(axis=2)
    return [activation.finish(result, inputs, _BIAS, options.fused_activation_function), shifted.reshape(state.shape)]


_bind_hybrid = hybrid.bind(_run)


def _bind(options: SVDFOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    if x.type == TensorType.FLOAT32:
        return _bind_hybrid(options, inputs, outputs)
    return _integer(inputs, outputs[0])


def _integer(inputs: Specs, output: TensorSpec) -> Run:
    """Return the kernel for 8-bit features; clamping to the output's range is the only activation.

    States and weights of time have 16 bits (EvalIntegerSVDF of LiteRT), or 8 as in older files of tflite-micro
    (EvalIntegerSvdfReference there), whose states have a zero point too.
    """
    x, features, time = require.present(inputs, 3)
    (state,) = require.at(inputs, (_STATE,))
    scale = {spec: np.float32(fixed_point.scale_of(spec)) for spec in (x, features, time, state, output)}
    first = fixed_point.quantize_multiplier(scale[x] * scale[features] / scale[state])
    last = fixed_point.quantize_multiplier(scale[state] * scale[time] / scale[output])
    zero_points = [fixed_point.zero_point_of(spec) for spec in (x, output)]
    state_type = state.dtype
    bits = 8 * state.dtype.itemsize - 1
    zero_state = fixed_point.zero_point_of(state) if state.type == TensorType.INT8 else 0

    def run(options: SVDFOptions, inputs: Inputs) -> list[Array]:
        operands = require.arrays([*inputs[:3], inputs[_STATE]], 4)
        x, features, time, state = (value.astype(np.int64) for value in operands)
        new = fixed_point.multiply_by_quantized_multiplier((x - zero_points[0]) @ features.T, first)
        remembered = state.reshape(len(x), *time.shape)
        newest = np.clip(new + zero_state, -(1 << bits), (1 << bits) - 1)
        shifted = np.concatenate([remembered[:, :, 1:], newest[:, :, None]], axis=2)
        sums = (
            ((shifted - zero_state) * time)
            .sum(axis=2)
            .reshape(len(x), len(time) // options.rank, options.rank)
            .sum(axis=2)
        )
        bias = require.optional(inputs, _BIAS)
        sums = fixed_point.wrapped(sums if bias is None else sums + bias)
        result = fixed_point.multiply_by_quantized_multiplier(sums, last) + zero_points[1]
        return [np.clip(result, -128, 127).astype(np.int8), shifted.reshape(state.shape).astype(state_type)]

    return run


SVDF = Op(
    "SVDF",
    versions=range(1, 5),
    options=SVDFOptions,
    infer=_infer,
    run=_run,
    bind=_bind,
    states=(_STATE,),
    integers=KEEPS_STATES,
    lowest=lowest.hybrid(2),
)
