"""SVDF: filters of rank one along features and time, whose feature responses are remembered as state."""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import hybrid, require, types
from litecl.interpreter.ops.conv_2d import check_bias, finish
from litecl.interpreter.ops.hybrid import NO_SCALES, Matrix, Scales
from litecl.interpreter.schema import ActivationFunctionType

_BIAS, _STATE = 3, 4


@dataclass(frozen=True)
class SVDFOptions:
    rank: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    asymmetric_quantize_inputs: bool = False


def _infer(options: SVDFOptions, inputs: Specs) -> list[TensorSpec]:
    x, features, time = require.present("SVDF", inputs, 3)
    require.types("SVDF", x, types.FLOAT)
    for spec in (x, features, time):
        require.rank("SVDF", spec, exactly=2)
    (batch, depth), (filters, memory) = x.static_shape, time.static_shape
    if features.static_shape != (filters, depth):
        raise ShapeError(f"SVDF: expected features [{filters}, {depth}], got {list(features.static_shape)}")
    if options.rank < 1 or filters % options.rank:
        raise ShapeError(f"SVDF: expected filters a multiple of the rank {options.rank}, got {filters}")
    state = inputs[_STATE] if len(inputs) > _STATE else None
    if state is None or state.size != batch * filters * memory:
        got = "none" if state is None else list(state.static_shape)
        raise ShapeError(f"SVDF: expected a state [{batch}, {filters * memory}], got {got}")
    units = filters // options.rank
    check_bias("SVDF", inputs, _BIAS, units)
    return [TensorSpec(x.type, (batch, units))]


def _run(options: SVDFOptions, inputs: Inputs, scales: Scales = NO_SCALES) -> list[Array]:
    x, features, time = require.arrays(inputs, 3)
    new = Matrix(features, scales.get(1), options.asymmetric_quantize_inputs)(x)
    time = hybrid.dequantize(time, scales[2]) if 2 in scales else time
    (state,) = require.arrays(inputs[_STATE:], 1)
    filters, memory = time.shape
    remembered = state.reshape(len(x), filters, memory)
    shifted = np.concatenate([remembered[:, :, 1:], new[:, :, None]], axis=2)
    responses = np.einsum("bfm,fm->bf", shifted, time)
    result = responses.reshape(len(x), -1, options.rank).sum(axis=2)
    return [finish(result, inputs, _BIAS, options.fused_activation_function), shifted.reshape(state.shape)]


SVDF = Op(
    "SVDF",
    versions=range(1, 5),
    options=SVDFOptions,
    infer=_infer,
    run=_run,
    bind=hybrid.bind("SVDF", _run),
    states=(_STATE,),
)
