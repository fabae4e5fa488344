"""FULLY_CONNECTED: rows times the transpose of a weight matrix, with a bias."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from litecl.interpreter.arithmetic import exact, halves, hybrid, rescale, weighted
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import Integers
from litecl.interpreter.kit import activation, lowest, require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, FullyConnectedOptionsWeightsFormat, TensorType

_SHUFFLED = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8


@dataclass(frozen=True)
class FullyConnectedOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    weights_format: FullyConnectedOptionsWeightsFormat = FullyConnectedOptionsWeightsFormat.DEFAULT
    keep_num_dims: bool = False
    asymmetric_quantize_inputs: bool = False
    quantized_bias_type: TensorType = TensorType.FLOAT32


def output_shape(options: FullyConnectedOptions, x: Shape, weights: Shape) -> Shape:
    """Return the output's shape for an input of any rank and weights [units, depth]."""
    units, depth = weights
    size = prod(x)
    if options.keep_num_dims:
        if not x or x[-1] != depth:
            raise ShapeError(f"expected a last dimension of {depth}, got shape {list(x)}")
        return (*x[:-1], units)
    if depth == 0 or size % depth:
        raise ShapeError(f"expected a multiple of {depth} elements, got shape {list(x)}")
    return size // depth, units


def _infer(options: FullyConnectedOptions, inputs: Specs) -> list[TensorSpec]:
    x, weights = require.present(inputs, 2)
    require.types(x, (*types.FLOAT, *rescale.INTEGERS))
    require.factors(x, weights, (*hybrid.WEIGHTS, TensorType.INT16))
    require.rank(weights, exactly=2)
    require.bias(inputs, 2, weights.static_shape[0])
    shape = output_shape(options, x.static_shape, weights.static_shape)
    if options.weights_format == _SHUFFLED:
        return [TensorSpec(TensorType.INT16, shape), TensorSpec(TensorType.UINT8, x.shape)]
    return [TensorSpec(x.type, shape)]


def _run(options: FullyConnectedOptions, inputs: Inputs) -> list[Array]:
    x, weights = require.arrays(inputs, 2)
    return [_finish(options, inputs, _rows(x, weights.shape[1]).dot(weights.T))]


