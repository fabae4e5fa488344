"""FULLY_CONNECTED: rows times the transpose of a weight matrix, with a bias."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.ops import hybrid, require, types
from litecl.interpreter.ops.conv_2d import check_bias, finish
from litecl.interpreter.schema import ActivationFunctionType, FullyConnectedOptionsWeightsFormat, TensorType


@dataclass(frozen=True)
class FullyConnectedOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    weights_format: FullyConnectedOptionsWeightsFormat = FullyConnectedOptionsWeightsFormat.DEFAULT
    keep_num_dims: bool = False
    asymmetric_quantize_inputs: bool = False
    quantized_bias_type: TensorType = TensorType.FLOAT32


def output_shape(options: FullyConnectedOptions, x: Shape, weights: Shape) -> Shape:
    """The output's shape for an input of any rank and weights [units, depth]."""
    units, depth = weights
    size = int(np.prod(x, dtype=np.int64))
    if options.keep_num_dims:
        if not x or x[-1] != depth:
            raise ShapeError(f"FULLY_CONNECTED: expected a last dimension of {depth}, got shape {list(x)}")
        return (*x[:-1], units)
    if depth == 0 or size % depth:
        raise ShapeError(f"FULLY_CONNECTED: expected a multiple of {depth} elements, got shape {list(x)}")
    return size // depth, units


def _infer(options: FullyConnectedOptions, inputs: Specs) -> list[TensorSpec]:
    x, weights = require.present("FULLY_CONNECTED", inputs, 2)
    require.types("FULLY_CONNECTED", x, types.FLOAT)
    require.types("FULLY_CONNECTED", weights, hybrid.WEIGHTS)
    require.rank("FULLY_CONNECTED", weights, exactly=2)
    check_bias("FULLY_CONNECTED", inputs, 2, weights.static_shape[0])
    return [TensorSpec(x.type, output_shape(options, x.static_shape, weights.static_shape))]


def _run(options: FullyConnectedOptions, inputs: Inputs) -> list[Array]:
    x, weights = require.arrays(inputs, 2)
    return [_finish(options, inputs, x.reshape(-1, weights.shape[1]) @ weights.T)]


def _finish(options: FullyConnectedOptions, inputs: Inputs, rows: Array) -> Array:
    x, weights = require.arrays(inputs, 2)
    rows = finish(rows, inputs, 2, options.fused_activation_function)
    return rows.reshape(output_shape(options, x.shape, weights.shape))


def _bind(options: FullyConnectedOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    x, weights = require.present("FULLY_CONNECTED", inputs, 2)
    return _hybrid(weights) if hybrid.applies(x, weights) else None


def _hybrid(weights: TensorSpec) -> Run:
    scales = hybrid.scales_of("FULLY_CONNECTED", weights)
    quantization = weights.quantization
    assert quantization is not None

    def run(options: FullyConnectedOptions, inputs: Inputs) -> list[Array]:
        x, matrix = require.arrays(inputs, 2)
        rows = x.reshape(-1, matrix.shape[1])
        if quantization.block_size:
            result = hybrid.blockwise_matmul(rows, matrix, quantization)
        else:
            result = hybrid.matmul(rows, matrix, scales, options.asymmetric_quantize_inputs)
        return [_finish(options, inputs, result)]

    return run


FULLY_CONNECTED = Op(
    "FULLY_CONNECTED", versions=range(1, 15), options=FullyConnectedOptions, infer=_infer, run=_run, bind=_bind
)