def _rows(x: Array, depth: int) -> Array:
    """Return an input of any rank as rows [n, depth], which may be empty."""
    return x.reshape(x.size // depth if depth else prod(x.shape[:-1]), depth)


def _finish(options: FullyConnectedOptions, inputs: Inputs, rows: Array) -> Array:
    (x,) = require.arrays(inputs, 1)
    rows = activation.finish(rows, inputs, 2, options.fused_activation_function)
    return _shaped(options, x, rows)


def _shaped(options: FullyConnectedOptions, x: Array, rows: Array) -> Array:
    """Return rows [n, units] in the dimensions of the input, if these are kept."""
    return rows.reshape(*x.shape[:-1], rows.shape[1]) if options.keep_num_dims else rows


def _bind(options: FullyConnectedOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    x, weights = require.present(inputs, 2)
    if x.type == TensorType.FLOAT32:
        return _hybrid(weights) if hybrid.applies(x, weights) else None
    if options.weights_format == _SHUFFLED:
        return _shuffled(options, inputs, outputs[0])
    # 16-bit weights and sparse ones have kernels of their own; all others are scaled in float64.
    own = weights.type == TensorType.INT16 or weights.sparsity is not None
    if own:
        factor_of = rescale.twice_rounded if weights.sparsity is not None else rescale.wide
    else:
        wide = weighted.is_wide(x, require.optional(inputs, 2), options.quantized_bias_type)
        factor_of = rescale.real if wide else rescale.real_of_32_bits
    return integer(options, inputs, outputs[0], factor_of, coarse=own and not weighted.per_channel(weights))


def integer(
    options: FullyConnectedOptions, inputs: Specs, output: TensorSpec, factor_of: rescale.FactorOf, *, coarse: bool
) -> Run:
    """Return the kernel of integers, whose sums are scaled by ``factor_of``. coarse: see ``weighted.scaling``."""
    x, weights = require.present(inputs, 2)
    function = options.fused_activation_function
    scaling = weighted.scaling(function, x, weights, output, factor_of, coarse=coarse)
    ready = exact.once([weights, require.optional(inputs, 2)], lambda matrix, bias: scaling.weighted(matrix.T, bias))

    def run(options: FullyConnectedOptions, inputs: Inputs) -> list[Array]:
        x, matrix = require.arrays(inputs, 2)
        rows = ready(matrix, require.optional(inputs, 2))(_rows(x, matrix.shape[1]))
        return [_shaped(options, x, rows)]

    return run


def _shuffled(options: FullyConnectedOptions, inputs: Specs, output: TensorSpec) -> Run:
    """Return the kernel of weights in blocks of 4 rows by 16 columns, for 1 or 4 input rows; zero points are 128.

    The second output is the workspace in which TensorFlow Lite lays out the inputs (ShuffledFullyConnected).
    """
    x, weights = require.present(inputs, 2)
    units, depth = weights.static_shape
    rows = x.size // max(1, depth)
    if units % 4 or depth % 16 or rows not in (1, 4):
        raise ShapeError(f"expected shuffled weights [4 n, 16 n] and 1 or 4 rows, got {[units, depth]} and {rows}")
    function = options.fused_activation_function
    scaling = weighted.scaling(function, x, weights, output, rescale.twice_rounded, coarse=True)
    scaling = replace(scaling, zero_point=128, weights_zero_point=0)

    def prepare(blocks: Array, bias: Array | None) -> weighted.Weighted:
        matrix = blocks.view(np.int8).reshape(units // 4, depth // 16, 4, 16).swapaxes(1, 2).reshape(units, depth)
        return scaling.weighted(matrix.T, bias)

    ready = exact.once([weights, require.optional(inputs, 2)], prepare)

    def run(options: FullyConnectedOptions, inputs: Inputs) -> list[Array]:
        x, blocks = require.arrays(inputs, 2)
        result = ready(blocks, require.optional(inputs, 2))(x.reshape(-1, depth))
        workspace = (x ^ 0x80).reshape(rows, depth // 16, 16).swapaxes(0, 1).reshape(x.shape)
        return [result.reshape(output_shape(options, x.shape, blocks.shape)), workspace]

    return run


def _hybrid(weights: TensorSpec) -> Run:
    prepared = hybrid.prepared(weights)
    quantization = weights.quantization
    assert quantization is not None

    def run(options: FullyConnectedOptions, inputs: Inputs) -> list[Array]:
        x, matrix = require.arrays(inputs, 2)
        rows = _rows(x, matrix.shape[1])
        if quantization.block_size:
            kind = options.asymmetric_quantize_inputs or hybrid.RowKind.ASYMMETRIC
            result = hybrid.blockwise_matmul(rows, matrix, quantization, kind)
        else:
            result = hybrid.matmul(rows, matrix, prepared, options.asymmetric_quantize_inputs)
        return [_finish(options, inputs, result)]

    return run


def _lowest(options: FullyConnectedOptions, inputs: Specs) -> int:
    if lowest.is_hybrid(inputs):
        return 12  # one scale per row of the weights
    if len(inputs) == 2:
        return 6
    return 5 if options.keep_num_dims else 1


FULLY_CONNECTED = halves.also(
    Op(
        "FULLY_CONNECTED",
        versions=range(1, 15),
        options=FullyConnectedOptions,
        infer=_infer,
        run=_run,
        bind=_bind,
        declared_types=True,
        integers=Integers(weights={1: 0}, bias=2),
        lowest=lowest.most(_lowest, lowest.integers(4, 7)),
    ),
    loose=(2,),
)
